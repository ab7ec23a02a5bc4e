"""An input file as a model: what `peergrid run`, `plan` and `verify` take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from peergrid.errors import UsageError
from peergrid.gprmax import geometry
from peergrid.gprmax.assemble import Plan, assemble
from peergrid.gprmax.items import Heard, Passed, Setting, Source, Stretching
from peergrid.gprmax.table import read as read_items
from peergrid.gprmax.text import commands
from peergrid.grid import Dtype
from peergrid.models.fdtd3d import COMPONENTS, Absorber, BuiltDomain, Domain, Slab, Stretch, build, memory
from peergrid.models.model import Memory, Outcome, RunSpec, Snapshots
from peergrid.models.survey import Trace


@dataclass(frozen=True, eq=False)
class BuiltInput(BuiltDomain):
    """A problem with the commands that change nothing in it."""

    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*super().warnings, *self.notes)

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        """Results of a domain, and the files of the geometry that the input file asks for."""
        return (*super().write(folder, outcome), *self._geometry(folder))

    def write_survey(self, folder: Path, traces: Sequence[Trace], about: Mapping[str, str | int]) -> tuple[Path, ...]:
        """The traces, and the files of the geometry, which is the same for all."""
        return (*super().write_survey(folder, traces, about), *self._geometry(folder))

    def _geometry(self, folder: Path) -> tuple[Path, ...]:
        assert isinstance(self.model, InputModel)
        return geometry.write(self.model.plan, self.model.dtype, folder)


@dataclass(frozen=True, eq=False)
class InputModel:
    """An input file as data; a `Model` of `models.model`. shortened: the steps to run instead of the file's."""

    plan: Plan
    run: RunSpec = RunSpec()
    snapshots: Snapshots = field(default_factory=Snapshots)
    shortened: int | None = None
    dtype: Dtype = "float32"

    @property
    def title(self) -> str:
        return str(self.plan.settings.get("title", ""))

    @property
    def shape(self) -> tuple[int, ...]:
        frame = self.plan.frame
        return tuple(n for axis, n in enumerate(frame.cells) if axis != frame.flat)

    @property
    def steps(self) -> int:
        """The steps of the run."""
        return self.plan.steps if self.shortened is None else self.shortened

    @cached_property
    def domain(self) -> Domain:
        """The domain, rasterised when it is first asked for."""
        return replace(assemble(self.plan, self.dtype), steps=self.steps)

    def with_steps(self, steps: int) -> Self:
        return replace(self, shortened=steps)

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        plan = self.plan
        slabs = tuple((side, Slab(n)) for side, n in plan.thickness.items())
        stretches = tuple(item.stretch for item in plan.of(Stretching)) or (Stretch(),)
        nodes = tuple(n + (axis != plan.frame.flat) for axis, n in enumerate(plan.frame.cells))
        return memory(
            nodes, 4 if self.dtype == "float32" else 8, Absorber(slabs, "HORIPML", stretches), self.steps,  # type: ignore[arg-type]
            components=6 if plan.frame.flat is None else 3,
            recorded=sum(len(item.outputs or COMPONENTS) for item in plan.of(Heard)), sources=len(plan.of(Source)),
            ids=3, computing=computing, writing=writing,
        )  # fmt: skip

    def check_results(self) -> None:
        """Nothing is needed to write results but HDF5."""

    def build(self) -> BuiltInput:
        notes = [item.note for item in self.plan.of(Passed)]
        names = [item.name for item in self.plan.of(Setting)]
        moved = [name for name in ("src_steps", "rx_steps") if name in names]
        notes += [f"#{name} moves nothing in a single run: it is of a survey." for name in moved]
        geometry.check(self.plan)
        built = build(self.domain, self)
        return BuiltInput(**vars(built), notes=tuple(dict.fromkeys(notes)))


def read(path: Path) -> InputModel:
    """The model of an input file. Files that it names are looked for in its folder.

    Raises UsageError, one sentence with the line.
    """
    try:
        return InputModel(Plan(read_items(commands(path), path.parent.resolve())))
    except RecursionError:
        raise UsageError("An input file is expected to be read, got files nested too deep; flatten them.") from None

"""An input file as a model, for `peergrid run`, `plan` and `verify`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self

from peergrid.errors import UsageError, about
from peergrid.gprmax import geometry, snapshots
from peergrid.gprmax.assemble import Plan, assemble, far_fields, receivers, sources, subjects
from peergrid.gprmax.items import IgnoredCommand, Source, Stretching
from peergrid.gprmax.objects import Voxels
from peergrid.gprmax.survey import MOVED, anchors, moving, positions, stepping
from peergrid.gprmax.table import read as read_items
from peergrid.gprmax.text import commands
from peergrid.gprmax.voxels import beyond
from peergrid.grid import Array, Dtype, Index
from peergrid.models.fdtd3d import (
    Absorber,
    BuiltDomain,
    Domain,
    Pictures,
    PlaneWave,
    Slab,
    Stretch,
    build,
    check_frames,
    check_pictures,
    drawn,
    memory,
)
from peergrid.models.model import Memory, Outcome, RunSpec, Snapshots
from peergrid.models.survey import Shift, Survey, Vector, Wanted


@dataclass(frozen=True, eq=False)
class BuiltInput(BuiltDomain):
    """A problem, with notes on commands that do not change it, and with snapshots."""

    notes: tuple[str, ...] = ()
    regions: tuple[snapshots.Region, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*super().warnings, *self.notes)

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        """Write the results of a domain, and the files that the input file requests; its snapshots are written
        before.
        """
        reached = int(outcome.about.get("steps", self.steps))
        taken = (folder / one.file for one in self.regions if one.step <= reached)
        return (*super().write(folder, outcome), *taken, *self._geometry(folder))

    def write_others(self, merged: Path, wanted: Wanted) -> tuple[Path, ...]:
        """Draw sections, and write the files of the geometry, which is the same for all traces."""
        return (*super().write_others(merged, wanted), *self._geometry(merged.parent, wanted))

    @property
    def moments(self) -> tuple[int, ...]:
        """The steps of snapshots, in order."""
        return tuple(sorted({one.step for one in self.regions if one.step <= self.steps}))

    def moment(self, folder: Path, step: int, field: Callable[[str], Array]) -> Sequence[Callable[[], None]]:
        """Copy the nodes of a step's snapshots; returns for each a function that writes it."""
        return [
            partial(snapshots.write, folder / one.file, self, one, snapshots.taken(self, one, field))
            for one in self.regions
            if one.step == step
        ]

    def _geometry(self, folder: Path, wanted: Wanted = lambda _: True) -> tuple[Path, ...]:
        assert isinstance(self.model, InputModel)
        return geometry.write(self.model.plan, self.model.dtype, folder, wanted)


@dataclass(frozen=True, eq=False)
class InputModel:
    """An input file as data; a `SurveyedModel` of `models.survey`.

    shortened: the steps to run instead of the file's; traces: the requested number of its survey's traces; placed: the
    domain of one trace; given: the survey of a table; file: the name with which messages begin.
    """

    plan: Plan
    run: RunSpec = RunSpec()
    snapshots: Snapshots = field(default_factory=Snapshots)
    shortened: int | None = None
    dtype: Dtype = "float32"
    traces: int | None = None
    placed: Domain | None = None
    given: Survey | None = None
    pictures: Pictures = field(default_factory=Pictures)
    file: str = ""

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
        """The domain, rasterised on first use."""
        with about(self.file):
            return self.placed or replace(assemble(self.plan, self.dtype), steps=self.steps)

    def with_steps(self, steps: int) -> Self:
        return replace(self, shortened=steps)

    def named(self, file: str) -> Self:
        return replace(self, file=file)

    def with_dtype(self, dtype: Dtype) -> Self:
        return replace(self, dtype=dtype)

    def without_pictures(self) -> Self:
        return replace(self, pictures=Pictures())

    def with_traces(self, traces: int) -> Self:
        """The same model, to make so many traces; one is a run without a survey.

        Raises UsageError if the file does not define how they differ, or if its table of cases defines their number.
        """
        with about(self.file):
            if "study" in self.plan.settings:
                raise UsageError("The traces of a file with a #study are those of its table; leave out '-n'.")
            if traces > 1:
                stepping(self.plan, traces)
        return replace(self, traces=traces)

    @cached_property
    def survey(self) -> Survey | None:
        """The survey of the file; None for a single run."""
        if self.placed is not None:
            return None
        if self.given is not None:
            return self.given
        study = self.plan.settings.get("study")
        with about(self.file):
            if study is not None:
                return positions(self.plan, study)
            return None if self.traces is None or self.traces == 1 else stepping(self.plan, self.traces)

    @property
    def anchors(self) -> tuple[Vector, Vector]:
        return anchors(self.plan)

    def moved(self, shift: Shift) -> Self:
        sources, receivers = (self.nodes(way) for way in (shift.sources, shift.receivers))
        return replace(self, placed=self.domain.moved(sources, receivers))

    def nodes(self, way: Vector) -> Index:
        """A displacement in metres along the axes of the grid, as nodes along x, y and z."""
        frame, left = self.plan.frame, iter(way)
        return tuple(0 if axis == frame.flat else round(next(left) / d) for axis, d in enumerate(frame.spacing))

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        plan = self.plan
        slabs = tuple((side, Slab(n)) for side, n in plan.thickness.items())
        stretches = tuple(item.stretch for item in plan.of(Stretching)) or (Stretch(),)
        nodes = plan.frame.nodes
        absorber = Absorber(slabs, "HORIPML", stretches)  # type: ignore[arg-type]
        with about(self.file):
            return memory(
                nodes, 4 if self.dtype == "float32" else 8, absorber, self.steps,
                components=6 if plan.frame.flat is None else 3,
                recorded=sum(len(one.outputs) for one in receivers(plan)), sources=len(plan.of(Source)),
                ids=3, computing=computing, writing=writing, poles=plan.poles,
                drawn=drawn(nodes, self.dtype, self.snapshots, self.pictures) if writing else 0,
                places=sum(one.count for one in sources(plan) if isinstance(one, PlaneWave)),
                far_fields=far_fields(plan),
            )  # fmt: skip

    def check_results(self) -> None:
        self.check_frames()
        check_pictures(self.pictures)

    def check_frames(self) -> None:
        """Raises UsageError for an animation that cannot be made."""
        frame = self.plan.frame
        check_frames(self.pictures, self.snapshots, frame.grid, frame.spacing, frame.flat)

    def written(self, folder: Path) -> tuple[str, tuple[str, ...]]:
        """The text of an equivalent model file in a folder, and notes about what it leaves out.

        Raises UsageError, one sentence with the command and its line, for what a model file cannot express.
        """
        from peergrid.gprmax.convert import text  # which imports the tables of models

        notes = [item.note for item in self.plan.of(IgnoredCommand)]
        with about(self.file):
            return text(self.plan, self.dtype, self.survey, folder), (*notes, *self._unmoved())

    def _unmoved(self) -> list[str]:
        """Notes on commands that move sources or receivers, in a run without a survey or a model without any."""
        single = self.placed is None and self.survey is None
        notes = []
        for name, what, placed in zip(("src_steps", "rx_steps"), MOVED, moving(self.plan), strict=True):
            if name in self.plan.settings and single:
                notes.append(f"#{name} has no effect on a single run; '-n N' makes a survey of N traces.")
            elif name in self.plan.settings and not placed:
                notes.append(f"#{name} has no effect on a model without {what}, which alone it moves.")
        return notes

    def build(self) -> BuiltInput:
        notes = [item.note for item in self.plan.of(IgnoredCommand)]
        notes += self._unmoved()
        with about(self.file):
            notes += [note for item in self.plan.of(Voxels) for note in beyond(self.plan.frame, item)]
            geometry.check(self.plan)
            regions = snapshots.regions(self.plan)
            built = build(self.domain, self, subjects(self.plan))
        if regions and (self.placed is not None or self.survey is not None):
            notes.append("The model asks for snapshots in files of their own, but a survey takes none.")
        else:
            notes += [
                f"The snapshot '{one.file}' is of step {one.step}, but the run has {self.steps} steps: it is not made."
                for one in regions
                if one.step > self.steps
            ]
        own = vars(built) | {"pictures": self.pictures}
        return BuiltInput(**own, notes=tuple(dict.fromkeys(notes)), regions=regions)


def read(path: Path) -> InputModel:
    """The model of an input file. Files that it names are searched in its folder. Its runs draw pictures.

    Raises UsageError, one sentence with the file and the line, as do all methods of the model.
    """
    with about(path.name):
        try:
            plan = Plan(read_items(commands(path), path.parent.resolve()))
        except RecursionError:
            raise UsageError("An input file is expected to be read, got files nested too deep; flatten them.") from None
    return InputModel(plan, pictures=Pictures("png"), file=path.name)

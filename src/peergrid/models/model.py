"""The interface of kinds of models: the protocols that a kind implements, and the data that they exchange.

A kind of model is a function, a `Reader`: it makes a `Model` from the tables of a model file. `registry` finds a kind
by the value of `model.kind` in the file, in peergrid and in other packages. A `Model` is the file as data, frozen and
checked:

    tables ── Reader ──▶ Model ── build() ──▶ BuiltModel ── a run ──▶ Outcome ── write(folder, outcome) ──▶ files

The command line, plans, proofs, timelines and surveys use these protocols and depend on no kind. A kind defines its
tables, its stencils, the layout of its results and its pictures; all kinds share the tables `[model]` (`Head`) and
`[run]` (`RunSpec`), snapshots, checkpoints, resuming, progress and the choice of options.
`docs/models.md` shows how to add a kind in a package of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array, Dtype, Grid
from peergrid.io.rule import Name, PositiveCount, Title
from peergrid.stencil import Problem
from peergrid.stencil.reduction import Series


@dataclass(frozen=True)
class Head:
    """The table `[model]` of any model: the name of the model, and its kind."""

    title: Title = ""
    kind: Name = "fdtd2d"


@dataclass(frozen=True)
class RunSpec:
    """The table `[run]` of any model: the options of a run, unless the command line says otherwise.

    `auto` leaves the choice to peergrid. check_every: the number of steps between checks for values that are not
    finite.
    """

    devices: Name = "auto"
    strategy: Literal["auto", "serial", "async", "threads", "overlap", "graph", "peer", "persistent"] = "auto"
    depth: PositiveCount | Literal["auto"] = "auto"
    exchange: Literal["auto", "left-right", "pairwise", "all"] = "auto"
    route: Literal["auto", "copy", "store", "host"] = "auto"
    check_every: PositiveCount = 100


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of a run. fields: their names; every: steps between two (0: none); stride: of the nodes along each
    axis.
    """

    every: int = 0
    fields: tuple[str, ...] = ()
    stride: int = 1

    def size(self, grid: Grid, steps: int) -> int:
        """Bytes of the file of a run of `steps` steps, without compression."""
        taken = steps // self.every if self.every else 0
        nodes = prod(-(-length // self.stride) for length in grid.shape)
        return taken * len(self.fields) * nodes * np.dtype(grid.dtype).itemsize


@dataclass(frozen=True)
class Memory:
    """The peak memory of a run, in bytes, before any of its arrays exists.

    cells: of the host, the part that depends on the cells; records: of the host, the part that grows with the steps
    (signals of sources, records of receivers); steps: an upper bound for the run; devices: a lower bound for the fields
    on all GPUs together.
    """

    cells: int
    records: int
    steps: int
    devices: int


@dataclass(frozen=True)
class Outcome:
    """The raw results of a run; `BuiltModel.units` has the factors to SI units.

    traces: of each receiver of the problem, one value per step; fields: an iterator over names and final values;
    snapshots: the file of the snapshots, or None; reductions: by name; about: attributes of the run for the results,
    such as devices, steps and digest; pictures: False to draw none; faults: of results that `write_fields` left out,
    which end the run with exit code 2 when the others are written.
    """

    traces: Mapping[str, Array]
    fields: Iterable[tuple[str, Array]] = ()
    snapshots: Path | None = None
    reductions: Mapping[str, Series] = field(default_factory=dict)
    about: Mapping[str, str | int | float] = field(default_factory=dict)
    pictures: bool = True
    faults: list[UsageError] = field(default_factory=list)

    def write_fields(self, write: Callable[[Iterable[tuple[str, Array]]], None], needed: Collection[str] = ()) -> None:
        """Call `write` with the fields, and with those `needed` for other results alone if there is no room for all."""
        kept = dict[str, Array]()

        def noted() -> Iterator[tuple[str, Array]]:
            for name, values in self.fields:
                if name in needed:
                    kept[name] = values
                yield name, values

        try:
            write(noted())
        except UsageError as error:
            write(kept.items())
            self.faults.append(UsageError(f"The results are written without the final fields: {error}"))


class Model(Protocol):
    """A model file as data, frozen and checked."""

    @property
    def title(self) -> str:
        """The model's name for results and pictures; may be empty."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis, one to three of them."""

    @property
    def dtype(self) -> Dtype:
        """The precision of the fields."""

    @property
    def run(self) -> RunSpec:
        """The options of a run."""

    @property
    def snapshots(self) -> Snapshots:
        """The requested snapshots."""

    def with_steps(self, steps: int) -> Self:
        """The same model with another number of steps."""

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        """The memory of a run, an upper bound from the description alone.

        computing: whether the fields are in host memory, as on virtual devices; writing: whether the run writes
        results.
        """

    def check_results(self) -> None:
        """Raise UsageError if the results could not be written at the end, for example without a library."""

    def build(self) -> BuiltModel:
        """Build the problem of the model. Raises UsageError if the model is not valid."""


class BuiltModel(Protocol):
    """A problem, and the data needed to interpret its results."""

    @property
    def model(self) -> Model:
        """The model that this was built from."""

    @property
    def problem(self) -> Problem:
        """The stages of a step, fields with their first values, receivers."""

    @property
    def steps(self) -> int:
        """The steps of the run."""

    @property
    def dt(self) -> float:
        """Seconds of a step."""

    @property
    def trace_start(self) -> float:
        """Seconds from the start of the run to the first value of a trace; values follow in steps of dt."""

    @property
    def spacing(self) -> tuple[float, ...]:
        """Metres from node to node along each axis."""

    @property
    def units(self) -> Mapping[str, float]:
        """The factor from each stored field to SI units; snapshots contain only these fields."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for the user about probable mistakes in the model."""

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        """Write results and pictures into an existing folder; returns the files written, the results first.

        A file gets its name only when it is complete (`files.replacing`). Raises UsageError if one cannot be written.
        """


@runtime_checkable
class UnitsNamed(Protocol):
    """A problem with the names of its units."""

    @property
    def unit_names(self) -> Mapping[str, str]:
        """The SI units of fields in results and snapshots, such as V/m."""


@runtime_checkable
class AxesNamed(Protocol):
    """A problem whose axes are not the first of x, y and z, or whose first node is not their origin."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The name of each axis of the grid: "x", "y" or "z"."""

    @property
    def origin(self) -> tuple[float, ...]:
        """The position of the grid's first node in metres, along each axis of the grid."""


@runtime_checkable
class MomentsBuilt(BuiltModel, Protocol):
    """A problem with files that are written after single steps, during the run."""

    @property
    def moments(self) -> tuple[int, ...]:
        """The steps after which files are written; 0 is before the first."""

    def moment(self, folder: Path, step: int, field: Callable[[str], Array]) -> Sequence[Callable[[], None]]:
        """Copy the data for the files of a step from the fields, by name; returns for each file a function that writes
        it in a thread.

        The functions raise UsageError if the file cannot be written.
        """


@runtime_checkable
class PicturedBuilt(BuiltModel, Protocol):
    """A problem whose geometry can be drawn before it runs."""

    def picture(self, path: Path) -> None:
        """Draw the geometry into a file, .png, .pdf or .svg."""


@runtime_checkable
class ForeignModel(Model, Protocol):
    """A model from a file of another program, which can be converted to a model file."""

    def written(self, folder: Path) -> tuple[str, tuple[str, ...]]:
        """The text of an equivalent model file for a folder, and notes about what it leaves out.

        Raises UsageError if there is none.
        """


@runtime_checkable
class NamingModel(Model, Protocol):
    """A model whose error messages begin with the name of its file, also for faults found after reading."""

    def named(self, file: str) -> Self:
        """The same model with the name of its file."""


Reader = Callable[[Mapping[str, Any]], Model]
"""From the tables of a model file to a model; files that it names are absolute or relative to the present folder.

Raises UsageError, one sentence that begins with the path of a key: what was expected, what came, what to do. Where the
model is a frozen dataclass, `io.schema.read_table` makes it from its type hints, sentences included.
"""

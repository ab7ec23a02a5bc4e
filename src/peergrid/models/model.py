"""The seam between kinds of models and the rest: protocols that a kind implements, and the data that cross them.

A kind of model is a function, a `Reader`: it makes a `Model` from the tables of a model file. `registry` has the kinds
by the word that a file says in `model.kind`, those of other packages too. A `Model` is the file as data, frozen and
checked:

    tables ── Reader ──▶ Model ── build() ──▶ BuiltModel ── a run ──▶ Outcome ── write(folder, outcome) ──▶ files

The command line, plans, proofs, timelines and surveys know these protocols and no kind. Of a kind alone are its
tables, its stencils, the layout of its results and its pictures; common to all are the tables `[model]` (`Head`) and
`[run]` (`RunSpec`), snapshots, checkpoints, resuming, progress and the choice of an arrangement.
`docs/models.md` adds a kind in a package of one's own, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np

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

    `auto` leaves the choice to peergrid. check_every: how often, in steps, the fields are searched for values that are
    not finite.
    """

    devices: Name = "auto"
    strategy: Literal["auto", "serial", "async", "threads", "overlap", "graph", "peer", "persistent"] = "auto"
    depth: PositiveCount | Literal["auto"] = "auto"
    exchange: Literal["auto", "left-right", "pairwise", "all"] = "auto"
    route: Literal["auto", "copy", "store", "host"] = "auto"
    check_every: PositiveCount = 100


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of a run: of which fields, every so many steps (0: none), every so many nodes along each axis."""

    every: int = 0
    fields: tuple[str, ...] = ()
    stride: int = 1

    def size(self, grid: Grid, steps: int) -> int:
        """Bytes of the file, without compression, of a run of so many steps."""
        taken = steps // self.every if self.every else 0
        nodes = prod(-(-length // self.stride) for length in grid.shape)
        return taken * len(self.fields) * nodes * np.dtype(grid.dtype).itemsize


@dataclass(frozen=True)
class Memory:
    """The memory that a run takes at its worst moment, in bytes, known before any of its arrays exists.

    cells: of the host, as far as it depends on the cells; records: of the host, as far as it grows with the steps
    (signals of sources, records of receivers); steps: the most steps that the run has; devices: of all GPUs together,
    the least that the fields need.
    """

    cells: int
    records: int
    steps: int
    devices: int


@dataclass(frozen=True)
class Outcome:
    """The findings of a run when it ends, as stored by it; `BuiltModel.units` has the factors to SI units.

    traces: of each receiver of the problem, one value for each step; fields: names and final values, one after another
    (it can be gone through once); snapshots: the file of the snapshots, None where none were taken; reductions: by
    their names; about: what the results should say about the run: devices, steps, digest; pictures: False where there
    is no time to draw any.
    """

    traces: Mapping[str, Array]
    fields: Iterable[tuple[str, Array]] = ()
    snapshots: Path | None = None
    reductions: Mapping[str, Series] = field(default_factory=dict)
    about: Mapping[str, str | int | float] = field(default_factory=dict)
    pictures: bool = True


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
        """The snapshots that are wished for."""

    def with_steps(self, steps: int) -> Self:
        """The same model, to run for so many steps."""

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        """The memory of a run, an upper bound from the description alone.

        computing: whether the fields are in the host's memory, as on virtual devices; writing: whether the run leaves
        results.
        """

    def check_results(self) -> None:
        """Raise UsageError where the results could not be written at the end, for want of a library for instance."""

    def build(self) -> BuiltModel:
        """The problem of the model. Raises UsageError where the model cannot mean anything."""


class BuiltModel(Protocol):
    """A problem, and what its results need to be understood."""

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
        """The factor from each stored field to SI units, where it is not 1; snapshots hold no fields but these."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for the user about what may not be as meant."""

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        """Write results and pictures into a folder that exists; the files written, the results first.

        A file appears under its name only when it is complete (`io.atomic`). Raises UsageError where that fails.
        """


@runtime_checkable
class UnitsNamed(Protocol):
    """A problem whose results say in which units they are."""

    @property
    def unit_names(self) -> Mapping[str, str]:
        """The SI units of fields in results and snapshots, such as V/m."""


@runtime_checkable
class MomentsBuilt(BuiltModel, Protocol):
    """A problem of which files are written after single steps, while the run goes on."""

    @property
    def moments(self) -> tuple[int, ...]:
        """The steps after which some are; 0 is before the first."""

    def moment(self, folder: Path, step: int, field: Callable[[str], Array]) -> Callable[[], None]:
        """Take what the files of a step need of the fields, by their names; what it returns writes them, in a thread.

        That raises UsageError where a file cannot be written.
        """


@runtime_checkable
class PicturedBuilt(BuiltModel, Protocol):
    """A problem whose geometry can be drawn before it runs."""

    def picture(self, path: Path) -> None:
        """Draw the geometry into a file, .png, .pdf or .svg."""


@runtime_checkable
class ForeignModel(Model, Protocol):
    """A model from a file of another program, which a model file can say, too."""

    def written(self, folder: Path) -> tuple[str, tuple[str, ...]]:
        """The text of a model file that means the same, to lie in a folder, and notes about what it leaves out.

        Raises UsageError where it cannot be said.
        """


@runtime_checkable
class NamingModel(Model, Protocol):
    """A model whose sentences begin with its file's name also where a fault is found after reading."""

    def named(self, file: str) -> Self:
        """The same model, of a file of this name."""


Reader = Callable[[Mapping[str, Any]], Model]
"""From the tables of a model file to a model; files that it names are absolute or relative to the present folder.

Raises UsageError, one sentence that begins with the path of a key: what was expected, what came, what to do. Where the
model is a frozen dataclass, `io.schema.read_table` makes it from its type hints, sentences included.
"""

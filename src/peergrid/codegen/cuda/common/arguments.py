"""The arguments of a generated kernel: one struct for each problem, in C++ text and as the NumPy dtype that fills it.

Every pointer to a field is shifted so that the cell (i, j, k) of the grid lies at `p[i * pitch[0] + j * pitch[1] + k]`
(2D: `p[i * pitch[0] + j]`, 1D: `p[i]`; a profile: `p[index along its axis]`), whatever box the device stores. In
the slot that they write, kernels of one step find it by `into`: that may be of another shape (see
`stream3d.remainder`).

Where sources and receivers lie is in the struct, too: kernels of a B-scan, whose antennas move, have one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.expressions import CTYPES, helpers
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.common.pitches import Pitched
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.skeletons.layouts import layout_of
from peergrid.stencil import Problem, Update
from peergrid.stencil.remember import remembered

REGION = layout_of("arguments.cuh", "Region")
"""A box of cells for one variant of a kernel; `first` is the first thread block that works on it."""

FIELD = layout_of("arguments.cuh", "Field")
"""The place of a field: its slots, and the pitches by which they are read, and written by kernels of one step."""

RECEIVER = layout_of("arguments.cuh", "Receiver")
"""A receiver: its cell, its field's place in `Arguments.fields`, and its row of the traces."""

FEW_CELLS = 4  # along each axis of a box that is likely to lie elsewhere in the next run
MOST_CORNERS = 32  # of such boxes, for the room that structs have; where others lie is written into the text

TEMPLATE = """\
typedef {real} R;
constexpr int {counts};
constexpr int {corners};
#include "arguments.cuh"
"""


@dataclass(frozen=True)
class Entry:
    """A field, its pitches, a signal or a parameter, by its name; a scratch block, by its number."""

    kind: Literal["field", "pitches", "signal", "param", "scratch"]
    name: str


@dataclass(frozen=True)
class Arguments:
    """The struct of a problem's kernels; `scratch` counts the fields that need a third block (see `onestep.groups`).

    varying: entries whose places a function is given as `places`, in this order; pitched: as memory is laid out; fields
    that are not in it have pitches of their own.
    """

    problem: Problem
    scratch: int = 0
    varying: tuple[Entry, ...] = ()
    pitched: Pitched = ()

    @property
    def width(self) -> int:
        """Values that an access of 16 bytes moves."""
        return 16 // self.problem.itemsize

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields in the order of the struct."""
        return tuple(self.problem.fields)

    @cached_property
    def signals(self) -> tuple[str, ...]:
        return tuple(self.problem.signals)

    @cached_property
    def params(self) -> tuple[str, ...]:
        return tuple(self.problem.params)

    def number(self, entry: Entry) -> int:
        """The place of an entry in the struct."""
        if entry.kind == "scratch":
            return int(entry.name)
        names = {"field": self.fields, "pitches": self.fields, "signal": self.signals, "param": self.params}
        return names[entry.kind].index(entry.name)

    def place(self, entry: Entry) -> str:
        """The C++ text of the place of an entry."""
        return f"places[{self.varying.index(entry)}]" if entry in self.varying else str(self.number(entry))

    def pitches(self, field: str) -> Entry:
        """The entry of a field's pitches."""
        return Entry("pitches", self._pitched.get(field, field))

    @cached_property
    def _pitched(self) -> dict[str, str]:
        return dict(self.pitched)

    def param(self, key: str) -> str:
        """The C++ text of a parameter."""
        return f"a.params[{self.place(Entry('param', key))}]"

    def now(self, signal: str, step: str = "step", cell: Sequence[str] = ()) -> str:
        """The C++ text of a signal's sample at a time step, given as text; cell: the texts of the cell's index, which a
        signal with slopes asks for.
        """
        described = self.problem.signals[signal]
        asked = [f"a.signals[{self.place(Entry('signal', signal))}]", step]
        if described.slopes:
            terms = (f"{slope} * ({index})" for slope, index in zip(described.slopes, cell, strict=True))
            asked += [str(described.samples.shape[1]), " + ".join((str(described.first), *terms))]
        return f"sample({listed(asked)})"

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables, which the struct has as signals behind the others."""
        return tuple(self.problem.tables)

    def entries(self, table: str) -> str:
        """The C++ text of the pointer to a table's first entry."""
        return f"a.signals[{len(self.signals) + self.tables.index(table)}].samples"

    def entry(self, table: str, index: str, entries: str = "") -> str:
        """The C++ text of a table's entry at an index, given as text; entries: that of the first one's pointer."""
        return f"pg_entry<{len(self.problem.tables[table])}>({entries or self.entries(table)}, {index})"

    @cached_property
    def movable(self) -> tuple[Update, ...]:
        """The updates of a few cells, such as sources: where they lie is data."""
        return _movable(self.problem)

    @property
    def corners(self) -> NDArray[np.int32]:
        """The first cells of the movable updates, as the struct has them."""
        found = np.zeros(self.dtype["corners"].shape, np.int32)
        for row, update in zip(found, self.movable, strict=False):
            row[: update.box.ndim] = update.box.lo
        return found

    @property
    def _counts(self) -> dict[str, int]:
        """The extents of the struct's arrays, at least one, which keeps C++ and NumPy free of empty arrays."""
        counts = {
            "FIELD": len(self.fields),
            "SCRATCH": self.scratch,
            "SIGNAL": len(self.signals) + len(self.tables),
            "PARAM": len(self.params),
            "CORNER": len(self.movable),
        }
        return {f"{name}_COUNT": max(1, count) for name, count in counts.items()}

    @property
    def source(self) -> str:
        """The C++ text of the struct."""
        real = CTYPES[self.problem.grid.dtype]
        *counts, corners = (f"{name} = {count}" for name, count in self._counts.items())
        return TEMPLATE.format(real=real, counts=listed(counts), corners=corners)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The same struct for NumPy."""
        signal, real = layout_of("arguments.cuh", "Signal"), self.problem.grid.dtype
        return layout_of("arguments.cuh", "Arguments", Field=FIELD, Signal=signal, R=real, **self._counts)


def prelude(arguments: Arguments, *templates: str) -> str:
    """The text that kernels start with: the functions of values, the struct and what both need of `skeletons`."""
    return "\n".join((helpers(arguments.problem), arguments.source, include(*templates)))


@remembered()
def _movable(problem: Problem) -> tuple[Update, ...]:
    most = [min(FEW_CELLS, whole - 1) for whole in problem.grid.shape]
    updates = (update for stage in problem.stages for update in stage.updates)
    small = (u for u in updates if all(0 < n <= limit for n, limit in zip(u.box.shape, most, strict=True)))
    return tuple(dict.fromkeys(small))[:MOST_CORNERS]

"""The place of each cell of a field in device memory: padded rows, aligned alike on every device. Pure arithmetic.

Columns are aligned by their global index: the cell whose last index is a multiple of 32 starts a line of 32 values, on
every device and for every field (of narrow 3D fields, such as absorbers at the ends of rows, a multiple of 4), so that
16-byte accesses of one field are 16-byte accesses of all. Fields of about the same shape have the same pitches. On both
sides of a block lies a guard that threads at the border may read and never write: streaming kernels, 2D, load as many
rows of every field as the farthest-reaching one needs, for passes of one step (`persistent`) too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import mul

import numpy as np

from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.common.pitches import line_of, pitched_as, values_of_row
from peergrid.grid import Array, Box, Field, Index
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem

GUARD = 1024  # values at least on each side: more than the longest reach of a stencil and a 16-byte access


@dataclass(frozen=True)
class BlockLayout:
    """One slot of a field on one device: the cells of `box`, along the field's axes; guard_rows: on each side; room:
    the rows of a plane and the values of a row (2D: the latter), where fields with the same pitches need more.
    """

    field: Field
    box: Box
    itemsize: int
    guard_rows: int = 0
    room: Index = ()

    @cached_property
    def extent(self) -> Index:
        """Cells along each of the field's axes."""
        return tuple(self.box.shape[axis] for axis in self.field.axes)

    @cached_property
    def lead(self) -> int:
        """Unused values at the start of each row, so that rows are aligned by their global column."""
        return self.box.lo[self.field.axes[-1]] % line_of(self.field)

    @cached_property
    def least_room(self) -> Index:
        """The room that its own cells need."""
        return (*self.extent[1:-1], values_of_row(self.field, self.box.lo[self.field.axes[-1]], self.extent[-1]))

    @cached_property
    def pitches(self) -> Index:
        """Values from one cell to the next along each of the field's axes."""
        return tuple(accumulate(reversed(self.room or self.least_room), mul, initial=1))[len(self.extent) - 1 :: -1]

    @cached_property
    def strides(self) -> Index:
        """The same in bytes."""
        return tuple(pitch * self.itemsize for pitch in self.pitches)

    @cached_property
    def values(self) -> int:
        """Values that the block takes, guards included; 0 for a field without cells on this device."""
        if not all(self.extent):
            return 0
        cells = self.extent[0] * self.pitches[0] if len(self.extent) > 1 else self.least_room[0]
        return 2 * self.guard + cells

    @cached_property
    def guard(self) -> int:
        """Values before the first row and after the last one."""
        return max(GUARD, self.guard_rows * self.pitches[0] if self.field.full else 0)

    @property
    def bytes(self) -> int:
        return self.values * self.itemsize

    def index(self, cell: Index) -> int:
        """The place of a cell among the block's values."""
        along = (cell[axis] - self.box.lo[axis] for axis in self.field.axes)
        return self.guard + self.lead + sum(i * p for i, p in zip(along, self.pitches, strict=True))

    @property
    def shift(self) -> int:
        """The place that cell 0 would have, by which pointers are shifted."""
        return self.index((0,) * self.box.ndim)

    def view(self, values: Array) -> Array:
        """The cells of a flat array of the block's values, shape `extent`."""
        start = self.index(self.box.lo)
        return np.lib.stride_tricks.as_strided(values[start:], self.extent, self.strides)

    def flat(self, cells: Array) -> Array:
        """A flat array of the block's values that holds the cells, and NaN elsewhere."""
        values = np.full(self.values, np.nan, cells.dtype)
        self.view(values)[...] = cells
        return values


def with_common_pitches(problem: Problem, blocks: Mapping[str, BlockLayout]) -> dict[str, BlockLayout]:
    """Blocks of fields on a device, with room for the pitches that kernels find the same (see `pitched_as`)."""
    made, room = dict(blocks), dict[str, Index]()
    pitched = [(name, first) for name, first in pitched_as(problem) if name in blocks]
    for name, first in pitched:
        needed = blocks[name].least_room
        room[first] = tuple(map(max, needed, room.get(first, needed)))
    for name, first in pitched:
        made[name] = replace(blocks[name], room=room[first])
    return made


def block_layouts(layout: Layout, device: int) -> dict[str, BlockLayout]:
    """The block of every field on a device."""
    problem = layout.problem
    streamed = layout.blocks if problem.grid.ndim == 2 else ()
    rows = max((max(row_reach(problem, steps)) for steps in streamed), default=0)
    return {
        name: BlockLayout(described, layout.local(device, name), problem.itemsize, rows)
        for name, described in problem.fields.items()
    }

"""The memory of a trace: the numbering of all cells, for their last writers, readers and time levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box
from peergrid.runtime.trace.cells import CellSet, cells_read, cells_reduced, cells_written
from peergrid.schedule import Layout
from peergrid.schedule.ops import Receive, Reduce, Send, Touching, Transfer, WrappedCompute
from peergrid.stencil import Problem

Cells = NDArray[np.int64]
Where = tuple[int, str, int]
"""A device, a field, a slot."""


Sets = list[tuple[Where, CellSet]]


def read_sets(layout: Layout, op: Touching) -> Sets:
    """The cells that an operation reads at its level."""
    if isinstance(op, Reduce):
        return _reduced(layout.problem, op, previous=False)
    if isinstance(op, Receive):
        return []
    if isinstance(op, Transfer):
        return _copied((op.source_device, op.field, op.slot), op.source_box)
    found = cells_read(layout.problem, op.box, op.steps)
    if isinstance(op, WrappedCompute):
        moved = ((name, one) for name, cells in found.items() for one in _at_other_ends(layout, cells))
        return [((op.device, name, op.source), one) for name, one in moved]
    return [((op.device, name, op.source), cells) for name, cells in found.items()]


def previous_sets(layout: Layout, op: Touching) -> Sets:
    """The cells that an operation reads one step before its level."""
    return _reduced(layout.problem, op, previous=True) if isinstance(op, Reduce) else []


def write_sets(layout: Layout, op: Touching) -> Sets:
    """The cells that an operation writes."""
    if isinstance(op, Reduce | Send):
        return []
    if isinstance(op, Transfer):
        return _copied((op.target_device, op.field, op.slot), op.target_box)
    found = cells_written(layout.problem, op.box)
    return [((op.device, name, op.target), cells) for name, cells in found.items()]


class CellMap:
    """A numbering of all cells of all buffers; cells that no set separates have one number."""

    def __init__(self, sets: Iterable[tuple[Where, CellSet]]) -> None:
        cuts: dict[Where, list[set[int]]] = {}
        for where, cells in sets:
            for line, seen in zip(cells.cuts, cuts.setdefault(where, [set() for _ in cells.cuts]), strict=True):
                seen.update(line)
        self._cuts = {where: [np.array(sorted(line)) for line in lines] for where, lines in cuts.items()}
        self._first: dict[Where, int] = {}
        self.size = 0
        for where, lines in self._cuts.items():
            self._first[where] = self.size
            self.size += int(np.prod([len(line) - 1 for line in lines]))

    def in_slot(self, slot: int) -> Cells:
        """The numbers of all cells of a slot, on every device."""
        parts = [(first, where) for where, first in self._first.items() if where[2] == slot]
        sizes = {w: int(np.prod([len(line) - 1 for line in self._cuts[w]])) for _, w in parts}
        return np.concatenate([np.arange(first, first + sizes[w]) for first, w in parts] or [np.empty(0, np.int64)])

    def numbers(self, sets: Sets) -> Cells:
        """The numbers of the cells of some sets."""
        found = [self._numbers(where, cells) for where, cells in sets]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def name(self, number: int) -> str:
        """A cell in words: its field, slot and device, and the box that it represents."""
        where = max((w for w, first in self._first.items() if first <= number), key=self._first.__getitem__)
        lines = self._cuts[where]
        index = np.unravel_index(number - self._first[where], [len(line) - 1 for line in lines])
        spans = [(int(line[i]), int(line[i + 1])) for line, i in zip(lines, index, strict=True)]
        device, field, slot = where
        return f"'{field}' slot {slot} of device {device} in {Box(*zip(*spans, strict=True))}"

    def _numbers(self, where: Where, cells: CellSet) -> Cells:
        lines = self._cuts[where]
        rows, spans = [], []
        for line, own in zip(lines, cells.cuts, strict=True):
            low, high = np.searchsorted(line, (own[0], own[-1]))
            spans.append(np.arange(low, high))
            rows.append(np.searchsorted(own, line[low:high], side="right") - 1)
        inside = cells.mask[np.ix_(*rows)]
        flat = np.zeros((), dtype=np.int64)
        for line, span in zip(lines, spans, strict=True):
            flat = np.add.outer(flat * (len(line) - 1), span)
        chosen: Cells = flat[inside] + self._first[where]
        return chosen


def outside(layout: Layout, sets: Sets) -> str | None:
    """The first set with cells outside a device's memory, in words."""
    for (device, name, slot), cells in sets:
        if not 0 <= device < layout.devices or slot not in (0, 1):
            return f"slot {slot} of device {device}, which does not exist"
        box = Box(tuple(line[0] for line in cells.cuts), tuple(line[-1] for line in cells.cuts))
        local = layout.local(device, name)
        if not local.covers(box) and not all(local.covers(part) for part in cells.boxes()):
            return f"'{name}' on device {device} in {box}, which holds {local}"
    return None


def _at_other_ends(layout: Layout, cells: CellSet) -> Iterator[CellSet]:
    """The cells, with those beyond periodic edges of axes that are not split moved to the other end."""
    grid, parts = layout.problem.grid, layout.partition.parts
    whole = [axis for axis in range(grid.ndim) if grid.periodic[axis] and parts[axis] == 1]
    for box in cells.boxes():
        repeats = (range(box.lo[axis] // grid.shape[axis], -(-box.hi[axis] // grid.shape[axis])) for axis in whole)
        for numbers in product(*repeats):
            piece = box
            for axis, n in zip(whole, numbers, strict=True):
                cut = grid.shape[axis] * n
                lo, hi = max(box.lo[axis], cut), min(box.hi[axis], cut + grid.shape[axis])
                piece = piece.with_axis(axis, lo - cut, hi - cut)
            yield CellSet.all_of(piece)


def _reduced(problem: Problem, op: Reduce, *, previous: bool) -> Sets:
    (reduction,) = (one for one in problem.reductions if one.name == op.reduction)
    found: Sets = []
    for alias in reduction.described:
        name, before = reduction.source(alias)
        cells = cells_reduced(problem, reduction, alias, op.box) if name in problem.state else None
        if cells is not None and before == previous:
            found.append(((op.device, name, 1 - op.slot if before else op.slot), cells))
    return found


def _copied(where: Where, box: Box) -> Sets:
    return [] if box.empty else [(where, CellSet.all_of(box))]

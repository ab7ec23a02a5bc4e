"""Reductions on virtual devices, combined from the results of their own cells in any order.

The order of operations is that of `codegen.reductions`. The values of a leaf that several devices own are kept until it
is complete, so that devices may begin at any cell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.reductions import GROUP, LEAF, Doubles, groups, neutral, total
from peergrid.grid import Array, Box
from peergrid.runtime.memory import DeviceMemory
from peergrid.schedule import Layout
from peergrid.schedule.ops import Reduce
from peergrid.stencil import Reduction
from peergrid.stencil.reduction import ReductionKind, Series

Leaves = Callable[[ReductionKind, Array, int], Doubles]
"""As `codegen.reductions.leaves`: the results of a leaf of each row."""

Values = Callable[[Reduction, DeviceMemory, Box, int], Array]
"""The values of a reduction's expression on a box, from the fields in a slot; what is returned may be overwritten by
the next call for the same memory."""

Arithmetic = tuple[Values, Leaves]


@dataclass
class _Open:
    """A reduction at one step that still lacks cells.

    found: the results of leaves, shape (rows, leaves of a row); pieces: the values of leaves that several devices own,
    by their number in a row; boxes: the cells that were added.
    """

    found: Doubles
    missing: int
    pieces: dict[int, Array] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)


Unfinished = Mapping[tuple[str, int], _Open]
"""Reductions of which some cells are still to come, by name and step."""


class Reductions:
    """All reductions of a run. Devices add their own cells concurrently.

    shared: other processes have devices, too, so that results are found by `merge`, on all of them.
    """

    def __init__(
        self, layout: Layout, total_steps: int, values: Values, leaves: Leaves, *, shared: bool = False
    ) -> None:
        self._layout, self._values, self._leaves, self._shared = layout, values, leaves, shared
        self._named = {one.name: one for one in layout.problem.reductions}
        self._results = {one.name: np.full(total_steps // one.every, np.nan) for one in layout.problem.reductions}
        self._open: dict[tuple[str, int], _Open] = {}
        self._lock = threading.Lock()

    def series(self, steps: int) -> Mapping[str, Series]:
        """The results of the first so many steps."""
        return MappingProxyType({
            name: Series(np.arange(1, steps // one.every + 1) * one.every, self._results[name][: steps // one.every])
            for name, one in self._named.items()
        })  # fmt: skip

    def add(self, memory: DeviceMemory, op: Reduce, step: int) -> None:
        """Add the cells that a device owns, after so many steps of the run."""
        one = self._named[op.reduction]
        values = self._values(one, memory, op.box, op.slot)
        opened = self._opened(one, step)
        rows = _rows(op.box, one.box)
        for number, whole, part in _parts(op.box, one.box):
            cells = values.reshape(len(rows), -1)[:, part.lo[0] - op.box.lo[-1] : part.hi[0] - op.box.lo[-1]]
            place = part.lo[0] - number * LEAF
            if whole:
                opened.found[rows, number - one.box.lo[-1] // LEAF] = self._leaves(one.kind, cells, place)
            else:
                self._piece(opened, number)[rows, place : place + part.shape[0]] = cells
        if self._complete(opened, op.box) and not self._shared:
            self._finish(one, opened, step)

    def unfinished(self) -> Unfinished:
        """The reductions since the last `merge`, with the results of this process."""
        return dict(self._open)

    def merge(self, others: Iterable[Unfinished]) -> None:
        """Add the results of all other processes."""
        for (name, step), theirs in chain.from_iterable(other.items() for other in others):
            one = self._named[name]
            opened = self._opened(one, step)
            for box in theirs.boxes:
                rows = _rows(box, one.box)
                for number, whole, part in _parts(box, one.box):
                    if whole:
                        column = number - one.box.lo[-1] // LEAF
                        opened.found[rows, column] = theirs.found[rows, column]
                    else:
                        at = slice(part.lo[0] - number * LEAF, part.hi[0] - number * LEAF)
                        self._piece(opened, number)[rows, at] = theirs.pieces[number][rows, at]
                self._complete(opened, box)
        for (name, step), opened in self.unfinished().items():
            if not opened.missing:
                self._finish(self._named[name], opened, step)

    def _complete(self, opened: _Open, box: Box) -> bool:
        """Count the cells of a box that were added; True if these were the last ones."""
        with self._lock:
            opened.boxes.append(box)
            opened.missing -= box.size
            return not opened.missing

    def _opened(self, one: Reduction, step: int) -> _Open:
        with self._lock:
            if (one.name, step) not in self._open:
                across = -(-one.box.hi[-1] // LEAF) - one.box.lo[-1] // LEAF
                rows = one.box.size // one.box.shape[-1]
                self._open[one.name, step] = _Open(np.full((rows, across), neutral(one.kind)), one.box.size)
            return self._open[one.name, step]

    def _piece(self, opened: _Open, number: int) -> Array:
        with self._lock:
            if number not in opened.pieces:
                opened.pieces[number] = np.zeros((len(opened.found), LEAF), self._layout.problem.grid.dtype)
            return opened.pieces[number]

    def _finish(self, one: Reduction, opened: _Open, step: int) -> None:
        first, last = one.box.lo[-1], one.box.hi[-1]
        for number, values in opened.pieces.items():
            lo, hi = max(first, number * LEAF) - number * LEAF, min(last, (number + 1) * LEAF) - number * LEAF
            opened.found[:, number - first // LEAF] = self._leaves(one.kind, values[:, lo:hi], lo)
        found = grouped(one, self._layout.problem.grid.shape, opened.found)
        self._results[one.name][step // one.every - 1] = total(one.kind, found, one.box.size)
        with self._lock:
            del self._open[one.name, step]


def grouped(one: Reduction, shape: tuple[int, ...], found: Doubles) -> Doubles:
    """The results of groups in order, from those of leaves, shape (rows of the box, leaves of a row)."""
    across = -(-shape[-1] // LEAF)
    numbers = np.add.outer(_rows(one.box, Box((0,) * len(shape), shape)) * across, np.arange(found.shape[1]))
    numbers += one.box.lo[-1] // LEAF
    first, last = int(numbers[0, 0]) // GROUP, int(numbers[-1, -1]) // GROUP
    whole = np.full((last + 1 - first, GROUP), neutral(one.kind))
    whole.reshape(-1)[numbers - first * GROUP] = found
    return groups(one.kind, whole)


def _rows(box: Box, whole: Box) -> NDArray[np.int64]:
    """The numbers, in a larger box, of a box's rows: of its lines along the last axis."""
    lines = [np.arange(a - first, b - first) for a, b, first in zip(box.lo, box.hi, whole.lo, strict=True)][:-1]
    numbered: NDArray[np.int64] = reduce(
        lambda found, line: np.add.outer(found * line[1], line[0]).ravel(),
        zip(lines, whole.shape, strict=False),
        np.zeros(1, np.int64),
    )
    return numbered


def _parts(box: Box, whole: Box) -> Iterator[tuple[int, bool, Box]]:
    """The leaves of a row that a box has cells of: number, whether all that count, and which (along the last axis)."""
    lo, hi, first, last = box.lo[-1], box.hi[-1], whole.lo[-1], whole.hi[-1]
    for number in range(lo // LEAF, -(-hi // LEAF)):
        start, end = max(lo, number * LEAF), min(hi, (number + 1) * LEAF)
        complete = start == max(first, number * LEAF) and end == min(last, (number + 1) * LEAF)
        yield number, complete, Box((start,), (end,))

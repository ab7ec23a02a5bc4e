"""Norms of fields on 2D grids on virtual devices, combined from partial results in any order.

The tree of sums is the one of GPUs (`codegen.norm`), fixed in the coordinates of the grid: in bands of 24
rows along axis 0. A band computed as a whole is summed at once; the values of a band that several parts or devices
compute are kept until it is complete. So devices and parts may begin at any row, with the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.norm import NORM_ROWS, total
from peergrid.errors import UsageError
from peergrid.grid import Array, Box
from peergrid.runtime.memory import DeviceMemory
from peergrid.schedule import Layout
from peergrid.schedule.ops import Compute

Sums = Callable[[Array, Array], NDArray[np.float64]]
"""The sums of squared changes of bands of rows, from the values before and after, both of shape (rows, columns)."""


@dataclass
class _Band:
    """The values of a band of which some cells are still to be computed, over the whole width of the grid."""

    box: Box
    before: Array
    after: Array
    missing: int


@dataclass
class _Step:
    """The sums of bands of a step of which some cells are still to be computed."""

    sums: NDArray[np.float64]
    missing: int
    bands: dict[int, _Band] = field(default_factory=dict)
    boxes: list[Box] = field(default_factory=list)  # the cells that were added


Unfinished = Mapping[int, _Step]
"""Steps of which some cells are still to be computed, by their number."""


class Norms:
    """The norms of one state field on all cells of a 2D grid. Devices add their results concurrently.

    Raises UsageError if passes make several steps, as values between them are not stored.
    """

    def __init__(self, layout: Layout, name: str, total_steps: int, sums: Sums) -> None:
        if max(layout.blocks) > 1:
            raise UsageError(
                "With a norm, a pass on virtual devices makes one step, got block = "
                f"{max(layout.blocks)}; leave it out, or give 1."
            )
        self._layout, self._name, self._sums = layout, name, sums
        self._grid = layout.problem.grid
        self._norms = np.full(total_steps, np.nan)
        self._open: dict[int, _Step] = {}
        self._lock = threading.Lock()

    def norms(self, steps: int) -> NDArray[np.float64]:
        """The norms of the first so many steps."""
        return self._norms[:steps].copy()

    def add(self, memory: DeviceMemory, op: Compute, step: int) -> None:
        """Add the cells that a device has just computed, as far as it owns them; step: of the run."""
        cells = op.box & self._layout.partition.owned(memory.device)
        if cells.empty:
            return
        before, after = (memory.block(self._name, slot) for slot in (op.source, op.target))
        opened = self._opened(step)
        whole = self._whole_bands(cells)
        if not whole.empty:
            first, found = whole.lo[0] // NORM_ROWS, self._sums(before.view(whole), after.view(whole))
            opened.sums[first : first + len(found)] = found
        for number, part in self._parts(cells, whole):
            self._add_part(opened, number, part, before.view(part), after.view(part))
        self._added(opened, cells, step)

    def unfinished(self) -> Unfinished:
        """The steps that lack cells of other processes, with the results of this process."""
        return dict(self._open)

    def merge(self, other: Unfinished) -> None:
        """Add the results of another process."""
        for step, theirs in other.items():
            opened = self._opened(step)
            for cells in theirs.boxes:
                whole = self._whole_bands(cells)
                if not whole.empty:
                    bands = slice(whole.lo[0] // NORM_ROWS, -(-whole.hi[0] // NORM_ROWS))
                    opened.sums[bands] = theirs.sums[bands]
                for number, part in self._parts(cells, whole):
                    band = theirs.bands.get(number)
                    if band is None:  # bands that the devices of that process completed
                        opened.sums[number] = theirs.sums[number]
                    else:
                        at = part.slices(band.box.lo)
                        self._add_part(opened, number, part, band.before[at], band.after[at])
                self._added(opened, cells, step)

    def _added(self, opened: _Step, cells: Box, step: int) -> None:
        with self._lock:
            opened.boxes.append(cells)
            opened.missing -= cells.size
            if not opened.missing:
                self._norms[step] = total(opened.sums[None])[0]
                del self._open[step]

    def _opened(self, step: int) -> _Step:
        with self._lock:
            if step not in self._open:
                bands = -(-self._grid.shape[0] // NORM_ROWS)
                self._open[step] = _Step(np.zeros(bands), self._grid.box.size)
            return self._open[step]

    def _add_part(self, opened: _Step, number: int, part: Box, before: Array, after: Array) -> None:
        """Add a part of a band; the last part completes its sum."""
        with self._lock:
            if number not in opened.bands:
                box = self._band(number)
                opened.bands[number] = _Band(box, self._zeros(box), self._zeros(box), box.size)
            band = opened.bands[number]
        band.before[part.slices(band.box.lo)] = before
        band.after[part.slices(band.box.lo)] = after
        with self._lock:
            band.missing -= part.size
            whole = not band.missing
        if whole:
            opened.sums[number] = self._sums(band.before, band.after)[0]
            del opened.bands[number]

    def _zeros(self, box: Box) -> Array:
        return np.zeros(box.shape, self._grid.dtype)

    def _whole_bands(self, cells: Box) -> Box:
        """The whole bands among cells, in one piece."""
        if cells.shape[1] != self._grid.shape[1]:
            return Box(cells.lo, cells.lo)
        end = cells.hi[0] if cells.hi[0] == self._grid.shape[0] else cells.hi[0] // NORM_ROWS * NORM_ROWS
        first = -(-cells.lo[0] // NORM_ROWS) * NORM_ROWS
        return cells.with_axis(0, first, max(first, end))

    def _parts(self, cells: Box, whole: Box) -> Iterator[tuple[int, Box]]:
        """The parts of cells in other bands, each with its band's number."""
        for number in range(cells.lo[0] // NORM_ROWS, -(-cells.hi[0] // NORM_ROWS)):
            part = cells & self._band(number)
            if not whole.covers(part):
                yield number, part

    def _band(self, number: int) -> Box:
        end = min((number + 1) * NORM_ROWS, self._grid.shape[0])
        return self._grid.box.with_axis(0, number * NORM_ROWS, end)

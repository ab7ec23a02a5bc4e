"""The exact cells that a computation reads, from the offsets in its expressions: stage by stage, cell by cell.

It uses neither footprints nor the declared accesses of a schedule. Cells are masks over a window around the box; from
the last stage back to the first, the method finds the cells that must be known before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Grid, Index
from peergrid.stencil import Assignment, Problem, Reduction, Stage, Update
from peergrid.stencil.remember import remembered

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CellSet:
    """A set of cells as a coarse mask: cells between two cuts of an axis are all in it or all outside."""

    cuts: tuple[tuple[int, ...], ...]
    mask: Mask

    @classmethod
    def of(cls, mask: Mask, lo: Index) -> CellSet:
        """The cells of a mask whose first entry is the cell `lo`."""
        cuts = tuple(_cuts(mask, axis) for axis in range(mask.ndim))
        coarse = mask[np.ix_(*(line[:-1] for line in cuts))]
        return cls(tuple(tuple(int(i) + start for i in line) for line, start in zip(cuts, lo, strict=True)), coarse)

    @classmethod
    def all_of(cls, box: Box) -> CellSet:
        """All cells of a box."""
        return cls(tuple(zip(box.lo, box.hi, strict=True)), np.ones((1,) * box.ndim, dtype=np.bool_))

    def boxes(self) -> tuple[Box, ...]:
        """The same cells as boxes that do not overlap."""
        return tuple(
            Box(
                tuple(line[i] for line, i in zip(self.cuts, index, strict=True)),
                tuple(line[i + 1] for line, i in zip(self.cuts, index, strict=True)),
            )
            for index in map(tuple, np.argwhere(self.mask).tolist())
        )


@remembered(2048)
def cells_read(problem: Problem, box: Box, steps: int) -> Mapping[str, CellSet]:
    """The cells of each state field whose values at the start decide the values on `box` after `steps` steps."""
    window = _window(problem, box, steps)
    need = {name: _mask(window, _span(problem, name, box)) for name in problem.state}
    for _ in range(steps):
        for stage in reversed(problem.stages):
            need = _before(problem.grid, stage, need, window)
    return {name: CellSet.of(mask, window.lo) for name, mask in need.items() if mask.any()}


def cells_reduced(problem: Problem, reduction: Reduction, alias: str, box: Box) -> CellSet | None:
    """The cells of a field of the reduction's expression that determine its result on a box, if there are any."""
    cells = box & reduction.box
    offsets = [read.offset for read in reduction.reads if read.field == alias]
    if cells.empty or not offsets:
        return None
    reach = tuple(max(abs(offset[axis]) for offset in offsets) for axis in range(problem.grid.ndim))
    window = problem.grid.clip(cells.grow(reach, reach))
    mask, wanted = np.zeros(window.shape, dtype=np.bool_), np.ones(cells.shape, dtype=np.bool_)
    for offset in offsets:
        _mark(mask, wanted, cells.shift(offset), problem.grid, window)
    return CellSet.of(mask, window.lo)


def cells_written(problem: Problem, box: Box) -> Mapping[str, CellSet]:
    """The cells of each state field that a computation on `box` writes: all that exist there."""
    spans = {name: _span(problem, name, box) for name in problem.state}
    return {name: CellSet.all_of(span) for name, span in spans.items() if not span.empty}


def exact_reads(problem: Problem, name: str, box: Box, steps: int) -> tuple[Box, ...]:
    """As `cells_read`, for one field, as boxes, for the static proof in place of the declared reads."""
    found = cells_read(problem, box, steps).get(name)
    return () if found is None else found.boxes()


def _before(grid: Grid, stage: Stage, need: Mapping[str, Mask], window: Box) -> dict[str, Mask]:
    """The cells that must be known before a stage: those that it does not change, and those that it reads for the
    others.
    """
    before = {name: mask.copy() for name, mask in need.items()}
    for target in stage.targets:
        kept = before[target]
        for update, _ in stage.writers(target):
            for part in grid.images(update.box, window):
                kept[part.slices(window.lo)] = False
    for target in stage.targets:
        for update, assignment in stage.writers(target):
            _ask(grid, update, assignment, need[target], window, before)
    return before


def _ask(grid: Grid, update: Update, assignment: Assignment, need: Mask, window: Box, before: dict[str, Mask]) -> None:
    """Add to `before` what an assignment reads for the cells that are needed of it."""
    for part in grid.images(update.box, window):
        wanted = need[part.slices(window.lo)]
        if not wanted.any():
            continue
        for read in assignment.reads:
            if read.field in before:
                _mark(before[read.field], wanted, part.shift(read.offset), grid, window)


def _mark(mask: Mask, wanted: Mask, seen: Box, grid: Grid, window: Box) -> None:
    """Mark the cells `wanted` of the box `seen`, mirrored back where it lies beyond a reflecting edge."""
    if grid.clip(seen) == seen:
        inside = seen & window
        mask[inside.slices(window.lo)] |= wanted[inside.slices(seen.lo)]
        return
    rows = (_fold(grid, axis, np.arange(seen.lo[axis], seen.hi[axis])) for axis in range(grid.ndim))
    lines = [row - first for row, first in zip(rows, window.lo, strict=True)]
    mask[tuple(line[index] for line, index in zip(lines, np.nonzero(wanted), strict=True))] = True


def _fold(grid: Grid, axis: int, line: NDArray[np.int64]) -> NDArray[np.int64]:
    if grid.boundary[axis] != "reflecting":
        return line
    extent = grid.shape[axis]
    line = np.where(line < 0, -1 - line, line)
    return np.where(line >= extent, 2 * extent - 1 - line, line)


def _window(problem: Problem, box: Box, steps: int) -> Box:
    """A box large enough for every cell that may be read."""
    reach = [0] * problem.grid.ndim
    for stage in problem.stages:
        far = [read.offset for update in stage.updates for read in update.reads]
        for axis in range(problem.grid.ndim):
            reach[axis] += steps * max((abs(offset[axis]) for offset in far), default=0)
    return problem.grid.clip(box.grow(tuple(reach), tuple(reach)))


def _span(problem: Problem, name: str, box: Box) -> Box:
    """The part of a box where a field exists; along periodic axes it exists everywhere."""
    field = problem.fields[name].box
    lo = (a if wraps else max(a, f) for a, f, wraps in zip(box.lo, field.lo, problem.grid.periodic, strict=True))
    hi = (b if wraps else min(b, f) for b, f, wraps in zip(box.hi, field.hi, problem.grid.periodic, strict=True))
    return Box(tuple(lo), tuple(hi))


def _mask(window: Box, box: Box) -> Mask:
    mask = np.zeros(window.shape, dtype=np.bool_)
    if not box.empty:
        mask[box.slices(window.lo)] = True
    return mask


def _cuts(mask: Mask, axis: int) -> NDArray[np.intp]:
    """The places at which the mask changes along an axis, with both ends."""
    lines = np.moveaxis(mask, axis, 0).reshape(mask.shape[axis], -1)
    changes = np.flatnonzero((lines[1:] != lines[:-1]).any(axis=1)) + 1
    return np.concatenate(([0], changes, [mask.shape[axis]]))

"""A box cut into parts whose cells all have the same updates.

Parts are disjoint boxes with labels, such as the updates that apply or the fields that are stored. Pure geometry, for
any dimension and any device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TypeVar

from peergrid.grid import Box, Grid, Index
from peergrid.grid.box import subtract

L = TypeVar("L")
Part = tuple[Box, frozenset[L]]
"""Cells that share labels."""

FAR = 1 << 30  # cells: beyond any grid


def split(parts: Iterable[Part[L]], box: Box, label: L) -> list[Part[L]]:
    """Cut the parts along the faces of a box; those inside it get the label."""
    found: list[Part[L]] = []
    for cells, labels in parts:
        inner = cells & box
        if inner.empty:
            found.append((cells, labels))
        else:
            found += [(outer, labels) for outer in cells - box]
            found.append((inner, labels | {label}))
    return found


def cover(parts: Iterable[Part[L]], boxes: Sequence[Box], label: L) -> list[Part[L]]:
    """The parts, and further ones for the cells of disjoint boxes that were in none."""
    parts = list(parts)
    rest = subtract(boxes, *(cells for cells, _ in parts))
    for box in boxes if parts else ():
        parts = split(parts, box, label)
    return parts + [(cells, frozenset((label,))) for cells in rest]


def unmirrored(grid: Grid, offsets: Iterable[Index]) -> Box:
    """The cells from which no read at these offsets crosses a reflecting edge; without bounds along other axes."""
    lo, hi = [-FAR] * grid.ndim, [FAR] * grid.ndim
    for offset in offsets:
        for axis, distance in enumerate(offset):
            if grid.boundary[axis] == "reflecting":
                lo[axis] = max(lo[axis], -distance)
                hi[axis] = min(hi[axis], grid.shape[axis] - distance)
    return Box(tuple(lo), tuple(hi))


def mirror_cuts(grid: Grid, box: Box, offsets: Iterable[Index]) -> Iterator[Box]:
    """The box cut so that within each part every read is a plain shift: single cells at reflecting edges."""
    inside = unmirrored(grid, offsets)
    spans = [_cuts(box.lo[axis], box.hi[axis], inside.lo[axis], inside.hi[axis]) for axis in range(grid.ndim)]
    for corner in product(*spans):
        yield Box(tuple(lo for lo, _ in corner), tuple(hi for _, hi in corner))


def _cuts(lo: int, hi: int, first: int, last: int) -> list[tuple[int, int]]:
    """A span in single cells before `first` and from `last` on, and what lies between them as one."""
    first = min(max(lo, first), hi)
    last = max(min(hi, last), first)
    middle = [(first, last)] if first < last else []
    return [(i, i + 1) for i in range(lo, first)] + middle + [(i, i + 1) for i in range(last, hi)]


def mirrored(grid: Grid, cell: Index, offset: Index) -> Index:
    """The shift from a cell to where a read at `offset` finds its value."""
    if "reflecting" not in grid.boundary:
        return offset
    shift: list[int] = []
    for i, o, extent, kind in zip(cell, offset, grid.shape, grid.boundary, strict=True):
        at = i + o
        if kind == "reflecting":
            at = -1 - at if at < 0 else at
            at = 2 * extent - 1 - at if at >= extent else at
        shift.append(at - i)
    return tuple(shift)

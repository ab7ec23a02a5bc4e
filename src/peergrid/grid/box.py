"""Boxes of cells: half-open, axis-aligned, in global coordinates. Pure geometry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import lt

import numpy as np
from numpy.typing import NDArray

from peergrid.arguments import brief, whole
from peergrid.errors import UsageError

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True, order=True, init=False)
class Box:
    """The cells `lo <= index < hi` along every axis; coordinates outside the grid are those of ghost cells."""

    lo: Index
    hi: Index

    def __init__(self, lo: Index, hi: Index) -> None:
        """Corners of other sequences than tuples are made tuples."""
        if not (type(lo) is type(hi) is tuple and len(lo) == len(hi)):
            lo, hi = _corners(lo, hi)
        _SET_LO(self, lo)
        _SET_HI(self, hi)

    @classmethod
    def of(cls, shape: Iterable[int]) -> Box:
        """The box of that shape whose first cell is the origin."""
        extent = whole(shape)
        if extent is None:
            raise UsageError(f"The shape of a box is whole numbers such as (8, 8), got {brief(shape)}.")
        return cls((0,) * len(extent), extent)

    @classmethod
    def cell(cls, index: Iterable[int]) -> Box:
        """The box that holds one cell."""
        corner = whole(index)
        if corner is None:
            raise UsageError(f"The cell of a box is whole numbers such as (8, 8), got {brief(index)}.")
        return cls(corner, tuple(i + 1 for i in corner))

    @property
    def ndim(self) -> int:
        return len(self.lo)

    @property
    def shape(self) -> Index:
        return tuple([b - a if b > a else 0 for a, b in zip(self.lo, self.hi, strict=True)])

    @property
    def size(self) -> int:
        """The number of cells in the box."""
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        return not all(map(lt, self.lo, self.hi))

    def lies_in(self, ndim: int) -> bool:
        """True for corners of whole numbers, one for each of so many axes."""
        return len(self.lo) == ndim and None not in (whole(self.lo), whole(self.hi))

    def __and__(self, other: Box) -> Box:
        """The cells in both."""
        return Box(tuple(map(max, self.lo, other.lo)), tuple(map(min, self.hi, other.hi)))

    def __contains__(self, index: object) -> bool:
        return isinstance(index, tuple) and all(a <= i < b for a, i, b in zip(self.lo, index, self.hi, strict=True))

    def holds(self, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
        """True for each of many indices that lies in the box; indices: shape (indices, axes)."""
        inside: NDArray[np.bool_] = np.asarray(np.all((indices >= self.lo) & (indices < self.hi), axis=1))
        return inside

    def overlaps(self, other: Box) -> bool:
        """True if the boxes share a cell."""
        return all(map(lt, map(max, self.lo, other.lo), map(min, self.hi, other.hi)))

    def covers(self, other: Box) -> bool:
        return other.empty or all(
            a <= c and d <= b for a, b, c, d in zip(self.lo, self.hi, other.lo, other.hi, strict=True)
        )

    def hull(self, other: Box) -> Box:
        """The smallest box that contains both; an empty box adds nothing."""
        if self.empty:
            return other
        if other.empty:
            return self
        return Box(tuple(map(min, self.lo, other.lo)), tuple(map(max, self.hi, other.hi)))

    def shift(self, offset: Index) -> Box:
        return Box(
            tuple([a + o for a, o in zip(self.lo, offset, strict=True)]),
            tuple([b + o for b, o in zip(self.hi, offset, strict=True)]),
        )

    def grow(self, below: Index, above: Index) -> Box:
        """Grown by `below` cells towards smaller and `above` towards larger indices, axis by axis."""
        return Box(
            tuple([a - g for a, g in zip(self.lo, below, strict=True)]),
            tuple([b + g for b, g in zip(self.hi, above, strict=True)]),
        )

    def with_axis(self, axis: int, lo: int, hi: int) -> Box:
        """The same box with other bounds along one axis."""
        return Box(
            (*self.lo[:axis], lo, *self.lo[axis + 1 :]),
            (*self.hi[:axis], hi, *self.hi[axis + 1 :]),
        )

    def __sub__(self, other: Box) -> tuple[Box, ...]:
        """The cells of this box outside the other, as disjoint boxes: slabs along axis 0 first."""
        inner = self & other
        if inner.empty:
            return () if self.empty else (self,)
        pieces: list[Box] = []
        rest = self
        for axis in range(self.ndim):
            pieces.append(rest.with_axis(axis, rest.lo[axis], inner.lo[axis]))
            pieces.append(rest.with_axis(axis, inner.hi[axis], rest.hi[axis]))
            rest = rest.with_axis(axis, inner.lo[axis], inner.hi[axis])
        return tuple(piece for piece in pieces if not piece.empty)

    def slices(self, origin: Index) -> tuple[slice, ...]:
        """The slices of the box in an array whose first element is the cell `origin`."""
        return tuple(slice(a - o, b - o) for a, b, o in zip(self.lo, self.hi, origin, strict=True))

    def slabs(self, most: int) -> Iterator[Box]:
        """The box cut along its first axis into parts of at most so many cells, at least one row each, in order."""
        rows = max(1, most * self.shape[0] // max(1, self.size))
        for first in range(self.lo[0], self.hi[0], rows):
            yield self.with_axis(0, first, min(first + rows, self.hi[0]))

    def cells(self) -> Iterator[Index]:
        """Every index of the box in C order; for tests and small boxes."""
        return product(*(range(a, b) for a, b in zip(self.lo, self.hi, strict=True)))

    def __str__(self) -> str:
        return "×".join(f"[{a},{b})" for a, b in zip(self.lo, self.hi, strict=True))


# Boxes are made in millions: by `object.__setattr__`, as frozen classes do it, this takes twice as long.
_SET_LO, _SET_HI = (vars(Box)[name].__set__ for name in ("lo", "hi"))


def _corners(lo: object, hi: object) -> tuple[Index, Index]:
    low, high = whole(lo), whole(hi)
    if low is None or high is None or len(low) != len(high):
        raise UsageError(
            "A box takes two corners of as many whole numbers, such as Box((0, 0), (8, 8)), "
            f"got {brief(lo)} and {brief(hi)}."
        )
    return low, high


def intersect(boxes: Iterable[Box], *others: Box) -> tuple[Box, ...]:
    """The parts of boxes in others, box by box; disjoint if both are."""
    return tuple([box & other for box in boxes for other in others if box.overlaps(other)])


def subtract(boxes: Iterable[Box], *cuts: Box) -> tuple[Box, ...]:
    """The cells of disjoint boxes outside all the cuts, as disjoint boxes.

    Pieces are compared only with cuts that meet the box they are of: there may be thousands of both.
    """
    rest: list[Box] = []
    waiting = [(box, cuts) for box in boxes][::-1]
    while waiting:
        box, others = waiting.pop()
        others = tuple(cut for cut in others if box.overlaps(cut))
        if others:
            waiting += [(piece, others[1:]) for piece in reversed(box - others[0])]
        elif not box.empty:
            rest.append(box)
    return tuple(rest)


def disjoint(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """The cells of all boxes as disjoint boxes: of each those that are in none before it."""
    found: tuple[Box, ...] = ()
    for box in boxes:
        found += subtract(() if box.empty else (box,), *found)
    return found

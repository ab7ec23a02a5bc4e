"""Cells and components of a grid while objects are rasterised, later ones over earlier ones.

A cell has a medium (`solid`), and a component of a node one of its own (`ids`). Components around a cell that is not
smoothed are fixed: they keep the medium of the last such object. All others are averaged in the end (`averages`). Which
components are fixed is known for each cell by a bit for each of its twelve edges and six faces: a cell that is put in
later, smoothed, takes back its own bits alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Index

NOTHING = (1 << 16) - 1
"""In arrays of media: no medium."""

Mask = NDArray[np.bool_]
Ids = NDArray[np.uint16]
Offset = tuple[int, int, int]


def _edges(axis: int) -> tuple[Offset, ...]:
    """From a cell to the nodes of its edges along an axis."""
    offsets = product(*((0,) if k == axis else (0, 1) for k in range(3)))
    return tuple((o[0], o[1], o[2]) for o in offsets)


def _faces(axis: int) -> tuple[Offset, ...]:
    """From a cell to the nodes of its faces normal to an axis."""
    return (0, 0, 0), (int(axis == 0), int(axis == 1), int(axis == 2))


OFFSETS: tuple[tuple[Offset, ...], ...] = (*(_edges(a) for a in range(3)), *(_faces(a) for a in range(3)))
"""For each component, the nodes at which it touches a cell, by their distance from the cell's."""

BIT = {
    (component, offset): np.uint32(1 << place)
    for place, (component, offset) in enumerate((c, o) for c in range(6) for o in OFFSETS[c])
}


@dataclass(frozen=True)
class Place:
    """Cells, or nodes, from `lo` to before `hi`: those marked by the mask, or all without a mask."""

    lo: Index
    hi: Index
    mask: Mask | None = None

    @property
    def empty(self) -> bool:
        """True if no cell is in it."""
        return any(h <= b for b, h in zip(self.lo, self.hi, strict=True)) or (
            self.mask is not None and not self.mask.any()
        )


@dataclass(frozen=True)
class Filling:
    """The medium of cells, that of their components along x, y and z, and which of the six components are fixed.

    None leaves a component as it was, fixed or not: magnetic ones in perfect conductors.
    """

    solid: int
    along: tuple[int, int, int]
    fixed: tuple[bool | None, ...]


class Raster:
    """The arrays of a grid of `cells`, filled with medium `background`."""

    def __init__(self, cells: Index, background: int) -> None:
        self.cells = cells
        self.solid: Ids = np.full(cells, background, np.uint16)
        nodes = tuple(n + 1 for n in cells)
        self.ids: Ids = np.full((6, *nodes), background, np.uint16)
        self.fixed: NDArray[np.uint32] = np.zeros(nodes, np.uint32)

    def fill(self, place: Place, filling: Filling) -> None:
        """Fill cells."""
        where = tuple(slice(b, h) for b, h in zip(place.lo, place.hi, strict=True))
        fixing = {key: bit for key, bit in BIT.items() if filling.fixed[key[0]]}
        _assign(self.solid[where], place.mask, filling.solid)
        kept = np.uint32(sum(bit for key, bit in BIT.items() if filling.fixed[key[0]] is None))
        bits = self.fixed[where]
        own = bits if place.mask is None else bits[place.mask]
        _assign(bits, place.mask, own & kept | np.uint32(sum(fixing.values())))
        for component, offset in fixing:
            shifted = tuple(slice(s.start + d, s.stop + d) for s, d in zip(where, offset, strict=True))
            _assign(self.ids[component][shifted], place.mask, filling.along[component % 3])

    def fill_each(self, lo: Index, numbers: Ids, fillings: Mapping[int, Filling]) -> None:
        """Fill cells from `lo` on, each with a medium by its number; NOTHING leaves a cell as it was.

        If several cells fix one component, the last one along x, then y, then z wins.
        """
        inside = numbers != NOTHING
        where = tuple(slice(b, b + n) for b, n in zip(lo, numbers.shape, strict=True))
        kept, fixing = (np.zeros(1 << 16, np.uint32) for _ in range(2))
        for number, filling in fillings.items():
            kept[number] = sum(bit for key, bit in BIT.items() if filling.fixed[key[0]] is None)
            fixing[number] = sum(bit for key, bit in BIT.items() if filling.fixed[key[0]])
        np.copyto(self.solid[where], numbers, where=inside)
        bits, own = self.fixed[where], fixing[numbers]
        np.copyto(bits, bits & kept[numbers] | own, where=inside)
        for (component, offset), bit in sorted(BIT.items(), reverse=True):
            shifted = tuple(slice(s.start + d, s.stop + d) for s, d in zip(where, offset, strict=True))
            np.copyto(self.ids[component][shifted], numbers, where=inside & (own & bit != 0))

    def insert(self, lo: Index, solid: Ids, ids: Ids, fixed: NDArray[np.uint32]) -> None:
        """Fill cells from `lo` on, with the media of their components and the bits of those that are fixed.

        NOTHING leaves a cell, or a component with its bits, as it was.
        """
        where = tuple(slice(b, b + n) for b, n in zip(lo, solid.shape, strict=True))
        np.copyto(self.solid[where], solid, where=solid != NOTHING)
        nodes = tuple(slice(b, b + n) for b, n in zip(lo, ids.shape[1:], strict=True))
        np.copyto(self.ids[(slice(None), *nodes)], ids, where=ids != NOTHING)
        for (component, offset), bit in BIT.items():
            shifted = tuple(
                slice(min(d, n - m), None) for d, n, m in zip(offset, ids.shape[1:], solid.shape, strict=True)
            )
            there = ids[component][shifted][tuple(slice(0, n) for n in solid.shape)] != NOTHING
            bits = self.fixed[where]
            np.copyto(bits, bits & ~bit | fixed & bit, where=there)

    def fix(self, component: int, place: Place, medium: int) -> None:
        """Set the medium of a component at nodes."""
        where = tuple(slice(b, h) for b, h in zip(place.lo, place.hi, strict=True))
        _assign(self.ids[component][where], place.mask, medium)
        for offset in OFFSETS[component]:
            inner = tuple(max(0, d - b) for b, d in zip(place.lo, offset, strict=True))
            own = tuple(slice(s.start + i - d, s.stop - d) for s, d, i in zip(where, offset, inner, strict=True))
            mask = None if place.mask is None else place.mask[tuple(slice(i, None) for i in inner)]
            _mark(self.fixed[own], mask, BIT[component, offset])

    def averages(self) -> Iterator[tuple[int, tuple[slice, slice, slice], Mask, tuple[Ids, ...]]]:
        """Components to average, plane by plane: the component, the plane of nodes, the nodes in it, the cells
        around.
        """
        for plane in range(self.cells[0]):
            where = (slice(plane, plane + 1), slice(0, self.cells[1]), slice(0, self.cells[2]))
            for component in range(6):
                fixed = np.zeros((1, *self.cells[1:]), np.bool_)
                around = []
                for offset in OFFSETS[component]:
                    here = slice(max(0, plane - offset[0]), max(0, plane - offset[0]) + 1)
                    around.append(_before(self.solid[here], offset))
                    if plane >= offset[0]:
                        bits = self.fixed[here, : self.cells[1], : self.cells[2]] & BIT[component, offset]
                        fixed |= _before(bits, offset, outside=0) != 0
                yield component, where, ~fixed, tuple(around)


def _before(values: NDArray[Any], offset: Offset, outside: int | None = None) -> NDArray[Any]:
    """The value of the cell that lies so far before, in a plane; at the low end the first, or `outside`."""
    found = values
    for axis in (1, 2):
        if offset[axis]:
            first = np.take(found, [0], axis) if outside is None else np.zeros_like(np.take(found, [0], axis))
            rest = np.delete(found, -1, axis)
            found = np.concatenate([first, rest], axis)
    return found


def _assign(values: NDArray[Any], mask: Mask | None, value: Any) -> None:
    values[... if mask is None else mask] = value


def _mark(values: NDArray[np.uint32], mask: Mask | None, bit: np.uint32) -> None:
    values[...] |= bit if mask is None else np.where(mask, bit, np.uint32(0))

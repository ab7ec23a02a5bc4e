"""The grid cut into one box for each device."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise, product
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from peergrid.arguments import brief, whole
from peergrid.errors import UsageError
from peergrid.grid.box import Box, Index
from peergrid.grid.grid import Grid


@dataclass(frozen=True)
class Partition:
    """The grid cut along its axes: `parts[a]` pieces along axis `a`, numbered in C order.

    cuts: for each axis the first cells of its pieces, and its end, as (0, …, extent). By default, pieces along an axis
    differ by at most one cell, larger ones first.
    """

    grid: Grid
    parts: Index
    cuts: tuple[Index, ...] = ()

    def __post_init__(self) -> None:
        parts = whole(self.parts)
        if parts is None or len(parts) != self.grid.ndim or min(parts) < 1:
            raise UsageError(
                f"A split gives a positive number of parts for each of the {self.grid.ndim} axes, "
                f"got {brief(self.parts)}."
            )
        object.__setattr__(self, "parts", parts)
        for axis, (number, extent) in enumerate(zip(parts, self.grid.shape, strict=True)):
            if number > extent:
                raise UsageError(
                    f"The grid has {extent} cells along axis {axis}, too few for {number} parts; "
                    f"use at most {extent} devices there or split another axis."
                )
        if not self.cuts:
            even = (even_cuts(n, p) for n, p in zip(self.grid.shape, self.parts, strict=True))
            object.__setattr__(self, "cuts", tuple(even))
        if tuple(len(cuts) - 1 for cuts in self.cuts) != self.parts:
            raise UsageError(f"A split in {self.parts} parts has one cut more than parts, got {self.cuts}.")
        for axis, (cuts, extent) in enumerate(zip(self.cuts, self.grid.shape, strict=True)):
            if (cuts[0], cuts[-1]) != (0, extent) or any(a >= b for a, b in pairwise(cuts)):
                raise UsageError(f"Cuts along axis {axis} rise from 0 to {extent}, got {cuts}.")

    @classmethod
    def slabs(cls, grid: Grid, cuts: Sequence[int]) -> Partition:
        """Slabs along axis 0 between the cuts, the first of which is 0, the last the extent of the axis."""
        whole = tuple((0, extent) for extent in grid.shape[1:])
        return cls(grid, (len(cuts) - 1,) + (1,) * (grid.ndim - 1), (tuple(cuts), *whole))

    @classmethod
    def over(cls, grid: Grid, devices: int) -> Partition:
        """The default split over so many devices: along axis 0 if it has enough cells, else that with the smallest
        halos.

        Slabs along axis 0 keep ghost layers contiguous in memory and leave whole rows to the kernels.
        """
        if devices < 1:
            raise UsageError(f"A grid is split over at least one device, got {devices}.")
        if devices <= grid.shape[0]:
            return cls(grid, (devices,) + (1,) * (grid.ndim - 1))
        possible = splits(grid, devices)
        if not possible:
            raise UsageError(
                f"A grid of shape {grid.shape} cannot be cut into {devices} boxes; use fewer devices or a larger grid."
            )
        return possible[0]

    @property
    def devices(self) -> int:
        return prod(self.parts)

    def coordinates(self, device: int) -> Index:
        """The place of a device in the lattice of parts."""
        place: list[int] = []
        for parts in reversed(self.parts):
            device, here = divmod(device, parts)
            place.append(here)
        return tuple(reversed(place))

    def owned(self, device: int) -> Box:
        """The cells that a device owns."""
        return self._boxes[device]

    def owners(self, box: Box) -> tuple[int, ...]:
        """The devices that own a cell of a box or, around periodic edges, its image; ascending."""
        spans = zip(self.cuts, self.grid.periodic, box.lo, box.hi, strict=True)
        lattice = product(*(_pieces(cuts, lo, hi, wraps=wraps) for cuts, wraps, lo, hi in spans))
        return tuple(
            reduce(lambda number, at: number * at[1] + at[0], zip(place, self.parts, strict=True), 0)
            for place in lattice
        )

    @cached_property
    def _boxes(self) -> tuple[Box, ...]:
        spans = [list(pairwise(cuts)) for cuts in self.cuts]
        return tuple(Box(tuple(a for a, _ in span), tuple(b for _, b in span)) for span in product(*spans))


def splits(grid: Grid, devices: int, beside: Index | None = None) -> tuple[Partition, ...]:
    """The even splits over so many devices, smallest halos first, among equal ones those with cuts along the first
    axes; beside: only splits with smaller halos than these parts.
    """
    found = [p for p in _factorings(devices, grid.ndim) if all(a <= n for a, n in zip(p, grid.shape, strict=True))]
    most = inf if beside is None else _surface(grid.shape, beside)
    fewer = (parts for parts in found if beside is None or _surface(grid.shape, parts) < most)
    ordered = sorted(fewer, key=lambda parts: (_surface(grid.shape, parts), tuple(-part for part in parts)))
    return tuple(Partition(grid, parts) for parts in ordered)


def even_cuts(extent: int, parts: int) -> Index:
    """Cuts of an axis into pieces that differ by at most one cell, larger ones first."""
    size, larger = divmod(extent, parts)
    return tuple(i * size + min(i, larger) for i in range(parts + 1))


def balanced_cuts(costs: Sequence[int] | NDArray[np.int64], parts: int, align: int = 1, least: int = 1) -> Index:
    """Cuts of an axis, at multiples of `align`, into pieces of equal cost as nearly as those multiples allow.

    costs: of each cell of the axis, whole numbers above zero; least: the fewest cells of a piece. If so many pieces of
    that length do not fit, even cuts at any cell.
    """
    ends = [*range(0, len(costs), align), len(costs)]
    short, last = -(-least // align), len(costs) // align
    if parts * short > last:
        return even_cuts(len(costs), parts)
    sums = np.concatenate(([0], np.cumsum(np.asarray(costs, np.int64))))[ends]
    places = [0]
    for part in range(1, parts):
        place = _nearest(sums * parts, int(sums[-1]) * part)
        places.append(min(max(place, places[-1] + short), last - (parts - part) * short))
    return (*(ends[place] for place in places), len(costs))


def _nearest(rising: NDArray[np.int64], value: int) -> int:
    """The place of the number nearest to a value that lies between the first and the last."""
    above = int(np.searchsorted(rising, value))
    return above - (value - int(rising[max(above - 1, 0)]) < int(rising[above]) - value)


def _pieces(cuts: Index, lo: int, hi: int, *, wraps: bool) -> list[int]:
    """The pieces of an axis with a cell in lo to hi, images counted where the axis wraps; ascending."""
    extent = cuts[-1]
    found: set[int] = set()
    for image in range(lo // extent, -(-hi // extent)) if wraps else (0,):
        first, end = max(lo - image * extent, 0), min(hi - image * extent, extent)
        if first < end:
            found.update(range(bisect_right(cuts, first) - 1, bisect_left(cuts, end)))
    return sorted(found)


def _factorings(number: int, axes: int) -> list[Index]:
    if axes == 1:
        return [(number,)]
    return [(d, *rest) for d in range(1, number + 1) if number % d == 0 for rest in _factorings(number // d, axes - 1)]


def _surface(shape: Index, parts: Index) -> float:
    """The number of cells in all cuts."""
    cells = prod(shape)
    return sum((p - 1) * cells / n for p, n in zip(parts, shape, strict=True))

"""The grid cut into one box for each device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod

from peergrid.errors import UsageError
from peergrid.grid.box import Box, Index
from peergrid.grid.grid import Grid


@dataclass(frozen=True)
class Partition:
    """The grid cut evenly along its axes: `parts[a]` pieces along axis `a`, numbered in C order.

    Pieces along an axis differ by at most one cell, larger ones first.
    """

    grid: Grid
    parts: Index

    def __post_init__(self) -> None:
        if len(self.parts) != self.grid.ndim or any(p < 1 for p in self.parts):
            raise UsageError(
                f"A split gives a positive number of parts for each of the {self.grid.ndim} axes, got {self.parts}."
            )
        for axis, (parts, extent) in enumerate(zip(self.parts, self.grid.shape, strict=True)):
            if parts > extent:
                raise UsageError(
                    f"The grid has {extent} cells along axis {axis}, too few for {parts} parts; "
                    f"use at most {extent} devices there or split another axis."
                )

    @classmethod
    def over(cls, grid: Grid, devices: int) -> Partition:
        """The usual split over that many devices: along axis 0 while it has the cells, else the smallest halos.

        Slabs along axis 0 keep ghost layers contiguous in memory and leave whole rows to the kernels.
        """
        if devices < 1:
            raise UsageError(f"A grid is split over at least one device, got {devices}.")
        if devices <= grid.shape[0]:
            return cls(grid, (devices,) + (1,) * (grid.ndim - 1))
        fitting = [
            p for p in _factorings(devices, grid.ndim) if all(a <= n for a, n in zip(p, grid.shape, strict=True))
        ]
        if not fitting:
            raise UsageError(
                f"A grid of shape {grid.shape} cannot be cut into {devices} boxes; use fewer devices or a larger grid."
            )
        return cls(grid, min(fitting, key=lambda parts: _surface(grid.shape, parts)))

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

    @cached_property
    def _boxes(self) -> tuple[Box, ...]:
        cuts = [_cuts(n, p) for n, p in zip(self.grid.shape, self.parts, strict=True)]
        spans = [list(pairwise(c)) for c in cuts]
        return tuple(Box(tuple(a for a, _ in span), tuple(b for _, b in span)) for span in product(*spans))


def _cuts(extent: int, parts: int) -> list[int]:
    size, larger = divmod(extent, parts)
    return [i * size + min(i, larger) for i in range(parts + 1)]


def _factorings(number: int, axes: int) -> list[Index]:
    if axes == 1:
        return [(number,)]
    return [(d, *rest) for d in range(1, number + 1) if number % d == 0 for rest in _factorings(number // d, axes - 1)]


def _surface(shape: Index, parts: Index) -> float:
    """Cells in all cuts together; ties go to cuts along the first axes."""
    cells = prod(shape)
    return sum((p - 1) * cells / n for p, n in zip(parts, shape, strict=True))

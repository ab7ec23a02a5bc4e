"""Memory in compressed coordinates: cells that no edge of any box separates are one cell.

Every buffer (a field of a device in one slot) is a plane of such cells, and all planes are in one flat array.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Index
from peergrid.schedule.access import Buffer

Cells = NDArray[np.int64]
"""Numbers of cells in the flat array."""


@dataclass(frozen=True, eq=False)
class Plane:
    """One buffer: the cuts along each axis, and the position of its first cell in the flat array."""

    cuts: tuple[tuple[int, ...], ...]
    offset: int

    @property
    def shape(self) -> Index:
        return tuple(len(cuts) - 1 for cuts in self.cuts)

    def cells(self, box: Box) -> Cells:
        """The cells of a box whose edges are all among the cuts."""
        flat = np.zeros(1, dtype=np.int64)
        for line, lo, hi in zip(self._ranks, box.lo, box.hi, strict=True):
            flat = (flat[:, np.newaxis] * (len(line) - 1) + np.arange(line[lo], line[hi])).ravel()
        return flat + self.offset

    def box(self, cell: int) -> Box:
        """The cells of the grid that one cell of the plane represents."""
        index = np.unravel_index(cell - self.offset, self.shape)
        spans = [(cuts[int(i)], cuts[int(i) + 1]) for cuts, i in zip(self.cuts, index, strict=True)]
        return Box(tuple(a for a, _ in spans), tuple(b for _, b in spans))

    @cached_property
    def _ranks(self) -> tuple[dict[int, int], ...]:
        return tuple({cut: rank for rank, cut in enumerate(cuts)} for cuts in self.cuts)


@dataclass(frozen=True, eq=False)
class Planes:
    """All planes; size: their total number of cells."""

    planes: Mapping[Buffer, Plane]
    size: int

    @classmethod
    def over(cls, boxes: Iterable[tuple[Buffer, Box]]) -> Planes:
        """Planes that resolve all these boxes."""
        edges: dict[Buffer, tuple[set[int], ...]] = {}
        for buffer, box in boxes:
            lines = edges.setdefault(buffer, tuple(set() for _ in box.lo))
            for line, lo, hi in zip(lines, box.lo, box.hi, strict=True):
                line.update((lo, hi))
        planes: dict[Buffer, Plane] = {}
        size = 0
        for buffer, lines in edges.items():
            planes[buffer] = Plane(tuple(tuple(sorted(line)) for line in lines), size)
            size += int(np.prod(planes[buffer].shape))
        return cls(planes, size)

    def cells(self, boxes: Iterable[tuple[Buffer, Box]]) -> Cells:
        """The cells of some boxes, one after the other."""
        found = [self.planes[buffer].cells(box) for buffer, box in boxes]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

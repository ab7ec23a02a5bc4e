"""The combinations of media that cells have: of all components together, so that one field says what a cell is made of.

A cell has a medium for each component, but few of the possible combinations occur: one for each medium, and some at
each surface. They are numbered in the order of their media, component by component, a slab of the grid at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Index
from peergrid.models.fdtd3d.domain import Component, MediaIds
from peergrid.models.fdtd3d.lattice import AT_ONCE, Lattice

MOST = 64
"""Combinations up to which they are numbered: processors permute tables of so many, which takes less time than reading
fields; of longer tables it takes more (`benchmarks/media_cpu.py`)."""

Classes = Mapping[Component, NDArray[np.intp]]
"""For each component a class of each medium: of those that are the same to it, the same."""


@dataclass(frozen=True, eq=False)
class ByMedium:
    """The values of a field on a box: a number for each medium, at the medium of each cell.

    others: media of single cells that take the place of those in `ids`.
    """

    numbers: NDArray[Any]
    ids: MediaIds
    others: Mapping[Index, int]

    @classmethod
    def of(cls, lattice: Lattice, component: Component, numbers: NDArray[Any]) -> ByMedium:
        return cls(numbers, lattice.ids(component), lattice.others.get(component, {}))

    def __call__(self, box: Box) -> NDArray[Any]:
        found: NDArray[Any] = self.numbers[self.ids[box.slices((0,) * box.ndim)]]
        for cell, medium in self.others.items():
            if cell in box:
                found[tuple(i - lo for i, lo in zip(cell, box.lo, strict=True))] = self.numbers[medium]
        return found


@dataclass(frozen=True, eq=False)
class Combinations:
    """The number of each cell's combination, and of each combination the classes of its media, by component."""

    numbers: NDArray[np.uint8]
    classes: Classes

    def __call__(self, box: Box) -> NDArray[np.uint8]:
        """The numbers on a box, as a field takes them."""
        found: NDArray[np.uint8] = self.numbers[box.slices((0,) * box.ndim)]
        return found


def combinations(lattice: Lattice, classes: Classes) -> Combinations | None:
    """The combinations of the components that `classes` names; None where there are more than `MOST`."""
    numbers = np.zeros(lattice.grid.shape, np.uint8)
    known: dict[Component, NDArray[np.intp]] = {}
    count = 1
    for component, given in classes.items():
        kinds, of_cell = int(given.max()) + 1, ByMedium.of(lattice, component, given)
        seen = np.zeros(count * kinds, np.bool_)
        for slab in lattice.grid.box.slabs(AT_ONCE):
            seen[_pairs(numbers, of_cell, kinds, slab)] = True
        pairs = np.flatnonzero(seen)
        if len(pairs) > MOST:
            return None
        place = np.cumsum(seen) - 1
        for slab in lattice.grid.box.slabs(AT_ONCE):
            numbers[slab.slices((0,) * slab.ndim)] = place[_pairs(numbers, of_cell, kinds, slab)]
        known = {one: found[pairs // kinds] for one, found in known.items()} | {component: pairs % kinds}
        count = len(pairs)
    return Combinations(numbers, known)


def _pairs(numbers: NDArray[np.uint8], of_cell: ByMedium, kinds: int, slab: Box) -> NDArray[np.intp]:
    """The numbers so far, each with the class of one more component, as one number."""
    found: NDArray[np.intp] = kinds * numbers[slab.slices((0,) * slab.ndim)].astype(np.intp) + of_cell(slab)
    return found

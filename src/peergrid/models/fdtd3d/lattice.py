"""A domain on the grid of its problem: which axes live, where each component is updated, what medium is where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Grid, Index
from peergrid.models.fdtd3d.domain import (
    AXES,
    COMPONENTS,
    PEC,
    SIDES,
    Component,
    Domain,
    MediaIds,
    Medium,
    Slab,
    VoltageSource,
)

AT_ONCE = 1 << 22  # nodes whose media are looked at together


@dataclass(frozen=True, eq=False)
class Lattice:
    """A domain with the media of its sources, on the grid of its problem.

    axes: those along which something varies, in the order of the grid's; media: the domain's and the sources';
    others: for each component the media of single cells that take the place of the domain's.
    """

    domain: Domain
    grid: Grid
    axes: tuple[int, ...]
    media: tuple[Medium, ...]
    others: Mapping[Component, Mapping[Index, int]]

    @classmethod
    def of(cls, domain: Domain) -> Lattice:
        axes = tuple(axis for axis in range(3) if axis != domain.invariant)
        grid = Grid(tuple(domain.nodes[axis] for axis in axes), "fixed", domain.dtype)
        plain = cls(domain, grid, axes, domain.media, {})
        media, others = list(domain.media), dict[Component, dict[Index, int]]()
        for source in domain.sources:
            if isinstance(source, VoltageSource) and source.resistance > 0:
                component, cell = electric_of(source.axis), plain.cell(source.node)
                own = others.setdefault(component, {})
                around = media[own.get(cell, plain.medium_at(component, cell))]
                through = source.resistance * plain.face(component)
                length = domain.spacing[AXES.index(source.axis)]
                own[cell] = len(media)
                media.append(replace(around, conductivity=around.conductivity + length / through))
        for wire in domain.wires:
            own = others.setdefault(electric_of(wire.axis), {})
            for number in range(wire.edges):
                node = tuple(i + number * (AXES[axis] == wire.axis) for axis, i in enumerate(wire.node))
                own[plain.cell(node)] = len(media)
        media += [PEC] * bool(domain.wires)
        return replace(plain, media=tuple(media), others=others)

    def cell(self, node: Index) -> Index:
        """The cell of the grid that a node of the domain is."""
        return tuple(node[axis] for axis in self.axes)

    def along(self, axis: int) -> int | None:
        """The grid's axis that is the domain's; None where nothing varies along it."""
        return self.axes.index(axis) if axis in self.axes else None

    def ids(self, component: Component) -> MediaIds:
        """The domain's medium of each cell."""
        found: MediaIds = self.domain.ids[COMPONENTS.index(component)].reshape(self.grid.shape)
        return found

    def medium_at(self, component: Component, cell: Index) -> int:
        """The index of the medium of a cell."""
        known = self.others.get(component, {}).get(cell)
        return int(self.ids(component)[cell]) if known is None else known

    def face(self, component: Component) -> float:
        """The area (m²) of the face that a component passes through."""
        own = AXES.index(component[1])
        spacing = self.domain.spacing
        return spacing[(own + 1) % 3] * spacing[(own + 2) % 3]

    def scale(self, component: Component) -> float:
        """The length of a component's edge over the area of its face, 1/m."""
        return self.domain.spacing[AXES.index(component[1])] / self.face(component)

    def region(self, component: Component) -> Box:
        """The cells on which a component changes: tangential E stays zero on the outermost nodes."""
        first = [int(component[0] == "E" and AXES[axis] != component[1]) for axis in self.axes]
        return Box(tuple(first), tuple(n - 1 for n in self.grid.shape))

    def ends(self, axis: int) -> tuple[Slab | None, Slab | None]:
        """The absorbers at the low and the high end of one of the grid's axes."""
        slabs = {side: slab for side, slab in self.domain.absorber.slabs if slab.cells}
        low, high = SIDES[2 * self.axes[axis] : 2 * self.axes[axis] + 2]
        return slabs.get(low), slabs.get(high)

    def absorbs(self, cell: Index) -> bool:
        """True for a cell inside an absorber."""
        for axis, i in enumerate(cell):
            low, high = (slab.cells if slab else 0 for slab in self.ends(axis))
            last = self.grid.shape[axis] - 1
            if (low and i < low) or (high and i > last - high):
                return True
        return False

    def used(self, component: Component) -> NDArray[np.bool_]:
        """For each medium, whether some cell on which the component changes has it."""
        found = np.zeros(len(self.media), np.bool_)
        ids = self.ids(component)
        for slab in self.region(component).slabs(AT_ONCE):
            found[ids[slab.slices((0,) * slab.ndim)]] = True
        found[list(self.others.get(component, {}).values())] = True
        return found

    @cached_property
    def dispersive(self) -> Box | None:
        """The box of all cells whose electric fields have poles; None where there are none."""
        marked = np.array([bool(medium.poles) for medium in self.media])
        if not marked.any():
            return None
        found = Box.of((0,) * self.grid.ndim)
        for component in self.domain.live:
            if component[0] == "E":
                found = found.hull(_hull(marked, self.ids(component), self.region(component)))
        return None if found.empty else found


def electric_of(axis: str) -> Component:
    """The component of E along an axis."""
    found: Component = f"E{axis}"  # type: ignore[assignment]
    return found


def _hull(marked: NDArray[np.bool_], ids: MediaIds, box: Box) -> Box:
    """The smallest box around the cells of a box whose medium is marked."""
    rows = [np.zeros(n, np.bool_) for n in ids.shape]
    for slab in box.slabs(AT_ONCE):
        there = marked[ids[slab.slices((0,) * slab.ndim)]]
        for axis, row in enumerate(rows):
            others = tuple(k for k in range(there.ndim) if k != axis)
            row[slab.lo[axis] : slab.hi[axis]] |= there.any(axis=others)
    found = [np.flatnonzero(row) for row in rows]
    if not all(len(places) for places in found):
        return Box.of((0,) * ids.ndim)
    return Box(tuple(int(p[0]) for p in found), tuple(int(p[-1]) + 1 for p in found))

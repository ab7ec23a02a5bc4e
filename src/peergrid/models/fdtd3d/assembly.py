"""From stencils to the stages of a step: each stage in disjoint boxes, absorbers and poles confined to their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product

from peergrid.grid import Box, Field
from peergrid.grid.box import subtract
from peergrid.models.fdtd3d.absorber import curves
from peergrid.models.fdtd3d.domain import AXES, Component
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import Factors
from peergrid.models.fdtd3d.yee import Curl, Stretched, advance, neighbours
from peergrid.stencil import Update

Layers = Mapping[tuple[Component, int, bool], Stretched]
"""The stretched derivative of a component along an axis of the grid, at its low (False) or high (True) end."""


@dataclass(frozen=True)
class Half:
    """One half of a step, that of E or of H: its components, their factors, and their stretched derivatives."""

    lattice: Lattice
    fields: Mapping[Component, Field]
    components: tuple[Component, ...]
    factors: Mapping[Component, Factors]
    layers: Layers
    electric: bool

    def updates(self) -> tuple[Update, ...]:
        """The updates of the half: on most cells all components together, on the rest one by one."""
        parts = {c: list(self._boxes(c)) for c in self.components}
        core = reduce(Box.__and__, (max(boxes, key=lambda box: box.size) for boxes in parts.values()))
        made = [] if core.empty else [self._update(core, self.components)]
        for component, boxes in parts.items():
            made += [self._update(box, (component,)) for box in subtract(boxes, core)]
        return tuple(made)

    def _boxes(self, component: Component) -> Iterator[Box]:
        """The cells on which a component changes, cut so that within a box all have the same done to them."""
        region = self.lattice.region(component)
        spans = [list(pairwise(sorted(self._cuts(component, axis)))) for axis in range(region.ndim)]
        for corner in product(*spans):
            yield Box(tuple(lo for lo, _ in corner), tuple(hi for _, hi in corner))

    def _cuts(self, component: Component, axis: int) -> set[int]:
        region = self.lattice.region(component)
        lo, hi = region.lo[axis], region.hi[axis]
        found = {lo, hi}
        if self.lattice.along(AXES.index(component[1])) != axis:
            for far in (False, True):
                found |= set(layer_span(self.lattice, axis, far, self.electric))
        dispersive = self.lattice.dispersive if self.electric else None
        if dispersive is not None:
            found |= {dispersive.lo[axis], dispersive.hi[axis]}
        return {cut for cut in found if lo <= cut <= hi}

    def _update(self, box: Box, active: Sequence[Component]) -> Update:
        name = "electric" if self.electric else "magnetic"
        return advance(name, box, [self._curl(c, box) for c in active], ahead=not self.electric)

    def _curl(self, component: Component, box: Box) -> Curl:
        lattice, own = self.lattice, self.factors[component]
        differences = []
        for sign, along, of in neighbours(component):
            axis = lattice.along(along)
            if axis is not None:
                differences.append((sign, axis, self.fields[of], self._layer(component, axis, box)))
        poles = own.poles if lattice.dispersive is not None and lattice.dispersive.covers(box) else ()
        return Curl(self.fields[component], own.keep, own.factor, tuple(differences), poles)

    def _layer(self, component: Component, axis: int, box: Box) -> Stretched | None:
        for far in (False, True):
            lo, hi = layer_span(self.lattice, axis, far, self.electric)
            if lo <= box.lo[axis] and box.hi[axis] <= hi:
                return self.layers.get((component, axis, far))
        return None


def half(
    lattice: Lattice, fields: Mapping[Component, Field], factors: Mapping[Component, Factors], letter: str
) -> Half:
    """One half of a step; letter: E or H."""
    components = tuple(c for c in lattice.domain.live if c[0] == letter)
    layers = _layers(lattice, components, electric=letter == "E")
    return Half(lattice, fields, components, factors, layers, letter == "E")


def layer_span(lattice: Lattice, axis: int, far: bool, electric: bool) -> tuple[int, int]:
    """The cells of an absorber at the low or the high end of an axis; none where there is no absorber."""
    slab, last = lattice.ends(axis)[far], lattice.grid.shape[axis] - 1
    if slab is None:
        return (last, last) if far else (0, 0)
    return (last - slab.cells, last) if far else (0, slab.cells + electric)


def _layers(lattice: Lattice, components: Sequence[Component], electric: bool) -> Layers:
    found: dict[tuple[Component, int, bool], Stretched] = {}
    for axis in range(lattice.grid.ndim):
        if not any(lattice.ends(axis)):
            continue
        gain, decay, feed = _profiles(lattice, axis, electric)
        for component in components:
            if lattice.axes[axis] not in {along for _, along, _ in neighbours(component)}:
                continue
            for far in (False, True):
                lo, hi = layer_span(lattice, axis, far, electric)
                region = lattice.region(component)
                box = region & region.with_axis(axis, lo, hi)
                if box.empty:
                    continue
                name = f"{component}.{'xyz'[lattice.axes[axis]]}{'-+'[far]}.memory"
                count = len(lattice.domain.absorber.stretches)
                memory = tuple(lattice.grid.field(f"{name}{k + 1}", within=box) for k in range(count))
                added = lattice.domain.absorber.formulation == "MRIPML"
                found[component, axis, far] = Stretched(added, memory, gain, decay, feed)
    return found


def _profiles(lattice: Lattice, axis: int, electric: bool) -> tuple[tuple[Field, ...], ...]:
    domain, grid = lattice.domain, lattice.grid
    spacing = domain.spacing[lattice.axes[axis]]
    made = curves(domain.absorber, lattice.ends(axis), spacing, grid.shape[axis] - 1, domain.dt, half=not electric)
    prefix = f"absorber.{'xyz'[lattice.axes[axis]]}.{'E' if electric else 'H'}"
    return tuple(
        tuple(grid.profile(f"{prefix}.{name}{k + 1}", axis, values) for k, values in enumerate(which))
        for name, which in (("gain", made.gain), ("decay", made.decay), ("feed", made.feed))
    )

"""From stencils to the stages of a step: every component on its own cells, and absorbers axis by axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from peergrid.grid import Box, Field
from peergrid.grid.box import subtract
from peergrid.models.fdtd3d.absorber import curves
from peergrid.models.fdtd3d.domain import Component
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import Factors
from peergrid.models.fdtd3d.yee import Curl, Difference, Stretched, advance, neighbours, stretch
from peergrid.stencil import Stage, Update


@dataclass(frozen=True)
class Half:
    """One half of a step, that of E or of H: its components and their factors."""

    lattice: Lattice
    fields: Mapping[Component, Field]
    factors: Mapping[Component, Factors]
    electric: bool

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(c for c in self.lattice.domain.live if (c[0] == "E") == self.electric)

    def stages(self) -> tuple[Stage, ...]:
        """The stages of the half: every component on its own cells, absorbers along each axis."""
        usual = tuple(
            self._update(box, (component,))
            for component in self.components
            for box in self._parts(self.lattice.region(component))
        )
        layers = (tuple(self._layers(axis)) for axis in range(self.lattice.grid.ndim))
        return tuple(Stage(updates) for updates in (usual, *layers) if updates)

    def _parts(self, box: Box) -> tuple[Box, ...]:
        """A box in two: with dispersive media, and without."""
        dispersive = self.lattice.dispersive if self.electric else None
        if dispersive is None or (box & dispersive).empty:
            return (box,)
        return box & dispersive, *subtract((box,), dispersive)

    def _update(self, box: Box, active: tuple[Component, ...]) -> Update:
        return advance(self._name, box, [self._curl(c, box) for c in active], ahead=not self.electric)

    @property
    def _name(self) -> str:
        return "electric" if self.electric else "magnetic"

    def _curl(self, component: Component, box: Box) -> Curl:
        lattice, own = self.lattice, self.factors[component]
        poles = own.poles if lattice.dispersive is not None and lattice.dispersive.covers(box) else ()
        return Curl(self.fields[component], own.keep, own.factor, tuple(self._differences(component)), poles)

    def _differences(self, component: Component) -> Iterator[Difference]:
        for sign, along, of in neighbours(component):
            axis = self.lattice.along(along)
            if axis is not None:
                yield Difference(sign, axis, self.fields[of])

    def _layers(self, axis: int) -> Iterator[Update]:
        """The absorber's updates along an axis, at both of its ends."""
        lattice = self.lattice
        if not any(lattice.ends(axis)):
            return
        letter, absorber = "xyz"[lattice.axes[axis]], lattice.domain.absorber
        gain, decay, feed = _profiles(lattice, axis, self.electric)
        for component in self.components:
            region = lattice.region(component)
            for term in (term for term in self._differences(component) if term.axis == axis):
                for far in (False, True):
                    box = region & region.with_axis(axis, *layer_span(lattice, axis, far, self.electric))
                    if box.empty:
                        continue
                    memory = tuple(
                        lattice.grid.field(f"{component}.{letter}{'-+'[far]}.memory{k}", within=box)
                        for k in range(1, len(absorber.stretches) + 1)
                    )
                    layer = Stretched(absorber.formulation == "MRIPML", memory, gain, decay, feed)
                    curl = self._curl(component, box)
                    yield stretch(f"{self._name}_{letter}", box, curl, term, layer, ahead=not self.electric)


def layer_span(lattice: Lattice, axis: int, far: bool, electric: bool) -> tuple[int, int]:
    """The cells of an absorber at the low or the high end of an axis; none where there is no absorber."""
    slab, last = lattice.ends(axis)[far], lattice.grid.shape[axis] - 1
    if slab is None:
        return (last, last) if far else (0, 0)
    return (last - slab.cells, last) if far else (0, slab.cells + electric)


def _profiles(lattice: Lattice, axis: int, electric: bool) -> tuple[tuple[Field, ...], ...]:
    domain, grid = lattice.domain, lattice.grid
    spacing = domain.spacing[lattice.axes[axis]]
    made = curves(domain.absorber, lattice.ends(axis), spacing, grid.shape[axis] - 1, domain.dt, half=not electric)
    prefix = f"absorber.{'xyz'[lattice.axes[axis]]}.{'E' if electric else 'H'}"
    return tuple(
        tuple(grid.profile(f"{prefix}.{name}{k + 1}", axis, values) for k, values in enumerate(which))
        for name, which in (("gain", made.gain), ("decay", made.decay), ("feed", made.feed))
    )

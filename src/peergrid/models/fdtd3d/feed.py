"""A coaxial line that ends in a conducting plane, its inner conductor going on as a wire thinner than a cell.

The opening is a ring of magnetic current: the magnetic field around the wire's first edge sees the voltage V across the
opening as that of the edge. Behind it lies a line of Z ohms, so that V = w - Z I with w the voltage that it would have
if open, and I the mean of the currents around the edge half a step before and behind. As the current of half a step
later depends on V, by G amperes to a volt, it is solved for: with i what there would be for V = 0,

    I⁺ ← (i + G w - ½ G Z I⁻) / (1 + ½ G Z),   V = w - ½ Z (I⁻ + I⁺).

Method: S.-Y. Hyun, S.-Y. Kim and Y.-H. Kim, IEEE Trans. Antennas Propag. 57 (2009) 161.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from peergrid.grid import Box, Field, Index
from peergrid.models.fdtd3d import wire
from peergrid.models.fdtd3d.constants import ETA_0
from peergrid.models.fdtd3d.domain import AXES, COMPONENTS, CoaxialFeed, Component, Domain, Wire
from peergrid.models.fdtd3d.lattice import Lattice, electric_of
from peergrid.models.fdtd3d.media import Factors, placed
from peergrid.models.fdtd3d.yee import here, neighbours
from peergrid.stencil import Stage, Update, stencil


@dataclass(frozen=True)
class Ring:
    """The components of H that see the voltage: which, where, the offset of the feed's cell, the share of a curl."""

    component: Component
    cell: Index
    offset: Index
    share: float


@dataclass(frozen=True)
class Feed:
    """A feed on the grid: its voltage and the current of half a step later, in the cell of its edge."""

    lattice: Lattice
    source: CoaxialFeed
    name: str
    voltage: Field
    current: Field

    @classmethod
    def of(cls, lattice: Lattice, source: CoaxialFeed, name: str) -> Feed:
        box = Box.cell(lattice.cell(source.node))
        voltage, current = (lattice.grid.field(f"{name}.{what}", within=box) for what in ("voltage", "current"))
        return cls(lattice, source, name, voltage, current)

    @property
    def cell(self) -> Index:
        return self.lattice.cell(self.source.node)

    def stages(self, fields: Mapping[Component, Field], factors: Mapping[Component, Factors]) -> Iterator[Stage]:
        """The stages that follow the half step of H: the voltage, and what it adds."""
        yield Stage((self._voltage(fields).within(Box.cell(self.cell)),))
        yield Stage(tuple(self._added(ring, fields, factors) for ring in self._rings()))

    def _rings(self) -> Iterator[Ring]:
        domain, axis = self.lattice.domain, AXES.index(self.source.axis)
        own = next(one for one in domain.wires if on(self.source, one))
        for radial in (k for k in range(3) if k != axis):
            component: Component = f"H{AXES[3 - axis - radial]}"  # type: ignore[assignment]
            sign = next(sign for sign, along, _ in neighbours(component) if along == radial)
            strength = wire.strength(domain, own, component, radial)
            for back in (0, 1):  # a difference of the edge's field, which is that of -V
                offset = tuple(back * (k == radial) for k in range(3))
                cell = tuple(i - b for i, b in zip(self.cell, offset, strict=True))
                yield Ring(component, cell, offset, sign * strength * (1 - 2 * back))

    def _added(self, ring: Ring, fields: Mapping[Component, Field], factors: Mapping[Component, Factors]) -> Update:
        at = (0, 0, 0)

        @stencil
        def take_up(h: Any, voltage: Any, factor: Any, share: Any) -> None:
            h.next[at] = h[at] + share * (here(factor) * voltage[ring.offset])

        given = fields[ring.component], self.voltage, factors[ring.component].factor, ring.share
        return take_up(*given).within(Box.cell(ring.cell))

    def _voltage(self, fields: Mapping[Component, Field]) -> Update:
        lattice, domain, ohms = self.lattice, self.lattice.domain, self.source.resistance
        loop = [(sign, along, fields[of]) for sign, along, of in neighbours(electric_of(self.source.axis))]
        gain = sum(abs(r.share) * _factor(lattice, r) for r in self._rings()) / ETA_0
        half = 0.5 * gain * ohms
        samples = self.source.drive.samples(domain.steps, domain.dt, half=False)
        at = (0, 0, 0)

        @stencil
        def feed(voltage: Any, current: Any, around: Any, open_end: Any) -> None:
            total: Any = None
            for (sign, along, _), h in zip(loop, around, strict=True):
                part = h[at] - h[tuple(-(k == along) for k in range(3))]
                total = part if total is None else (total + part if sign > 0 else total - part)
            alone = total * (1 / ETA_0)
            new = (alone + gain * open_end.now - half * current[at]) * (1 / (1 + half))
            current.next[at] = new
            voltage.next[at] = open_end.now - 0.5 * ohms * (current[at] + new)

        return feed(
            self.voltage, self.current, [h for _, _, h in loop], lattice.grid.signal(f"{self.name}.open", samples)
        )


def on(source: CoaxialFeed, one: Wire) -> bool:
    """True for the wire that a feed's edge is of."""
    along = AXES.index(one.axis)
    beyond = source.node[along] - one.node[along]
    beside = all(source.node[k] == one.node[k] for k in range(3) if k != along)
    return source.axis == one.axis and beside and 0 <= beyond < one.edges


def faults(domain: Domain, source: CoaxialFeed) -> Iterator[str]:
    """Reasons against a feed, each as the end of a sentence."""
    if not any(on(source, one) for one in domain.wires):
        yield f"is expected on an edge of a wire along {source.axis}, got node {source.node}; put one there"
        return
    if not source.resistance > 0:
        yield f"is expected to have a resistance above 0 Ω, got {source.resistance:g}; correct it"
    if sum(isinstance(s, CoaxialFeed) and (s.node, s.axis) == (source.node, source.axis) for s in domain.sources) > 1:
        yield "is expected to be alone at its edge; take another out"
    for axis in (axis for axis in AXES if axis != source.axis):
        medium = domain.media[domain.ids[COMPONENTS.index(electric_of(axis))][source.node]]
        if not medium.stops_electric:
            yield f"is expected to start in a conducting plane across {source.axis}, got '{medium.name}'; put one there"
            return


def _factor(lattice: Lattice, ring: Ring) -> float:
    medium = lattice.media[lattice.medium_at(ring.component, ring.cell)]
    return placed(lattice, ring.component, medium)[1]

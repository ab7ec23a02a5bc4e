"""Wires thinner than a cell: their edges conduct, and the magnetic field around them is that of their radius.

Close to a wire of radius a the field around it varies as 1 / r, as does that which points away from it. Integrated
over the faces beside the wire, that multiplies the difference of the field along it, over a distance d, by
2 / ln(d / a); and the magnetic field is kept as the mean along its own edge of length h, (d / h) arctan(h / d) times
that in the middle. Ends have no correction.

Method: K. R. Umashankar, A. Taflove and B. Beker, IEEE Trans. Antennas Propag. 35 (1987) 1248; R. Mäkinen, J. Juntunen
and M. Kivikoski, IEEE Trans. Microwave Theory Tech. 50 (2002) 1245.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import atan, log

from peergrid.grid import Box, Field
from peergrid.models.fdtd3d.domain import AXES, Component, Domain, Wire
from peergrid.models.fdtd3d.lattice import Lattice, electric_of
from peergrid.models.fdtd3d.media import Factors
from peergrid.models.fdtd3d.yee import Curl, Difference, more, neighbours
from peergrid.stencil import Stage


def stages(
    lattice: Lattice, fields: Mapping[Component, Field], factors: Mapping[Component, Factors]
) -> tuple[Stage, ...]:
    """The stage that follows the half step of H; none without wires."""
    made = []
    for wire in lattice.domain.wires:
        for component, radial, box in beside(wire):
            share = strength(lattice.domain, wire, component, radial) - 1
            sign = next(sign for sign, axis, _ in neighbours(component) if axis == radial)
            term = Difference(sign, radial, fields[electric_of(wire.axis)])
            curl = Curl(fields[component], None, factors[component].factor, (term,))
            made.append(more("wire", box, curl, term, share, ahead=True))
    return (Stage(tuple(made)),) if made else ()


def strength(domain: Domain, wire: Wire, component: Component, radial: int) -> float:
    """The factor of the difference along the axis `radial` of the field along a wire, for a component beside it."""
    d, h = (domain.spacing[axis] for axis in (radial, AXES.index(component[1])))
    return 2 / log(d / wire.radius) * (d / h) * atan(h / d)


def beside(wire: Wire) -> Iterator[tuple[Component, int, Box]]:
    """The magnetic components around a wire: which, the axis along which they lie beside it, where."""
    along = AXES.index(wire.axis)
    for radial in (axis for axis in range(3) if axis != along):
        component: Component = f"H{AXES[3 - along - radial]}"  # type: ignore[assignment]
        lo = tuple(i - (axis == radial) for axis, i in enumerate(wire.node))
        hi = tuple(i + (wire.edges if axis == along else 1) for axis, i in enumerate(wire.node))
        yield component, radial, Box(lo, hi)


def faults(domain: Domain, number: int) -> Iterator[str]:
    """Reasons against a wire, counted from 0, each as the end of a sentence."""
    wire = domain.wires[number]
    if domain.mode != "3D":
        yield f"is expected in three dimensions, got mode {domain.mode}; use edges of a conductor"
        return
    along = AXES.index(wire.axis)
    least = min(d for axis, d in enumerate(domain.spacing) if axis != along)
    if not 0 < wire.radius < 0.5 * least:
        yield f"is expected to have a radius above 0 and below half a cell, {0.5 * least:g} m, got {wire.radius:g} m"
    thick = {side: slab.cells for side, slab in domain.absorber.slabs}
    for axis, name in enumerate(AXES):
        low, high = (thick.get(f"{name}{sign}", 0) + (axis != along) for sign in "-+")  # type: ignore[call-overload]
        first, last = wire.node[axis], wire.node[axis] + (wire.edges if axis == along else 0)
        if wire.edges < 1 or first < low or last > domain.shape[axis] - high:
            yield f"is expected inside the domain and outside of absorbers, got nodes {first} to {last} along {name}"
    for one, two in ((a, b) for other in domain.wires[:number] for a in beside(other) for b in beside(wire)):
        if one[0] == two[0] and one[2].overlaps(two[2]):
            yield "is expected to have cells between it and other wires, got one beside it; use edges of a conductor"

"""Perfectly matched layers for waves of second order in time, as convolutions whose fields exist in the layers alone.

Along an axis a second derivative D u becomes (1/s) ∂ ((1/s) ∂ u), s = 1 + σ / (α + iω). With ψ and ζ the memories and
a, b the numbers of a convolution by recursion,

    ψ ← b ψ + a ∂u,    ζ ← b ζ + a (D u + ∂ψ),    D u becomes D u + ∂ψ + ζ.

The inner derivative is taken half way between nodes, the outer one is minus its transpose, so that reciprocity holds to
rounding for points that involve no node of a layer. Where D has weights of its own, ∂ is of an order two lower: then -D
is nowhere below -∂∂, and nothing in the layers grows without oscillating, however strong they are.
Methods: Komatitsch and Martin, Geophysics 72 (2007) SM155; Pasalic and McGarry, SEG Expanded Abstracts 29 (2010) 2925.

Where the axis of symmetry is tilted, the slow wave that comes with these equations grows in layers of this form. There
s is that of all axes together, along all axes alike (the multiaxial layer of Meza-Fajardo and Papageorgiou, Bulletin of
the Seismological Society of America 98 (2008) 1811, with ratio 1) and α is 0: the outer 1/s is a damping of velocities
by half of what d² takes from them, the inner one is left to memories,

    ψ ← d² ψ + (d² - 1) ∇p,    χ ← d² χ + (d² - 1) Gz r,

with ∇p + ψ and Gz r + χ for ∇p and Gz r. Both only take energy, whatever the angles are; a wave is met as it is head on
alone, and layers are thicker for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from peergrid.grid import Box, Field
from peergrid.models.wave import stencils
from peergrid.models.wave.arrays import apart
from peergrid.models.wave.scheme import Frame
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Stage, Update

ECHO = 1e-4  # the share of a wave at normal incidence that returns through a layer
SLOWEST = 0.05  # α over the largest σ
Numbers = tuple[Field, Field]
Coefficient = Field | float
Weights = tuple[float, ...] | tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Driven:
    """The waves that the second derivative of a wave along an axis changes.

    wave: that whose derivative it is; waves, factors: those that change, each by the product of some factors with it;
    flux: the field with the inner derivative, or None.
    """

    wave: Field
    waves: tuple[Field, ...]
    factors: tuple[tuple[Coefficient, ...], ...]
    flux: Field | None = None


@dataclass(frozen=True)
class Side:
    """A layer at one end of an axis.

    box: the cells that it changes: its own, and inner ones whose derivatives extend into it; psi, zeta: its memories;
    nodes, between: a and b on nodes and half a cell ahead of them, along the axis.
    """

    axis: int
    box: Box
    psi: Field
    zeta: Field
    nodes: Numbers
    between: Numbers


def absorbing(
    frame: Frame, dt: float, driven: Sequence[Driven], first: Weights, second: Weights, name: str
) -> tuple[list[Stage], list[Stage]]:
    """The stages in layers before and after that which advances the waves; driven: along each axis.

    first, second: weights of the derivatives half way between nodes and on nodes; name: of the memories.
    """
    reach = len(first[0] if isinstance(first[0], tuple) else first)
    before, onwards, after = list[Update](), list[Update](), list[Update]()
    for side in sides(frame, dt, reach, name):
        given, axis = driven[side.axis], side.axis
        memories = side.psi, side.zeta
        if given.flux is None:
            inner = stencils.inwards(axis)(given.wave, side.psi, side.between, first)
            taken = stencils.onwards(axis)(given.wave, *memories, side.nodes, first, second)
            onwards.append(taken.within(side.box))
            outer = stencils.outwards(axis)(given.waves, given.factors, *memories, first)
        else:
            inner = stencils.inwards_flux(given.flux, side.psi, side.between)
            outer = stencils.outwards_flux(axis)(given.waves, given.factors, given.flux, side.zeta, side.nodes, first)
        before.append(inner.within(side.box))
        after.append(outer.within(side.box))
    return [Stage(tuple(updates)) for updates in (before, onwards) if updates], apart(after)


def absorbing_tilted(
    frame: Frame,
    waves: Sequence[Field],
    slopes: Sequence[Field],
    factors: tuple[tuple[Coefficient, ...], ...],
    direction: Sequence[Coefficient],
    damping: tuple[Field, ...],
    first: Weights,
) -> tuple[Stage, list[Stage]]:
    """The stages in layers around tilted axes, before and after that which advances the waves.

    slopes: Gz of the waves, which the first stage changes; factors: of the change of a wave by ψ; first: weights of ∇.
    """
    grid, reach = frame.grid, (frame.reach,) * frame.grid.ndim
    inner = frame.changing
    below = inner.with_axis(grid.ndim - 1, frame.before[-1] + 1, inner.hi[-1]) if frame.scheme.free_surface else inner
    before, after = list[Update](), list[Update]()
    for name, box in _parts(frame):
        changed = below & box.grow(reach, reach)
        wide = box.hull(changed.grow(reach, reach))
        psi = [grid.field(f"cpml.{name}.psi.{'xyz'[k]}", within=wide) for k in range(grid.ndim)]
        chi = grid.field(f"cpml.{name}.chi", within=box)
        before.append(stencils.inwards_tilted(waves[0], *slopes, psi, chi, direction, damping, first).within(box))
        after.append(stencils.outwards_tilted(waves, factors, psi, first).within(changed))
    return Stage(tuple(before)), apart(after)


def _parts(frame: Frame) -> Iterator[tuple[str, Box]]:
    """The cells of all layers as boxes that do not overlap; above a free surface as far as derivatives reach."""
    grid = frame.grid
    rest = frame.changing
    if frame.scheme.free_surface:
        rest = rest.with_axis(grid.ndim - 1, frame.before[-1] - frame.reach, rest.hi[-1])
    for axis in range(grid.ndim):
        lo, hi = frame.inside.lo[axis], frame.inside.hi[axis]
        if frame.absorbs_before(axis):
            yield f"{'xyz'[axis]}-", rest.with_axis(axis, rest.lo[axis], lo)
            rest = rest.with_axis(axis, lo, rest.hi[axis])
        yield f"{'xyz'[axis]}+", rest.with_axis(axis, hi, rest.hi[axis])
        rest = rest.with_axis(axis, rest.lo[axis], hi)


def sides(frame: Frame, dt: float, reach: int, name: str) -> Iterator[Side]:
    """The layers of a frame; reach: cells that the derivative half way between nodes reads to each side."""
    grid = frame.grid
    whole = frame.changing
    if frame.scheme.free_surface:
        whole = whole.with_axis(grid.ndim - 1, frame.before[-1] + 1, whole.hi[-1])
    for axis in range(grid.ndim):
        letter = "xyz"[axis]
        nodes, between = (_numbers(frame, dt, axis, place, name) for place in ("nodes", "between"))
        lo, hi = frame.inside.lo[axis], frame.inside.hi[axis]
        for sign, first, end in (("-", 0, lo + reach), ("+", hi - reach, grid.shape[axis])):
            if sign == "+" or frame.absorbs_before(axis):
                box = whole & whole.with_axis(axis, first, end)
                wide = grid.box & box.with_axis(axis, first - reach, end + reach)
                psi = grid.field(f"{name}.{letter}{sign}.psi", within=wide)
                zeta = grid.field(f"{name}.{letter}{sign}.zeta", within=box)
                yield Side(axis, box, psi, zeta, nodes, between)


def _numbers(frame: Frame, dt: float, axis: int, place: str, name: str) -> Numbers:
    """a and b on nodes, or half way between; σ rises as the square of the depth, up to what leaves `ECHO`."""
    thick = frame.scheme.layer * frame.medium.spacings[axis]
    most = 3 * float(frame.medium.values("velocity").max()) * log(1 / ECHO) / (2 * thick)
    sigma: Doubles = most * frame.depth(axis, 0.5 if place == "between" else 0.0) ** 2
    rate = sigma + SLOWEST * most
    b = np.exp(-rate * dt)
    name = f"{name}.{'xyz'[axis]}.{place}"
    return frame.grid.profile(f"{name}.a", axis, sigma / rate * (b - 1)), frame.grid.profile(f"{name}.b", axis, b)

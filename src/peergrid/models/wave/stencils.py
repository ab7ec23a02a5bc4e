"""The updates of waves, in any number of dimensions: lengths in units of the smallest spacing.

Acoustic: (1/(ρ v²)) ∂²u/∂t² = ∇·(1/ρ ∇u). VTI and TTI (Zhang, Zhang and Zhang, Geophysics 76 (2011) WA3): with Gz the
derivative along the axis of symmetry, Hz = -Gzᵀ Gz and H0 = ∇² - Hz,

    (1/v²) ∂²p/∂t² = (1 + 2ε) H0 p + √(1 + 2δ) Hz r,    (1/v²) ∂²r/∂t² = √(1 + 2δ) H0 p + Hz r.

Gzᵀ is the exact transpose of the discrete Gz, so that a norm of the waves is conserved for any variation of the angles.
In absorbing layers the rates of change are multiplied by d² in each step (d = 1 elsewhere).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peergrid.grid import Index
from peergrid.stencil import Cell, stencil
from peergrid.stencil.trace import Stencil

TWELFTH = 1 / 12


def shifted(ndim: int, axis: int, by: int) -> Index:
    """The offset of so many cells along an axis."""
    return tuple(by if k == axis else 0 for k in range(ndim))


def here(given: Any) -> Any:
    """The value at the cell of a field, or a number."""
    return given[(0,) * given.described.grid.ndim] if isinstance(given, Cell) else given


def second(u: Any, axes: Sequence[int], weights: Any) -> Any:
    """The sum of the second derivatives along some axes.

    weights: one tuple, of the node and its neighbours, where all axes have the same; else one for each of the grid's.
    """
    ndim = u.described.grid.ndim
    if not isinstance(weights[0], tuple):
        total = len(axes) * weights[0] * here(u)
        for k, w in enumerate(weights[1:], 1):
            pairs = [u[shifted(ndim, axis, -k)] + u[shifted(ndim, axis, k)] for axis in axes]
            total = total + w * sum(pairs[1:], pairs[0])
        return total
    parts = [second(u, (axis,), weights[axis]) for axis in axes]
    return sum(parts[1:], parts[0])


def centred(value: Any, ndim: int, axis: int, weights: Any) -> Any:
    """The first derivative along an axis of `value`, a function of the offset."""
    along = weights[axis] if isinstance(weights[0], tuple) else weights
    terms = [w * (value(shifted(ndim, axis, k)) - value(shifted(ndim, axis, -k))) for k, w in enumerate(along, 1)]
    return sum(terms[1:], terms[0])


def half_way(value: Any, ndim: int, axis: int, weights: Any, ahead: int) -> Any:
    """The first derivative along an axis half a cell ahead (1) or behind (0)."""
    along = weights[axis] if isinstance(weights[0], tuple) else weights
    terms = [
        w * (value(shifted(ndim, axis, k - 1 + ahead)) - value(shifted(ndim, axis, ahead - k)))
        for k, w in enumerate(along, 1)
    ]
    return sum(terms[1:], terms[0])


def advance(u: Any, change: Any, damping: Sequence[Any]) -> None:
    """The new value of a wave: `change` is what its second time derivative, times dt², is without damping."""
    at = (0,) * u.described.grid.ndim
    if not damping:
        u.next[at] = 2 * u[at] - u.prev[at] + change
        return
    d = here(damping[0])
    for profile in damping[1:]:
        d = d * here(profile)
    u.next[at] = u[at] + d * (d * (u[at] - u.prev[at]) + change)


@stencil
def acoustic(u: Any, of: Any, c: Any, weights: Any, damping: Any) -> None:
    """One step by derivatives of `of`, with a density that is the same everywhere; c: (v dt)²."""
    advance(u, here(c) * second(of, range(u.described.grid.ndim), weights), damping)


@stencil
def ahead(u: Any, found: Any, c: Any, weights: Any) -> None:
    """u + L u / 12, L u being what a step of second order in time adds; that of it is a step of fourth order.

    Method: the modified equation, Dablain, Geophysics 51 (1986) 54.
    """
    found.next[(0,) * u.described.grid.ndim] = here(u) + TWELFTH * here(c) * second(
        u, range(u.described.grid.ndim), weights
    )


@stencil
def fluxes(u: Any, flow: Any, density: Any, weights: Any) -> None:
    """1/ρ ∇u, each component half a cell ahead along its axis, where ρ is the mean of both cells: media in layers move
    as one mass (Moczo et al., Bull. Seism. Soc. Am. 92 (2002) 3042).
    """
    ndim = u.described.grid.ndim
    at = (0,) * ndim
    for axis, f in enumerate(flow):
        between = 0.5 * (density[at] + density[shifted(ndim, axis, 1)])
        f.next[at] = half_way(u.__getitem__, ndim, axis, weights, 1) / between


@stencil
def divergence(u: Any, flow: Any, c: Any, weights: Any, damping: Any) -> None:
    """One step from the fluxes; c: ρ (v dt)²."""
    advance(u, here(c) * _divergence(flow, weights), damping)


@stencil
def ahead_by_flux(u: Any, found: Any, flow: Any, c: Any, weights: Any) -> None:
    """`ahead`, from the fluxes."""
    found.next[(0,) * u.described.grid.ndim] = here(u) + TWELFTH * here(c) * _divergence(flow, weights)


def _divergence(flow: Any, weights: Any) -> Any:
    parts = [half_way(f.__getitem__, len(flow), axis, weights, 0) for axis, f in enumerate(flow)]
    return sum(parts[1:], parts[0])


@stencil
def vertical(p: Any, r: Any, c: Any, a: Any, b: Any, weights: Any, damping: Any) -> None:
    """One step of VTI; a: 1 + 2ε, b: √(1 + 2δ)."""
    z = p.described.grid.ndim - 1
    across, along = second(p, range(z), weights), second(r, (z,), weights)
    _coupled(p, r, across, along, c, a, b, damping)


@stencil
def along_axis(p: Any, r: Any, gp: Any, gr: Any, direction: Any, weights: Any) -> None:
    """Gz of both waves; direction: the components of the axis of symmetry."""
    ndim = p.described.grid.ndim
    for f, g in ((p, gp), (r, gr)):
        terms = [here(n) * centred(f.__getitem__, ndim, axis, weights) for axis, n in enumerate(direction)]
        g.next[(0,) * ndim] = sum(terms[1:], terms[0])


@stencil
def tilted(
    p: Any, r: Any, gp: Any, gr: Any, direction: Any, c: Any, a: Any, b: Any, first: Any, weights: Any, damping: Any
) -> None:
    """One step of TTI from Gz of both waves."""
    ndim = p.described.grid.ndim

    def back(g: Any) -> Any:
        terms = [
            centred(lambda at, n=n: (n[at] if isinstance(n, Cell) else n) * g[at], ndim, axis, first)
            for axis, n in enumerate(direction)
        ]
        return sum(terms[1:], terms[0])

    _coupled(p, r, second(p, range(ndim), weights) - back(gp), back(gr), c, a, b, damping)


def _coupled(p: Any, r: Any, across: Any, along: Any, c: Any, a: Any, b: Any, damping: Any) -> None:
    coupling = here(b)
    advance(p, here(c) * (here(a) * across + coupling * along), damping)
    advance(r, here(c) * (coupling * across + along), damping)


def inwards(axis: int) -> Stencil:
    """ψ before a step, in a perfectly matched layer along an axis (`absorber`)."""

    @stencil
    def remember(u: Any, psi: Any, between: Any, first: Any) -> None:
        ndim = u.described.grid.ndim
        psi.next[(0,) * ndim] = _convolved(psi, between, half_way(u.__getitem__, ndim, axis, first, 1))

    return remember


def onwards(axis: int) -> Stencil:
    """ζ before a step, from the wave and from ψ."""

    @stencil
    def remember_both(u: Any, psi: Any, zeta: Any, nodes: Any, first: Any, weights: Any) -> None:
        ndim = u.described.grid.ndim
        slope = half_way(psi.__getitem__, ndim, axis, first, 0)
        zeta.next[(0,) * ndim] = _convolved(zeta, nodes, second(u, (axis,), weights)) + here(nodes[0]) * slope

    return remember_both


def outwards(axis: int) -> Stencil:
    """The changes of waves by ψ and ζ after a step, each times the product of some factors."""

    @stencil
    def stretch(waves: Any, factors: Any, psi: Any, zeta: Any, first: Any) -> None:
        slope = half_way(psi.__getitem__, psi.described.grid.ndim, axis, first, 0)
        _change(waves, factors, slope + here(zeta))

    return stretch


@stencil
def inwards_flux(flow: Any, psi: Any, between: Any) -> None:
    """A flux, half a cell ahead, in a perfectly matched layer along its axis."""
    at = (0,) * flow.described.grid.ndim
    memory = _convolved(psi, between, flow[at])
    psi.next[at] = memory
    flow.next[at] = flow[at] + memory


def outwards_flux(axis: int) -> Stencil:
    """The change of waves by ζ after a step from the fluxes."""

    @stencil
    def stretch(waves: Any, factors: Any, flow: Any, zeta: Any, nodes: Any, first: Any) -> None:
        ndim = flow.described.grid.ndim
        memory = _convolved(zeta, nodes, half_way(flow.__getitem__, ndim, axis, first, 0))
        zeta.next[(0,) * ndim] = memory
        _change(waves, factors, memory)

    return stretch


@stencil
def inwards_tilted(p: Any, gp: Any, gr: Any, psi: Any, chi: Any, direction: Any, damping: Any, first: Any) -> None:
    """ψ and χ before a step, in a layer around tilted axes, and Gz of both waves with them (`absorber`)."""
    ndim = p.described.grid.ndim
    d, along = here(damping[0]), []
    for profile in damping[1:]:
        d = d * here(profile)
    kept = d * d
    for axis, (memory, n) in enumerate(zip(psi, direction, strict=True)):
        found = _forgotten(memory, kept, centred(p.__getitem__, ndim, axis, first))
        along.append(here(n) * found)
    gp.next[(0,) * ndim] = here(gp) + sum(along[1:], along[0])
    gr.next[(0,) * ndim] = here(gr) + _forgotten(chi, kept, here(gr))


def _forgotten(memory: Any, kept: Any, value: Any) -> Any:
    """The share of a value that layers absorb; also advances its convolution, of which a share is kept."""
    found = kept * (here(memory) + value) - value
    memory.next[(0,) * memory.described.grid.ndim] = found
    return found


@stencil
def outwards_tilted(waves: Any, factors: Any, psi: Any, first: Any) -> None:
    """The changes of waves by ψ after a step, each times the product of some factors."""
    parts = [centred(m.__getitem__, len(psi), axis, first) for axis, m in enumerate(psi)]
    _change(waves, factors, sum(parts[1:], parts[0]))


def _convolved(memory: Any, numbers: Any, value: Any) -> Any:
    """Advance a convolution; numbers: a and b of `absorber`."""
    return here(numbers[1]) * here(memory) + here(numbers[0]) * value


def _change(waves: Any, factors: Any, change: Any) -> None:
    for u, parts in zip(waves, factors, strict=True):
        scaled = change
        for part in parts:
            scaled = here(part) * scaled
        u.next[(0,) * u.described.grid.ndim] = here(u) + scaled


@stencil
def inject(waves: Any, weights: Any, samples: Any) -> None:
    """Add the signal's sample, times weights of the cells, to each wave."""
    for u, w in zip(waves, weights, strict=True):
        u.next[(0,) * u.described.grid.ndim] = here(u) + here(w) * samples.now


@stencil
def add(waves: Any, fed: Any) -> None:
    """Add a field to each wave, and set the field to zero."""
    for u, f in zip(waves, fed, strict=True):
        at = (0,) * u.described.grid.ndim
        u.next[at] = u[at] + f[at]
        f.next[at] = 0.0


def interpolation(axis: int, behind: int) -> Stencil:
    """The mean of some waves between nodes along an axis, at a place for each field that is found.

    The first weight of a place is of the node so many cells behind.
    """

    @stencil
    def interpolate(waves: Any, found: Any, weights: Any) -> None:
        for f, line in zip(found, weights, strict=True):
            ndim = f.described.grid.ndim
            terms = [here(w) * _mean(waves, shifted(ndim, axis, k - behind)) for k, w in enumerate(line)]
            f.next[(0,) * ndim] = sum(terms[1:], terms[0])

    return interpolate


def mirror(cells: int) -> Stencil:
    """The odd continuation of waves above a free surface: the value 2 · `cells` deeper, with the opposite sign."""

    @stencil
    def mirrored(waves: Any) -> None:
        for u in waves:
            ndim = u.described.grid.ndim
            u.next[(0,) * ndim] = -u[shifted(ndim, ndim - 1, 2 * cells)]

    return mirrored


def _mean(waves: Any, at: Index) -> Any:
    total = waves[0][at]
    for u in waves[1:]:
        total = total + u[at]
    return total if len(waves) == 1 else total * (1 / len(waves))

"""Perfectly matched layers whose stretched axes are integrated by the trapezoidal rule, one or two of them.

A derivative u normal to a side becomes u / s, s = κ + σ / (α + iωε₀). With q = dt / 2ε₀ and one stretch

    v = g u + ψ,   ψ ← d ψ - f u,   g = (1 + αq) / N,  d = (κ - (ακ + σ)q) / N,  f = 2σq / N²,  N = κ + (ακ + σ)q.

HORIPML applies a second stretch to v (A. Giannopoulos, IEEE Trans. Antennas Propag. 60 (2012) 2995); MRIPML divides by
the sum of the stretches, v = g u - Σψ, ψ ← d ψ + f v, with 1/g = Σ(κ + σq / M), d = (1 - αq) / M, f = 2gσq / M²,
M = 1 + αq (the same, 66 (2018) 2987). A memory has the size of the differences that it goes with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.errors import UsageError
from peergrid.models.fdtd3d.constants import EPSILON_0, ETA_0
from peergrid.models.fdtd3d.domain import Absorber, Grading, Slab, Stretch
from peergrid.models.waveforms import Doubles


@dataclass(frozen=True)
class Curves:
    """The numbers of an absorber along its axis, for E or for H: one curve for each stretch; of sums there is one gain.

    Outside the layers they are neutral, and nobody reads them there.
    """

    gain: tuple[Doubles, ...]
    decay: tuple[Doubles, ...]
    feed: tuple[Doubles, ...]


def curves(
    absorber: Absorber, ends: tuple[Slab | None, Slab | None], spacing: float, cells: int, dt: float, half: bool
) -> Curves:
    """Along an axis of so many cells, for what lies on nodes or (`half`) half way between; cells + 1 entries each.

    ends: the slabs at its low and high end; spacing: metres. Raises UsageError where stretches would let waves grow.
    """
    position = np.arange(cells + 1) + (0.5 if half else 0.0)
    low, high = (slab.cells if slab else 0 for slab in ends)
    found = [_neutral(len(absorber.stretches), absorber.formulation == "MRIPML", cells + 1)]
    parts = ((ends[0], position <= low, low - position), (ends[1], position >= cells - high, position - (cells - high)))
    for slab, inside, depth in parts:
        if slab and slab.cells:
            graded = _graded(absorber, slab, spacing, np.clip(depth / slab.cells, 0, 1), dt)
            found.append(_joined(found[-1], graded, inside))
    return found[-1]


def faults(absorber: Absorber) -> Iterator[str]:
    """Reasons against an absorber's stretches, each as the end of a sentence."""
    count = len(absorber.stretches)
    if not 1 <= count <= 2:
        yield f"is expected to have one stretch or two, got {count}; leave one or two"
        return
    least = [_least(stretch.kappa) for stretch in absorber.stretches]
    if sum(least) < 1 or (absorber.formulation == "HORIPML" and min(least) <= 0):
        above = ", each above 0" if absorber.formulation == "HORIPML" else ""
        got = " and ".join(f"{value:g}" for value in least)
        yield f"is expected to have least values of κ that add up to at least 1{above}, got {got}; raise them"


def _least(grading: Grading) -> float:
    most = 0.0 if grading.most is None else grading.most
    return most if grading.order == 0 else min(grading.least, most)


def _neutral(stretches: int, added: bool, length: int) -> Curves:
    one, zero = np.ones(length), np.zeros(length)
    return Curves((one,) * (1 if added else stretches), (zero,) * stretches, (zero,) * stretches)


def _joined(outside: Curves, inside: Curves, where: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Curves:
    def chosen(one: Sequence[Doubles], two: Sequence[Doubles]) -> tuple[Doubles, ...]:
        return tuple(np.where(where, b, a) for a, b in zip(one, two, strict=True))

    return Curves(
        chosen(outside.gain, inside.gain), chosen(outside.decay, inside.decay), chosen(outside.feed, inside.feed)
    )


def _graded(absorber: Absorber, slab: Slab, spacing: float, depth: Doubles, dt: float) -> Curves:
    """The numbers at relative depths from 0 (inner face) to 1 (wall)."""
    q = dt / (2 * EPSILON_0)
    triples = [_parameters(stretch, slab, spacing, depth) for stretch in absorber.stretches]
    if absorber.formulation == "MRIPML":
        inverse = np.zeros_like(depth)
        for alpha, kappa, sigma in triples:
            inverse = inverse + kappa + sigma * q / (1 + alpha * q)
        gain = 1 / inverse
        decay = tuple((1 - alpha * q) / (1 + alpha * q) for alpha, _, _ in triples)
        return Curves((gain,), decay, tuple(2 * gain * sigma * q / (1 + alpha * q) ** 2 for alpha, _, sigma in triples))
    _refuse_growing(triples)
    whole = [kappa + (alpha * kappa + sigma) * q for alpha, kappa, sigma in triples]
    return Curves(
        tuple((1 + alpha * q) / n for (alpha, _, _), n in zip(triples, whole, strict=True)),
        tuple((2 * kappa - n) / n for (_, kappa, _), n in zip(triples, whole, strict=True)),
        tuple(2 * sigma * q / n**2 for (_, _, sigma), n in zip(triples, whole, strict=True)),
    )


def _parameters(stretch: Stretch, slab: Slab, spacing: float, depth: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """α, κ and σ."""
    matched = 0.8 * (stretch.sigma.order + 1) / (ETA_0 * spacing * np.sqrt(slab.permittivity * slab.permeability))
    return (
        _curve(stretch.alpha, 0.0, depth),
        _curve(stretch.kappa, 1.0, depth),
        _curve(stretch.sigma, float(matched), depth),
    )


def _curve(grading: Grading, matched: float, depth: Doubles) -> Doubles:
    most = matched if grading.most is None else grading.most
    if grading.order == 0:
        return np.full_like(depth, most)
    return grading.least + (most - grading.least) * (1 - depth if grading.reverse else depth) ** grading.order


def _refuse_growing(triples: Sequence[tuple[Doubles, Doubles, Doubles]]) -> None:
    """Two stretches multiplied amplify waves where the real part of their product is negative at some frequency.

    With u = σ/κ and x = (ωε₀)² that part has the sign of x² + b x + c.
    """
    if len(triples) < 2:
        return
    (p, k1, s1), (q, k2, s2) = triples
    u, v = s1 / k1, s2 / k2
    b = p * p + q * q + u * p + v * q - u * v
    c = p * q * (p + u) * (q + v)
    if ((b < 0) & (b * b > 4 * c * (1 + 1e-9))).any():
        raise UsageError(
            "The two stretches of a HORIPML absorber are expected to damp waves of every frequency, got some that "
            "amplify; use one stretch, MRIPML, or a second alpha of at least 1.1 times the first sigma."
        )

"""The convolutional perfectly matched layer: its grading and the coefficients of its memory.

Method: Roden and Gedney, Microwave and Optical Technology Letters 27 (2000) 334. A derivative ∂u normal to a side
becomes ∂u/κ + ψ, with ψ ← b ψ + c ∂u, b = exp(-(σ/κ + α) dt/ε₀), c = σ (b - 1) / (κ (σ + κ α)). Here ∂u is the
plain difference of neighbours; the division by the spacing is in the coefficients of the update, and ψ scales with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peergrid.models.fdtd.constants import EPSILON_0, ETA_0
from peergrid.models.fdtd.materials import CONDUCTOR, Doubles, Geometry
from peergrid.models.fdtd.model import Absorber


@dataclass(frozen=True)
class AbsorberLayer:
    """The absorber normal to one axis: cells at its low and high end, and the mean slowness of what fills each."""

    axis: int
    cells: tuple[int, int]
    slowness: tuple[float, float]


def layer(geometry: Geometry, axis: int, cells: tuple[int, int]) -> AbsorberLayer:
    """The layer of an axis; its conductivity is matched to the mean refractive index of the cells it covers."""
    low, high = cells
    parts = np.moveaxis(geometry.cells, axis, 0)
    ends = (parts[:low], parts[parts.shape[0] - high :])
    return AbsorberLayer(axis, cells, (_mean_slowness(geometry, ends[0]), _mean_slowness(geometry, ends[1])))


def _mean_slowness(geometry: Geometry, cells: np.ndarray[tuple[int, ...], np.dtype[np.uint16]]) -> float:
    counts = np.bincount(cells.ravel(), minlength=len(geometry.materials))
    media = [(m.slowness, int(n)) for m, n in zip(geometry.materials, counts, strict=True) if n and m != CONDUCTOR]
    total = sum(n for _, n in media)
    return sum(s * n for s, n in media) / total if total else 1.0


def profiles(
    part: AbsorberLayer, absorber: Absorber, spacing: float, cells: int, dt: float, half: bool
) -> tuple[Doubles, Doubles, Doubles]:
    """1/κ, b and c along an axis of `cells` cells for Ez (`half` false, on nodes) or H (true, half a cell further).

    Each has cells + 1 entries; outside the layer they are 1, 0 and 0, and nobody reads them there.
    """
    position = np.arange(cells + 1) + (0.5 if half else 0.0)
    low, high = part.cells
    depth_low = np.clip((low - position) / max(low, 1), 0, 1) * (low > 0)
    depth_high = np.clip((position - (cells - high)) / max(high, 1), 0, 1) * (high > 0)
    slowness = np.where(depth_low > 0, part.slowness[0], part.slowness[1])
    return grading(np.maximum(depth_low, depth_high), absorber, spacing * slowness, dt)


def grading(depth: Doubles, absorber: Absorber, spacing: Doubles, dt: float) -> tuple[Doubles, Doubles, Doubles]:
    """1/κ, b and c at relative depths from 0 (inner face) to 1 (wall).

    σ = strength · 0.8 (m + 1) / (η₀ spacing) · depth^m, κ = 1 + (κ_max - 1) depth^m, α = α_max (1 - depth);
    spacing: metres times the refractive index.
    """
    m = absorber.order
    sigma = absorber.strength * 0.8 * (m + 1) / (ETA_0 * spacing) * depth**m
    kappa = 1 + (absorber.kappa - 1) * depth**m
    alpha = absorber.alpha * (1 - depth)
    b = np.exp(-(sigma / kappa + alpha) * dt / EPSILON_0)
    denominator = kappa * (sigma + kappa * alpha)
    c = np.where(sigma > 0, sigma * (b - 1) / np.where(denominator > 0, denominator, 1.0), 0.0)
    return 1 / kappa, b, c

"""The discretisation of waves, and the grid of a run around a medium."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from operator import index
from typing import Literal, get_args

import numpy as np

from peergrid.arguments import brief, check_flag, is_number, is_one_of, is_whole
from peergrid.errors import UsageError
from peergrid.grid import Array, Box, Dtype, Grid
from peergrid.models.wave.medium import Medium
from peergrid.models.wave.points import HALF, rounded
from peergrid.models.wave.weights import second, staggered
from peergrid.models.waveforms import Doubles

Absorber = Literal["sponge", "cpml"]
TimeOrder = Literal[2, 4]
ECHO = 1e-2  # the share of a wave at normal incidence that returns through a sponge
TILTED_ECHO = 3e-2  # the same for perfectly matched layers around tilted axes


@dataclass(frozen=True)
class Scheme:
    """Of space and time.

    order: of differences in space, even, 2 to 16; courant: the time step in units of the largest that is stable; layer:
    cells of absorbing layer on every side, outside the medium; free_surface: no layer at the top, but zero pressure at
    node 0; dtype: of all fields; absorber: a sponge, or perfectly matched layers (`absorber`); time_order: 2, or 4 in
    acoustic media.
    """

    order: int = 8
    courant: float = 0.7
    layer: int = 20
    free_surface: bool = False
    dtype: Dtype = "float32"
    absorber: Absorber = "sponge"
    time_order: TimeOrder = 2

    def __post_init__(self) -> None:
        order, time_order, layer = (
            index(given) if is_whole(given) else -1 for given in (self.order, self.time_order, self.layer)
        )
        if order not in range(2, 17, 2):
            raise UsageError(f"An order in space is expected to be even, from 2 to 16, got {brief(self.order)}.")
        if time_order not in get_args(TimeOrder):
            raise UsageError(f"time_order is expected to be 2 or 4, got {brief(self.time_order)}.")
        if not is_number(self.courant) or not 0 < self.courant <= 1:
            raise UsageError(
                f"courant is expected to be above 0 and not above 1, the limit of stability, got {brief(self.courant)}."
            )
        if layer < 0:
            raise UsageError(f"layer is expected to be a whole number of cells, not below 0, got {brief(self.layer)}.")
        check_flag("free_surface", self.free_surface)
        if not is_one_of(self.absorber, get_args(Absorber)):
            raise UsageError(f"absorber is expected to be 'sponge' or 'cpml', got {brief(self.absorber)}.")
        dtype, courant = Grid(1, dtype=self.dtype).dtype, float(self.courant)
        for name, value in {
            "order": order, "time_order": time_order, "layer": layer, "dtype": dtype, "courant": courant,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Frame:
    """The grid of a run: the medium, continued over absorbing layers, and a margin that does not change."""

    medium: Medium
    scheme: Scheme

    @property
    def reach(self) -> int:
        """The number of cells that a stage reads to each side."""
        return self.scheme.order // 2

    @property
    def matched(self) -> bool:
        """True with perfectly matched layers."""
        return self.scheme.absorber == "cpml" and self.scheme.layer > 0

    @property
    def mirrored(self) -> int:
        """Cells above a free surface that continue the waves."""
        two_stages = self.medium.density is not None or self.medium.kind == "tti"
        return max(self.reach * (2 if two_stages else 1), HALF) if self.scheme.free_surface else 0

    @property
    def changing(self) -> Box:
        """The cells whose derivatives read only cells of the grid."""
        return Box((self.reach,) * self.medium.ndim, tuple(n - self.reach for n in self.shape))

    @property
    def before(self) -> tuple[int, ...]:
        """Cells of the grid before node 0 of the medium, along each axis."""
        margin = max(self.reach, HALF)
        usual = (self.scheme.layer + margin,) * self.medium.ndim
        return usual if not self.mirrored else (*usual[:-1], margin + self.mirrored)

    @property
    def after(self) -> tuple[int, ...]:
        """Cells of the grid after the medium's last node, along each axis."""
        return (self.scheme.layer + max(self.reach, HALF),) * self.medium.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(n + a + b for n, a, b in zip(self.medium.shape, self.before, self.after, strict=True))

    @cached_property
    def grid(self) -> Grid:
        return Grid(self.shape, "fixed", self.scheme.dtype)

    @property
    def inside(self) -> Box:
        """The cells of the medium."""
        return Box(self.before, tuple(a + n for a, n in zip(self.before, self.medium.shape, strict=True)))

    @property
    def unit(self) -> float:
        """The smallest spacing, metres: the unit of length in the stencils."""
        return min(self.medium.spacings)

    def cells(self, points: object, what: str) -> Doubles:
        """Positions in metres as positions on the grid in cells, shape (points, axes).

        Raises UsageError for positions outside the medium.
        """
        ndim, extent = self.medium.ndim, np.array(self.medium.extent)
        found = np.atleast_2d(np.asarray(points, dtype=np.float64))
        if found.ndim != 2 or found.shape[1] != ndim or not np.isfinite(found).all():
            raise UsageError(f"{what} are expected at positions of {ndim} finite metres each, got shape {found.shape}.")
        outside = self.medium.outside(found)
        if outside.any():
            raise UsageError(
                f"{what} are expected within the medium, from 0 to {tuple(map(float, extent))} m, got one at "
                f"{tuple(map(float, found[outside.argmax()]))}; move it."
            )
        return rounded(np.clip(found, 0.0, extent) / np.array(self.medium.spacings) + np.array(self.before))

    def continued(self, values: Doubles) -> Doubles:
        """A parameter on the grid: edge values continue beyond the edges; numbers stay numbers."""
        if not values.ndim:
            return values
        return np.pad(values, tuple(zip(self.before, self.after, strict=True)), mode="edge")

    def damping(self, dt: float) -> tuple[Array, ...]:
        """Along each axis a factor for each cell: 1 in the medium, falling through the layer; empty without damping.

        A damping σ = σ₀ s² at relative depth s, with σ₀ such that the echo has `ECHO` of the wave's amplitude;
        perfectly matched layers damp by half as much, and their convolutions by the other half.
        """
        layer = self.scheme.layer
        if not layer or (self.matched and self.medium.kind != "tti"):
            return ()
        speed = float(self.medium.values("velocity").mean())
        passing = log(1 / TILTED_ECHO) / 2 if self.matched else log(1 / ECHO)
        found = []
        for axis, h in enumerate(self.medium.spacings):
            most = 3 * speed * passing / (layer * h)
            found.append(np.exp(-most * self.depth(axis) ** 2 * dt / 2))
        return tuple(found)

    def depth(self, axis: int, ahead: float = 0.0) -> Doubles:
        """Along an axis the depth in a layer of each cell, or so many cells ahead: 0 in the medium, 1 at its end."""
        position = np.arange(self.grid.shape[axis]) - self.before[axis] + ahead
        low = -position if self.absorbs_before(axis) else np.zeros_like(position)
        outside = np.maximum(low, position - (self.medium.shape[axis] - 1))
        found: Doubles = np.clip(outside / self.scheme.layer, 0.0, 1.0)
        return found

    def absorbs_before(self, axis: int) -> bool:
        """True if there is a layer before the first node along an axis."""
        return not (self.scheme.free_surface and axis == self.medium.ndim - 1)

    def damped(self, dt: float, box: Box) -> Doubles:
        """The product of the factors along all axes, for each cell of a box."""
        found = np.ones(box.shape)
        for axis, curve in enumerate(self.damping(dt)):
            found *= curve[box.lo[axis] : box.hi[axis]].reshape([-1 if k == axis else 1 for k in range(box.ndim)])
        return found

    def largest_step(self) -> float:
        """The largest time step that is surely stable, seconds: 2 / √λ, λ a bound of the operator's eigenvalues.

        With fourth order in time it is √(12 / λ), as λ dt² - (λ dt²)² / 12 has to lie between 0 and 4; it has to rise
        with λ where layers are to damp what they match, up to √(6 / λ).
        """
        limit = 2.0 if self.scheme.time_order == 2 else sqrt(6 if self.matched else 12)
        medium, order = self.medium, self.scheme.order
        velocity, density = medium.values("velocity"), medium.values("density")
        if medium.density is not None:
            rows = (_row_sum(density, axis, order) / h**2 for axis, h in enumerate(medium.spacings))
            return limit / sqrt(float((density * velocity**2 * sum(rows)).max()))
        weights = second(order)
        highest = abs(weights[0] + 2 * sum(w * (-1) ** k for k, w in enumerate(weights[1:], 1)))
        stretch = np.maximum(1.0, 1 + 2 * medium.values("epsilon"))
        fastest = float((velocity**2 * stretch).max())
        return limit / sqrt(fastest * sum(highest / h**2 for h in medium.spacings))


def _row_sum(density: Doubles, axis: int, order: int) -> Doubles:
    """The sum of absolute values in each row of the matrix of -∂(1/ρ ∂) along an axis, cells of length 1."""
    weights = [abs(w) for w in staggered(order)]
    if not density.ndim:
        return (2 * sum(weights)) ** 2 / density
    reach, line = len(weights), np.moveaxis(density, axis, 0)
    wide = np.pad(line, [(reach, reach)] + [(0, 0)] * (line.ndim - 1), mode="edge")
    between, n = 2 / (wide[:-1] + wide[1:]), len(line)
    found = sum(
        w * (between[reach + k : reach + k + n] + between[reach - k - 1 : reach - k - 1 + n])
        for k, w in enumerate(weights)
    )
    return np.asarray(np.moveaxis(np.asarray(found) * 2 * sum(weights), 0, axis))

"""Shapes that fill cells with a material. A cell belongs to a shape when its centre does."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, pi, radians, sin
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from peergrid.io.rule import Count, FileName, Finite, Name, NotNegative, Point, Positive, Rule
from peergrid.models.fdtd.materials import Doubles

Mask = NDArray[np.bool_]
Bounds = tuple[Point, Point]
EVERYWHERE: Bounds = ((-np.inf, -np.inf), (np.inf, np.inf))


class Region(Protocol):
    """A shape given by a formula."""

    @property
    def bounds(self) -> Bounds:
        """Lower and upper corner of a box around the shape, metres."""

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        """True for each point that lies inside; x has shape (n, 1), y has shape (1, m), the result (n, m)."""


@dataclass(frozen=True)
class Box:
    """A rectangle with sides along the axes."""

    kind: ClassVar[str] = "box"
    material: Name
    lower: Point
    upper: Point

    @property
    def bounds(self) -> Bounds:
        return self.lower, self.upper

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        inside: Mask = (x >= self.lower[0]) & (x < self.upper[0]) & (y >= self.lower[1]) & (y < self.upper[1])
        return inside


@dataclass(frozen=True)
class Cylinder:
    """A circular cylinder along z, seen end on."""

    kind: ClassVar[str] = "cylinder"
    material: Name
    centre: Point
    radius: Positive

    @property
    def bounds(self) -> Bounds:
        return _around(self.centre, self.radius)

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        inside: Mask = (x - self.centre[0]) ** 2 + (y - self.centre[1]) ** 2 < self.radius**2
        return inside


@dataclass(frozen=True)
class Ellipse:
    """An ellipse; `angle` in degrees rotates its first radius from the x axis towards the y axis."""

    kind: ClassVar[str] = "ellipse"
    material: Name
    centre: Point
    radii: tuple[Positive, Positive]
    angle: Finite = 0.0

    @property
    def bounds(self) -> Bounds:
        return _around(self.centre, max(self.radii))

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        along = (cos(radians(self.angle)), sin(radians(self.angle)))
        dx, dy = x - self.centre[0], y - self.centre[1]
        first = (dx * along[0] + dy * along[1]) / self.radii[0]
        second = (dy * along[0] - dx * along[1]) / self.radii[1]
        inside: Mask = first**2 + second**2 < 1
        return inside


@dataclass(frozen=True)
class Triangle:
    """A triangle, its corners in either direction."""

    kind: ClassVar[str] = "triangle"
    material: Name
    vertices: tuple[Point, Point, Point]

    @property
    def bounds(self) -> Bounds:
        return _hull(self.vertices)

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        return _even_odd(self.vertices, x, y)


@dataclass(frozen=True)
class Polygon:
    """A polygon, closed by itself; where it overlaps itself the even-odd rule decides."""

    kind: ClassVar[str] = "polygon"
    material: Name
    vertices: Annotated[tuple[Point, ...], Rule("at least three points", lambda v: len(v) >= 3)]

    @property
    def bounds(self) -> Bounds:
        return _hull(self.vertices)

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        return _even_odd(self.vertices, x, y)


@dataclass(frozen=True)
class Layer:
    """A layer across the whole model from `bottom` to `top` along `axis`, its top rough if asked for.

    roughness: root mean square of the height around `top`, metres; correlation: the correlation length of the height,
    metres (Gaussian correlation exp(-(d / correlation)²)); seed: the same seed gives the same surface, at every
    spacing.
    """

    kind: ClassVar[str] = "layer"
    material: Name
    bottom: Finite
    top: Finite
    axis: Literal["x", "y"] = "y"
    roughness: NotNegative = 0.0
    correlation: Positive = 0.1
    seed: Count = 0

    @property
    def bounds(self) -> Bounds:
        return EVERYWHERE

    def covers(self, x: Doubles, y: Doubles) -> Mask:
        along, height = (x, y) if self.axis == "y" else (y, x)
        inside: Mask = (height >= self.bottom) & (height < self.top + self._relief(along))
        return inside

    def _relief(self, along: Doubles) -> Doubles:
        if self.roughness == 0:
            return np.zeros_like(along)
        return self.roughness * relief(along / self.correlation, self.seed)


@dataclass(frozen=True)
class Voxels:
    """Materials cell by cell from a file: whole numbers, entry [i, j] at `origin` plus (i, j) cells of the grid.

    The number n stands for `materials[n]`; a negative number leaves the cell as it was. `file` is a NumPy `.npy`
    file, or an HDF5 file with the array under `dataset`.
    """

    kind: ClassVar[str] = "voxels"
    file: FileName
    materials: Annotated[tuple[Name, ...], Rule("at least one material", lambda v: len(v) >= 1)]
    dataset: FileName = "data"
    origin: Point = field(default=(0.0, 0.0))


Shape = Box | Cylinder | Ellipse | Triangle | Polygon | Layer | Voxels


def relief(distance: Doubles, seed: int, waves: int = 256) -> Doubles:
    """A random height of variance 1 whose correlation over a distance d is exp(-d²).

    A sum of cosines with random phases whose amplitudes follow the Gaussian spectrum exp(-k²/4) (the spectral method of
    Shinozuka and Deodatis, 1991); `seed` fixes the phases. distance: any shape.
    """
    wavenumbers = (np.arange(waves) + 0.5) * (8.0 / waves)
    weights = np.exp(-(wavenumbers**2) / 4)
    amplitudes = np.sqrt(2 * weights / weights.sum())
    phases = 2 * pi * np.random.Generator(np.random.PCG64(seed)).random(waves)
    height = np.zeros_like(distance)
    for k, a, phase in zip(wavenumbers, amplitudes, phases, strict=True):
        height += a * np.cos(k * distance + phase)
    return height


def _around(centre: Point, radius: float) -> Bounds:
    return (centre[0] - radius, centre[1] - radius), (centre[0] + radius, centre[1] + radius)


def _hull(vertices: tuple[Point, ...]) -> Bounds:
    xs, ys = zip(*vertices, strict=True)
    return (min(xs), min(ys)), (max(xs), max(ys))


def _even_odd(vertices: tuple[Point, ...], x: Doubles, y: Doubles) -> Mask:
    """A point is inside when a ray towards larger x crosses the outline an odd number of times."""
    inside = np.zeros(np.broadcast_shapes(x.shape, y.shape), dtype=np.bool_)
    for (x0, y0), (x1, y1) in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        if y0 != y1:
            spans = (y >= min(y0, y1)) & (y < max(y0, y1))
            crossing = x0 + (y - y0) * ((x1 - x0) / (y1 - y0))
            inside ^= spans & (x < crossing)
    return inside

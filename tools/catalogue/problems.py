"""Problems that no test and no benchmark has yet: lines, systems of equations, flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from problems3d import electric, magnetic

from peergrid.grid import Boundary, Dtype, Grid, Index
from peergrid.models.fdtd3d import SIDES, VACUUM, Absorber, Domain, Medium, Slab, build
from peergrid.models.wave import Medium as WaveMedium
from peergrid.models.wave import PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.stencil import Problem, stencil

DIRECTIONS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
SPONGE, MATCHED = Scheme(layer=10), Scheme(layer=10, absorber="cpml")
WEIGHTS = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


@stencil
def diffuse_line(u: Any, k: float) -> None:
    u.next[0] = u[0] + k * (u[-1] - 2 * u[0] + u[1])


def line(cells: int, boundary: Boundary = "fixed") -> Problem:
    """Three points in 1D."""
    return Problem.of(diffuse_line(Grid((cells,), boundary).field("u"), 0.25))


@stencil
def heat_plane(u: Any, k: float) -> None:
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def heat(shape: Index, boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    """Five points in 2D."""
    return Problem.of(heat_plane(Grid(shape, boundary, dtype).field("u"), 0.2))


@stencil
def square_often(u: Any) -> None:
    a = 0.5 * u[0, 0]
    for _ in range(8):
        a = a * a + u[1, 0]
    u.next[0, 0] = a


def squares(shape: Index) -> Problem:
    """An expression in which one value is used again and again."""
    return Problem.of(square_often(Grid(shape).field("u")))


@stencil
def react(u: Any, v: Any, du: float, dv: float, f: float, k: float) -> None:
    around_u = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    around_v = v[-1, 0] + v[1, 0] + v[0, -1] + v[0, 1] - 4 * v[0, 0]
    eaten = u[0, 0] * v[0, 0] * v[0, 0]
    u.next[0, 0] = u[0, 0] + (du * around_u - eaten + f * (1 - u[0, 0]))
    v.next[0, 0] = v[0, 0] + (dv * around_v + eaten - (f + k) * v[0, 0])


def gray_scott(shape: Index, boundary: Boundary = "periodic") -> Problem:
    """Reaction and diffusion of two substances."""
    grid = Grid(shape, boundary)
    return Problem.of(react(grid.field("u"), grid.field("v"), 0.16, 0.08, 0.035, 0.065))


@stencil
def collide(f0: Any, f1: Any, f2: Any, f3: Any, f4: Any, f5: Any, f6: Any, f7: Any, f8: Any, omega: float) -> None:
    """Streaming and collision (BGK) in one update; the field number k moves along DIRECTIONS[k]."""
    fields = (f0, f1, f2, f3, f4, f5, f6, f7, f8)
    come = [field[-dx, -dy] for field, (dx, dy) in zip(fields, DIRECTIONS, strict=True)]
    density = sum(come[1:], come[0])
    ux = (come[3] + come[5] + come[6] - come[4] - come[7] - come[8]) / density
    uy = (come[1] + come[5] + come[7] - come[2] - come[6] - come[8]) / density
    square = 1.5 * (ux * ux + uy * uy)
    for field, value, weight, (dx, dy) in zip(fields, come, WEIGHTS, DIRECTIONS, strict=True):
        along = dx * ux + dy * uy
        balance = weight * density * (1 + 3 * along + 4.5 * along * along - square)
        field.next[0, 0] = value + omega * (balance - value)


def lattice_boltzmann(shape: Index) -> Problem:
    """A flow by nine populations (D2Q9)."""
    grid = Grid(shape, "periodic")
    return Problem.of(collide(*(grid.field(f"f{k}") for k in range(9)), 1.2))


def yee_periodic(n: int) -> Problem:
    """Yee's scheme in 3D without edges."""
    grid = Grid((n, n, n), "periodic")
    fields = [grid.field(name) for name in ("ex", "ey", "ez", "hx", "hy", "hz")]
    return Problem.of([magnetic(*fields, 0.3), electric(*fields, grid.field("cb"))])


def radar3d(cells: Index) -> Problem:
    """Radar in 3D over soil, with absorbers on all sides: those at the ends of rows are corrections."""
    ids = np.zeros((6, *(n + 1 for n in cells)), np.uint8)
    ids[:3, :, :, : cells[2] // 2] = 1
    absorber = Absorber(tuple((side, Slab(10)) for side in SIDES))
    media = VACUUM, Medium("soil", 4.0, 0.01)
    return build(Domain(cells, (0.002,) * 3, 3e-12, 9, media, ids, absorber=absorber)).problem


def waves(shape: Index, scheme: Scheme = SPONGE, **anisotropy: float) -> Problem:
    """A shot in a medium that differs from node to node; anisotropy: values at 1 m/s, in proportion to the velocity."""
    velocity = np.linspace(1500, 3000, shape[-1]) * np.ones(shape)
    medium = WaveMedium(shape, 10.0, velocity, **{name: value * velocity for name, value in anisotropy.items()})
    middle = tuple(5.0 * n for n in shape)
    propagator = Propagator(medium, scheme)
    return Shot(propagator, [PointSource(middle, Ricker(10.0))], [middle], 9).problem

"""Problems of the field that no test and no benchmark has yet: systems of equations, high order, flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from problems3d import electric, magnetic

from peergrid.grid import Boundary, Box, Dtype, Grid, Index
from peergrid.stencil import Problem, Receiver, stencil

EIGHTH_ORDER = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
FIRST_DERIVATIVE = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
DIRECTIONS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
WEIGHTS = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


def _at(axes: int, axis: int, distance: int) -> Index:
    return tuple(distance * (k == axis) for k in range(axes))


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


@stencil
def wave_eighth(u: Any, speed: Any) -> None:
    second = 3 * EIGHTH_ORDER[0] * u[0, 0, 0]
    for axis in range(3):
        for distance, weight in enumerate(EIGHTH_ORDER[1:], 1):
            second = second + weight * (u[_at(3, axis, -distance)] + u[_at(3, axis, distance)])
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + speed[0, 0, 0] * second


@stencil
def inject(u: Any, wave: Any) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] + wave.now


def acoustic(n: int, source: bool = False) -> Problem:
    """The acoustic wave, of eighth order in space, in a medium of variable velocity."""
    grid = Grid((n, n, n))
    u, speed = grid.field("u"), grid.field("speed")
    if not source:
        return Problem.of(wave_eighth(u, speed))
    pulse = inject(u, grid.signal("pulse", np.sin(np.arange(64) / 9))).within(Box.cell((n // 2, n // 2, 4)))
    return Problem.of(
        [wave_eighth(u, speed), pulse], [Receiver(f"r{k}", "u", (k * n // 8, n // 2, 4)) for k in range(8)]
    )


@stencil
def derive(p: Any, px: Any, py: Any, pz: Any) -> None:
    for axis, target in enumerate((px, py, pz)):
        target.next[0, 0, 0] = _first(p, axis)


@stencil
def tilted(p: Any, px: Any, py: Any, pz: Any, a: Any, b: Any, c: Any) -> None:
    flow = _first(px, 0) * a[0, 0, 0] + _first(py, 1) * b[0, 0, 0] + _first(pz, 2) * c[0, 0, 0]
    mixed = _first(px, 1) * (a[0, 0, 0] * b[0, 0, 0]) + _first(pz, 0) * (a[0, 0, 0] * c[0, 0, 0])
    p.next[0, 0, 0] = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + (flow + mixed)


def _first(u: Any, axis: int) -> Any:
    parts = [
        weight * (u[_at(3, axis, distance)] - u[_at(3, axis, -distance)])
        for distance, weight in enumerate(FIRST_DERIVATIVE, 1)
    ]
    return sum(parts[1:], parts[0])


def tilted_medium(n: int) -> Problem:
    """A wave in a tilted anisotropic medium (TTI): first derivatives are stored, then derived again."""
    grid = Grid((n, n, n))
    p, px, py, pz = (grid.field(name) for name in ("p", "px", "py", "pz"))
    a, b, c = (grid.field(name) for name in "abc")
    return Problem.of([derive(p, px, py, pz), tilted(p, px, py, pz, a, b, c)])


@stencil
def tilted_at_once(p: Any, a: Any, b: Any, c: Any) -> None:
    def first(axis: int, at: Index) -> Any:
        moved = [
            weight * (p[_sum(at, _at(3, axis, distance))] - p[_sum(at, _at(3, axis, -distance))])
            for distance, weight in enumerate(FIRST_DERIVATIVE, 1)
        ]
        return sum(moved[1:], moved[0])

    def flow(at: Index) -> Any:
        return a[at] * first(0, at) + b[at] * first(1, at) + c[at] * first(2, at)

    total: Any = 0.0
    for axis, coefficient in enumerate((a, b, c)):
        for distance, weight in enumerate(FIRST_DERIVATIVE, 1):
            ahead, behind = _at(3, axis, distance), _at(3, axis, -distance)
            total = total + weight * (coefficient[ahead] * flow(ahead) - coefficient[behind] * flow(behind))
    p.next[0, 0, 0] = 2 * p[0, 0, 0] - p.prev[0, 0, 0] + total


def _sum(one: Index, two: Index) -> Index:
    return tuple(i + j for i, j in zip(one, two, strict=True))


def tilted_products(n: int) -> Problem:
    """The like in one stage: a derivative along the axis of symmetry of such a derivative."""
    grid = Grid((n, n, n))
    return Problem.of(tilted_at_once(grid.field("p"), *(grid.field(name) for name in "abc")))


def yee_periodic(n: int) -> Problem:
    """Yee's scheme in 3D without edges."""
    grid = Grid((n, n, n), "periodic")
    fields = [grid.field(name) for name in ("ex", "ey", "ez", "hx", "hy", "hz")]
    return Problem.of([magnetic(*fields, 0.3), electric(*fields, grid.field("cb"))])


@stencil
def smooth(u: Any) -> None:
    total = 0.5 * u[0, 0, 0]
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            for k in (-1, 0, 1):
                if (i, j, k) != (0, 0, 0):
                    total = total + 0.5 / 26 * u[i, j, k]
    u.next[0, 0, 0] = total


def box27(n: int) -> Problem:
    """All 27 points of a cube."""
    return Problem.of(smooth(Grid((n, n, n)).field("u")))

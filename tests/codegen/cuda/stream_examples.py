"""Problems for the time-blocked kernels: one stage and several, confined updates, sources, wide offsets."""

from __future__ import annotations

from typing import Any

import numpy as np

from peergrid.grid import Boundary, Box, Dtype, Grid
from peergrid.stencil import Problem, Receiver, Stage, maximum, sqrt, stencil, where


@stencil
def jacobi(u: Any) -> None:
    u.next[0, 0] = 0.25 * ((u[0, -1] + u[0, 1]) + (u[-1, 0] + u[1, 0]))


@stencil
def wide(u: Any, k: Any, s: float) -> None:
    u.next[0, 0] = u[0, 0] + k[0, 0] * (s * (u[-2, 1] + u[2, 0]) - (u[0, 5] + u[0, -3]) / (abs(u[1, -1]) + 1.5))


@stencil
def leap(u: Any, v: Any) -> None:
    u.next[0, 0] = where(u[0, 0] > v[1, 1], maximum(v[0, 1], u[-1, 0]), sqrt(abs(v[0, 0])) - u[0, 0])
    v.next[0, 0] = u[0, 0] + 0.5 * v[0, -1]


@stencil
def magnetic(ez: Any, hx: Any, hy: Any) -> None:
    hx.next[0, 0] = hx[0, 0] - 0.5 * (ez[0, 1] - ez[0, 0])
    hy.next[0, 0] = hy[0, 0] + 0.5 * (ez[1, 0] - ez[0, 0])


@stencil
def electric(ez: Any, hx: Any, hy: Any, ca: Any, cb: Any) -> None:
    ez.next[0, 0] = ca[0, 0] * ez[0, 0] + cb[0, 0] * ((hy[0, 0] - hy[-1, 0]) - (hx[0, 0] - hx[0, -1]))


@stencil
def absorbed(ez: Any, hx: Any, hy: Any, ca: Any, cb: Any, psi: Any, b: Any, c: Any) -> None:
    difference = hy[0, 0] - hy[-1, 0]
    memory = b[0, 0] * psi[0, 0] + c[0, 0] * difference
    psi.next[0, 0] = memory
    ez.next[0, 0] = ca[0, 0] * ez[0, 0] + cb[0, 0] * ((difference + memory) - (hx[0, 0] - hx[0, -1]))


@stencil
def add(u: Any, s: Any) -> None:
    u.next[0, 0] = u[0, 0] + s.now


def random(grid: Grid, name: str, seed: int, within: Box | None = None) -> Any:
    shape = grid.shape if within is None else within.shape
    return grid.field(name, np.random.default_rng(seed).standard_normal(shape), within=within)


def relaxation(shape: tuple[int, int], boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    return Problem.of(jacobi(random(Grid(shape, boundary, dtype), "u", 1)))


def wide_reads(shape: tuple[int, int], boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, boundary, dtype)
    return Problem.of(wide(random(grid, "u", 1), random(grid, "k", 2), 0.1))


def two_fields(shape: tuple[int, int], boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, boundary, dtype)
    return Problem.of(leap(random(grid, "u", 1), random(grid, "v", 2)))


def yee(shape: tuple[int, int], boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, boundary, dtype)
    ez, hx, hy, ca, cb = (random(grid, name, k) for k, name in enumerate(("Ez", "Hx", "Hy", "ca", "cb")))
    return Problem.of([magnetic(ez, hx, hy), electric(ez, hx, hy, ca, cb)])


def radar(
    shape: tuple[int, int],
    boundary: Boundary = "fixed",
    dtype: Dtype = "float32",
    source: tuple[int, int] | None = None,
) -> Problem:
    """Yee with an absorber at the low end of axis 0, two sources (one in the middle or as given), receivers."""
    middle = source or (shape[0] // 2, shape[1] // 2)
    grid = Grid(shape, boundary, dtype)
    ez, hx, hy, ca, cb = (random(grid, name, k) for k, name in enumerate(("Ez", "Hx", "Hy", "ca", "cb")))
    layer = Box((0, 0), (6, shape[1]))
    psi = random(grid, "psi", 7, within=layer)
    b, c = (grid.profile(name, 0, np.linspace(0.2, 0.9, shape[0])) for name in ("b", "c"))
    stages = [
        magnetic(ez, hx, hy),
        Stage(
            (
                absorbed(ez, hx, hy, ca, cb, psi, b, c).within(layer),
                electric(ez, hx, hy, ca, cb).within(Box((6, 0), shape)),
            )
        ),
        add(ez, grid.signal("s", np.linspace(1, 2, 6))).within(Box.cell(middle)),
        add(hx, grid.signal("q", np.linspace(3, 4, 40))).within(Box.cell((1, shape[1] - 2))),
    ]
    receivers = [
        Receiver("a", "Ez", (shape[0] // 2, shape[1] // 2 + 1)),
        Receiver("b", "Hy", (0, 0)),
        Receiver("c", "Ez", (shape[0] - 1, shape[1] - 1)),
        Receiver("d", "ca", (2, 3)),
    ]
    return Problem.of(stages, receivers)

"""1D problems for kernels of several steps: one stage and several, confined updates, sources, receivers, far reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from peergrid.grid import Boundary, Box, Dtype, Grid
from peergrid.stencil import Problem, Receiver, Stage, maximum, stencil, where


def random(grid: Grid, name: str, seed: int, within: Box | None = None) -> Any:
    """A field of noise between -1 and 1."""
    shape = grid.shape if within is None else within.shape
    return grid.field(name, np.random.default_rng(seed).uniform(-1, 1, shape), within=within)


@stencil
def heat(u: Any) -> None:
    u.next[0] = u[0] + 0.25 * (u[-1] - 2 * u[0] + u[1])


@stencil
def far(u: Any, k: Any, s: float) -> None:
    u.next[0] = u[0] + k[1] * (s * (u[-3] - u[2]) / (abs(u[1]) + 1.5) - k[-2] * u[-1])


@stencil
def echo(u: Any) -> None:
    u.next[0] = 0.5 * (u[-40] + u[40])


@stencil
def exchange(u: Any, v: Any) -> None:
    u.next[0] = where(u[0] > v[1], maximum(v[0], u[-1]), v[-2] - u[0])
    v.next[0] = u[0] + 0.5 * v[-1]


@stencil
def magnetic(e: Any, h: Any) -> None:
    h.next[0] = h[0] + 0.5 * (e[1] - e[0])


@stencil
def electric(e: Any, h: Any, c: Any) -> None:
    e.next[0] = e[0] + c[0] * (h[0] - h[-1])


@stencil
def absorbed(e: Any, psi: Any, b: Any) -> None:
    psi.next[0] = b[0] * psi[0] + 0.1 * (e[0] - e[-1])
    e.next[0] = e[0] - psi[0]


@stencil
def add(e: Any, s: Any) -> None:
    e.next[0] = e[0] + s.now


def relaxation(cells: int, boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    return Problem.of(heat(random(Grid(cells, boundary, dtype), "u", 1)))


def far_reads(cells: int, boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(cells, boundary, dtype)
    return Problem.of(far(random(grid, "u", 1), random(grid, "k", 2), 0.3))


def distant(cells: int) -> Problem:
    """Reads so far away that no kernel makes several steps."""
    return Problem.of(echo(random(Grid(cells), "u", 1)))


def two_fields(cells: int, boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(cells, boundary, dtype)
    return Problem.of(exchange(random(grid, "u", 1), random(grid, "v", 2)))


def waves(cells: int, boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    """Two stages, a profile, a source, receivers, one of them where no update differs, a field that is carried over."""
    grid = Grid(cells, boundary, dtype)
    e, h = random(grid, "e", 1), random(grid, "h", 2)
    c = grid.profile("c", 0, np.linspace(0.2, 0.5, cells))
    pulse = grid.signal("pulse", np.sin(np.arange(7.0)))
    still, wave = random(grid, "still", 5), electric(e, h, c)
    moved = heat(still).within(Box((3,), (6,)))
    at = cells // 3
    stages = [Stage((magnetic(e, h),)), Stage((wave,)), Stage((add(e, pulse).within(Box((at,), (at + 1,))), moved))]
    receivers = [Receiver("near", "e", (at + 2,)), Receiver("away", "h", (cells - cells // 4,))]
    return Problem.of(stages, receivers)


def absorber(cells: int, boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    """Cells at one end with an update of their own, and a field that exists there alone."""
    grid = Grid(cells, boundary, dtype)
    e, h, c = random(grid, "e", 1), random(grid, "h", 2), random(grid, "c", 3)
    layer = Box((cells - 12,), (cells,))
    psi = random(grid, "psi", 4, layer)
    b = grid.profile("b", 0, np.linspace(0.2, 0.5, cells))
    inside, rest = Box((cells - 12,), (cells,)), Box((0,), (cells - 12,))
    return Problem.of(
        [Stage((magnetic(e, h),)), Stage((electric(e, h, c).within(rest), absorbed(e, psi, b).within(inside)))]
    )

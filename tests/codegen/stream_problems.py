"""Problems that between them ask for everything a CPU kernel can do, for any shape and boundary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from runtime_problems import electric, magnetic
from table_problems import layered

from peergrid.grid import Boundary, Box, Dtype, Grid
from peergrid.stencil import Problem, Receiver, Stage, equal, maximum, minimum, sqrt, stencil, where

Maker = Callable[[Sequence[int], Sequence[Boundary], Dtype], Problem]


def values(shape: Sequence[int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(tuple(shape))


@stencil
def heat(u, k):
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def plain(shape, boundary, dtype):
    grid = Grid(shape, boundary, dtype)
    cell = tuple(n // 2 for n in shape)
    return Problem.of(heat(grid.field("u", values(shape, 1)), 0.2), [Receiver("r", "u", cell)])


@stencil
def skewed(u, v, slope):
    u.next[0, 0] = slope[0, 0] * u[-2, 1] - slope[1, 0] * v[0, -2]
    v.next[0, 0] = u[0, 0] - v[-3, 0] + abs(slope[0, 0])


def lopsided(shape, boundary, dtype):
    """Reads on one side only, two fields in one stage, a profile along the stream."""
    grid = Grid(shape, boundary, dtype)
    slope = grid.profile("slope", 0, values(shape[:1], 3))
    return Problem.of(skewed(grid.field("u", values(shape, 1)), grid.field("v", values(shape, 2)), slope))


@stencil
def far(u, c):
    u.next[0, 0] = c[0, 0] * u[0, 0] + 0.1 * (u[-4, 0] + u[4, 0]) + 0.15 * (u[0, -4] + u[0, 4]) - 0.3 * u[3, -3]


def wide(shape, boundary, dtype):
    """Radius four, with a coefficient along the rows."""
    grid = Grid(shape, boundary, dtype)
    return Problem.of(far(grid.field("u", values(shape, 1)), grid.profile("c", 1, values(shape[1:], 2))))


@stencil
def swap(u, v):
    u.next[0, 0] = v[0, 0]
    v.next[0, 0] = u[0, 0]


@stencil
def pull(u, v):
    u.next[0, 0] = minimum(u[0, 0], v[0, 1]) - where((u[0, 0] > v[0, 0]) & ~equal(v[0, 0], 0), v[0, 0], -u[0, 0])


@stencil
def grow(u, v):
    v.next[0, 0] = sqrt(maximum(v[0, 0], u[-1, 0] / 3)) + (u[0, 0] > 0.5)


def chained(shape, boundary, dtype):
    """Fields that swap places, conditions, square roots, NaN; stages that stream at different lags."""
    grid = Grid(shape, boundary, dtype)
    u, v = grid.field("u", values(shape, 1)), grid.field("v", values(shape, 2))
    return Problem.of([pull(u, v), swap(u, v), grow(u, v)], [Receiver("u", "u", (0, 0)), Receiver("v", "v", (0, 1))])


@stencil
def damped(ez, hx, hy, ca, c, psi, b):
    memory = b[0, 0] * psi[0, 0] + ca[0, 0] * (hy[0, 0] - hy[-1, 0])
    psi.next[0, 0] = memory
    ez.next[0, 0] = ca[0, 0] * ez[0, 0] + c * (memory - (hx[0, 0] - hx[0, -1]))


@stencil
def emit(ez, wave):
    ez.next[0, 0] = ez[0, 0] + wave.now


def yee(shape, boundary, dtype):
    """Stages of several updates on boxes, confined fields, a signal on one cell, receivers."""
    grid = Grid(shape, boundary, dtype)
    ez, hx, hy = (grid.field(name, values(shape, i)) for i, name in enumerate(("ez", "hx", "hy")))
    ca, b = grid.field("ca", 0.9 * values(shape, 9)), grid.profile("b", 0, values(shape[:1], 5))
    layers, rest = _ends(grid)
    sides = [damped(ez, hx, hy, ca, 0.5, grid.field(f"psi{i}", within=box), b).within(box) for i, box in layers]
    inner = electric(ez, hx, hy, ca, 0.5).within(rest)
    middle = tuple(n // 2 for n in shape)
    source = emit(ez, grid.signal("wave", [1.0, -2.0, 3.0])).within(Box.cell(middle))
    receivers = [Receiver("a", "ez", middle), Receiver("b", "hy", (shape[0] - 1, 0)), Receiver("c", "ez", middle)]
    return Problem.of([magnetic(ez, hx, hy, 0.5), Stage((*sides, inner)), source], receivers)


def _ends(grid: Grid) -> tuple[list[tuple[int, Box]], Box]:
    """Layers at both ends of the last axis that allows it, and what lies between them."""
    if grid.boundary[0] == "periodic":
        return [], grid.box
    n = grid.shape[0]
    low, high = grid.box.with_axis(0, 0, n // 3), grid.box.with_axis(0, n - n // 4, n)
    layers = [(i, box) for i, box in enumerate((low, high)) if not box.empty]
    return layers, grid.box.with_axis(0, n // 3, n - n // 4)


PLANE: dict[str, Maker] = {make.__name__: make for make in (plain, lopsided, wide, chained, yee, layered)}


@stencil
def wave(u, c, push):
    u.next[0] = 2 * u[0] - u.prev[0] + c[0] * (u[-1] - 2 * u[0] + u[2]) + push.now


def line(shape, boundary, dtype):
    grid = Grid(shape, boundary, dtype)
    push, c = grid.signal("push", [0.5, 0.25]), grid.field("c", values(shape, 4))
    return Problem.of(wave(grid.field("u", values(shape, 1)), c, push), [Receiver("r", "u", (1,))])


@stencil
def diffuse(u, k, a):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 2, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next[0, 0, 0] = u[0, 0, 0] + k[0, 0, 0] * (around - 6 * u[0, 0, 0]) * a[0, 0, 0]


@stencil
def settle(u, w):
    w.next[0, 0, 0] = 0.5 * (w[0, 0, 0] + u[0, 0, 0])


def cube(shape, boundary, dtype):
    grid = Grid(shape, boundary, dtype)
    u, w = grid.field("u", values(shape, 1)), grid.field("w", values(shape, 2))
    k, a = grid.profile("k", 1, values(shape[1:2], 3)), grid.profile("a", 2, values(shape[2:], 4))
    corner = Box((0, 0, 0), tuple(max(1, n // 2) for n in shape))
    return Problem.of([diffuse(u, k, a), settle(u, w).within(corner)], [Receiver("r", "w", (0, 0, 0))])


@stencil
def spread(u, c):
    around = u[-1, 0, 0] + u[2, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -2] + u[0, 0, 1]
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + c[0, 0, 0] * (around - 6 * u[0, 0, 0])


@stencil
def strike(u, push):
    u.next[0, 0, 0] = u[0, 0, 0] + push.now


def surge(shape, boundary, dtype):
    """A wave in space with a source: the field of one step before is never copied within a pass."""
    grid = Grid(shape, boundary, dtype)
    u, c, push = grid.field("u", values(shape, 1)), grid.field("c", values(shape, 4)), grid.signal("push", [0.5, 0.25])
    middle = Box.cell(n // 2 for n in shape)
    return Problem.of(
        [spread(u, c), strike(u, push).within(middle)],
        [Receiver("r", "u.prev", tuple(n // 2 for n in shape))],
    )


@stencil
def slopes(u, g):
    g.next[0, 0, 0] = u[1, 0, 0] - u[-2, 0, 0] + 0.5 * u[0, 1, -1]


@stencil
def follow(u, g):
    u.next[0, 0, 0] = u[0, 0, 0] - 0.1 * (g[1, 0, 0] - g[-1, 0, 0] + g[0, 0, 2] - g[0, -1, 0])


def derived(shape, boundary, dtype):
    """Derivatives that are stored, and read by the next stage around each cell."""
    grid = Grid(shape, boundary, dtype)
    u, g = grid.field("u", values(shape, 1)), grid.field("g", values(shape, 2))
    return Problem.of([slopes(u, g), follow(u, g)])


SPACE: dict[str, Maker] = {make.__name__: make for make in (cube, surge, derived, layered)}

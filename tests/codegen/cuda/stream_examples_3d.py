"""3D problems for the time-blocked kernels: one stage and several, diagonal reads, layers, sources."""

from __future__ import annotations

from typing import Any

import numpy as np
from runtime_problems import heat_3d, source_3d
from stream_examples import random

from peergrid.grid import Boundary, Box, Dtype, Grid, Index
from peergrid.stencil import Problem, Receiver, Stage, maximum, stencil, where

Edges = Boundary | tuple[Boundary, Boundary, Boundary]


@stencil
def graded(u: Any, p: Any, q: Any, r: Any) -> None:
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next[0, 0, 0] = u[0, 0, 0] + (p[0, 0, 0] * q[0, 0, 0]) * (r[0, 0, 0] * (around - 6 * u[0, 0, 0]))


@stencil
def skewed(u: Any, v: Any, w: Any) -> None:
    u.next[0, 0, 0] = where(u[0, 0, 0] > v[1, 1, -1], maximum(v[0, 1, 1], u[-1, 0, 0]), w[0, -1, 0] * v[-1, 0, 1])
    v.next[0, 0, 0] = u[0, 0, -1] + 0.5 * v[0, -1, 0]


@stencil
def wide(u: Any) -> None:
    u.next[0, 0, 0] = (
        0.5 * u[0, 0, 0] + (u[2, 0, 0] - u[-1, 0, 0]) + (u[0, 3, 0] * u[0, -1, 0] - u[0, 0, 5] * u[0, 1, -2])
    )


@stencil
def magnetic(ex: Any, ey: Any, ez: Any, hx: Any, hy: Any, hz: Any, c: float) -> None:
    hx.next[0, 0, 0] = hx[0, 0, 0] + c * ((ey[0, 0, 1] - ey[0, 0, 0]) - (ez[0, 1, 0] - ez[0, 0, 0]))
    hy.next[0, 0, 0] = hy[0, 0, 0] + c * ((ez[1, 0, 0] - ez[0, 0, 0]) - (ex[0, 0, 1] - ex[0, 0, 0]))
    hz.next[0, 0, 0] = hz[0, 0, 0] + c * ((ex[0, 1, 0] - ex[0, 0, 0]) - (ey[1, 0, 0] - ey[0, 0, 0]))


@stencil
def electric(ex: Any, ey: Any, ez: Any, hx: Any, hy: Any, hz: Any, cb: Any, p: Any) -> None:
    b = cb[0, 0, 0] * p[0, 0, 0]
    ex.next[0, 0, 0] = ex[0, 0, 0] + b * ((hz[0, 0, 0] - hz[0, -1, 0]) - (hy[0, 0, 0] - hy[0, 0, -1]))
    ey.next[0, 0, 0] = ey[0, 0, 0] + b * ((hx[0, 0, 0] - hx[0, 0, -1]) - (hz[0, 0, 0] - hz[-1, 0, 0]))
    ez.next[0, 0, 0] = ez[0, 0, 0] + b * ((hy[0, 0, 0] - hy[-1, 0, 0]) - (hx[0, 0, 0] - hx[0, -1, 0]))


@stencil
def absorbed(ex: Any, hy: Any, hz: Any, psi: Any, b: Any) -> None:
    difference = hz[0, 0, 0] - hz[0, -1, 0]
    psi.next[0, 0, 0] = b[0, 0, 0] * psi[0, 0, 0] + difference
    ex.next[0, 0, 0] = ex[0, 0, 0] - 0.2 * (psi[0, 0, 0] + (difference - (hy[0, 0, 0] - hy[0, 0, -1])))


def diffusion(shape: Index, boundary: Edges = "fixed", dtype: Dtype = "float32") -> Problem:
    return Problem.of(heat_3d(random(Grid(shape, boundary, dtype), "u", 1), 0.1))


def profiles(shape: Index, boundary: Edges = "fixed", dtype: Dtype = "float32") -> Problem:
    """Diffusion with a profile along each axis."""
    grid = Grid(shape, boundary, dtype)
    curves = [grid.profile(name, axis, np.linspace(0.4, 0.6, shape[axis])) for axis, name in enumerate("pqr")]
    return Problem.of(graded(random(grid, "u", 1), *curves))


def two_fields(shape: Index, boundary: Edges = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, boundary, dtype)
    return Problem.of(skewed(random(grid, "u", 1), random(grid, "v", 2), random(grid, "w", 3)))


def wide_reads(shape: Index, boundary: Edges = "fixed", dtype: Dtype = "float32") -> Problem:
    return Problem.of(wide(random(Grid(shape, boundary, dtype), "u", 1)))


def yee(shape: Index, boundary: Edges = "fixed", dtype: Dtype = "float32") -> Problem:
    grid = Grid(shape, boundary, dtype)
    fields = [random(grid, name, k) for k, name in enumerate(("ex", "ey", "ez", "hx", "hy", "hz"))]
    profile = grid.profile("p", 1, np.linspace(0.1, 0.5, shape[1]))
    return Problem.of([magnetic(*fields, 0.3), electric(*fields, random(grid, "cb", 9), profile)])


def radar(shape: Index, boundary: Edges = "fixed", dtype: Dtype = "float32", source: Index | None = None) -> Problem:
    """Yee with an absorbing layer at the low end of axis 1, a source (in the middle or as given), receivers."""
    grid, middle = Grid(shape, boundary, dtype), source or (shape[0] // 2, shape[1] // 2, shape[2] // 2)
    ex, ey, ez, hx, hy, hz = (random(grid, name, k) for k, name in enumerate(("ex", "ey", "ez", "hx", "hy", "hz")))
    layer = Box((0, 0, 0), (shape[0], 4, shape[2]))
    profile = grid.profile("p", 1, np.linspace(0.1, 0.5, shape[1]))
    b = grid.profile("b", 0, np.linspace(0.2, 0.9, shape[0]))
    plain = electric(ex, ey, ez, hx, hy, hz, random(grid, "cb", 9), profile)
    stages = [
        magnetic(ex, ey, ez, hx, hy, hz, 0.3),
        Stage(
            (
                plain.within(Box((0, 4, 0), shape)),
                absorbed(ex, hy, hz, random(grid, "psi", 7, within=layer), b).within(layer),
            )
        ),
        source_3d(ez, grid.signal("s", np.linspace(1, 2, 6))).within(Box.cell(middle)),
    ]
    last = tuple(n - 1 for n in shape)
    places = [("ez", middle), ("hy", (0, 0, 0)), ("ex", last), ("cb", (2, 3, 4)), ("p", (1, 5, 2)), ("ex", (3, 2, 1))]
    return Problem.of(stages, [Receiver(str(k), name, cell) for k, (name, cell) in enumerate(places)])

"""Problems for the time-blocked kernels: one stage and several, confined updates, sources, wide offsets."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from peergrid.grid import Boundary, Box, Dtype, Grid
from peergrid.models.fdtd import yee as yee2d
from peergrid.stencil import Problem, Receiver, Stage, maximum, sqrt, stencil, where

DISTINCT = 1 << 18  # cells with numbers of their own, more than those that tests compute


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
    """Normal numbers; on larger grids, for which kernels are chosen alone, the same ones again."""
    shape = grid.shape if within is None else within.shape
    numbers = np.random.default_rng(seed).standard_normal(min(math.prod(shape), DISTINCT))
    return grid.field(name, np.resize(numbers, shape), within=within)


def relaxation(shape: tuple[int, int], boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    return Problem.of(jacobi(random(Grid(shape, boundary, dtype), "u", 1)))


def relaxed_thrice(shape: tuple[int, int], boundary: Boundary = "fixed", dtype: Dtype = "float32") -> Problem:
    """Three stages that change the field: the last knows no row of it as it was before the first."""
    u = random(Grid(shape, boundary, dtype), "u", 1)
    return Problem.of([jacobi(u), jacobi(u), jacobi(u)])


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


def lamps(shape: tuple[int, int], boundary: Boundary = "fixed") -> Problem:
    """A relaxation with sources of one to twelve cells in four of its rows, some of them in corners of the grid."""
    grid = Grid(shape, boundary)
    u, wave, step = random(grid, "u", 1), grid.signal("s", np.linspace(1, 2, 6)), shape[1] // 10
    corners = [(y, x) for y in (0, 1, shape[0] // 2, shape[0] - 3) for x in range(0, shape[1] - 4, step)]
    lit = [add(u, wave).within(Box((y, x), (y + 1 + k % 3, x + 1 + k % 4))) for k, (y, x) in enumerate(corners)]
    return Problem.of([jacobi(u), *lit])


def absorbers(
    shape: tuple[int, int],
    depth: int = 4,
    dtype: Dtype = "float32",
    sources: tuple[tuple[int, int], ...] = (),
    receivers: tuple[tuple[int, int], ...] = (),
) -> Problem:
    """Yee with an absorber on all four sides, its memory confined to them, as radar models have it."""
    grid = Grid(shape, "fixed", dtype)
    fields = [random(grid, name, k) for k, name in enumerate(("Ez", "Hx", "Hy", "ca", "cb"))]
    spans = tuple((("lo", 0, depth), ("", depth, n - depth), ("hi", n - depth, n)) for n in shape)
    profiles = {
        (half, axis): tuple(
            grid.profile(f"{k}.{half}.{axis}", axis, np.linspace(0.1, 0.9, shape[axis])) for k in ("k", "b", "c")
        )
        for half in "HE"
        for axis in (0, 1)
    }
    memory = {
        (half, axis, end): (
            random(grid, f"psi.{half}.{axis}.{end}", axis, within=grid.box.with_axis(axis, lo, hi)),
            *profiles[half, axis],
        )
        for half, axis in profiles
        for end, lo, hi in spans[axis]
        if end
    }

    def stage(half: str, kinds: tuple[Any, Any, Any, Any], arguments: list[Any]) -> Stage:
        updates = []
        for (row_end, top, bottom), (column_end, left, right) in product(*spans):
            rows, columns = memory.get((half, 0, row_end), ()), memory.get((half, 1, column_end), ())
            kind = kinds[bool(rows) + 2 * bool(columns)]
            updates.append(kind(*arguments, *rows, *columns).within(Box((top, left), (bottom, right))))
        return Stage(tuple(updates))

    magnetic_kinds = (yee2d.magnetic, yee2d.magnetic_x, yee2d.magnetic_y, yee2d.magnetic_xy)
    electric_kinds = (yee2d.electric, yee2d.electric_x, yee2d.electric_y, yee2d.electric_xy)
    stages: list[Any] = [
        stage("H", magnetic_kinds, [*fields[:3], 0.5, 0.25]),
        stage("E", electric_kinds, fields),
        *(
            add(fields[0], grid.signal(f"s{k}", np.linspace(1, 2, 30))).within(Box.cell(c))
            for k, c in enumerate(sources)
        ),
    ]
    return Problem.of(stages, [Receiver(f"r{k}", "Ez", cell) for k, cell in enumerate(receivers)])

"""Stencils as a user writes them, compared with the same ones in peergrid: they must run equally fast."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from peergrid.bench.problems import noise
from peergrid.grid import Grid
from peergrid.stencil import Problem, stencil

COURANT = 0.7


@stencil
def heat(T: Any, k: Any) -> None:
    T.next[0, 0] = T[0, 0] + k * (T[-1, 0] + T[1, 0] + T[0, -1] + T[0, 1] - 4 * T[0, 0])


@stencil
def average(u: Any) -> None:
    u.next[0, 0] = (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1]) / 4


@stencil
def update_h(E: Any, Hx: Any, Hy: Any, c: Any) -> None:
    Hx.next[0, 0] = Hx[0, 0] - c * (E[0, 1] - E[0, 0])
    Hy.next[0, 0] = Hy[0, 0] + c * (E[1, 0] - E[0, 0])


@stencil
def update_e(Hx: Any, Hy: Any, E: Any, gain: Any) -> None:
    E.next[0, 0] = E[0, 0] + gain[0, 0] * (Hy[0, 0] - Hy[-1, 0] - Hx[0, 0] + Hx[0, -1])


@stencil
def update_lossy(Hx: Any, Hy: Any, E: Any, loss: Any, gain: Any) -> None:
    E.next[0, 0] = loss[0, 0] * E[0, 0] + gain[0, 0] * (Hy[0, 0] - Hy[-1, 0] - Hx[0, 0] + Hx[0, -1])


@lru_cache(maxsize=1)
def own_heat(rows: int, columns: int) -> Problem:
    """Heat in a plate, as in the README."""
    grid = Grid((rows, columns))
    return Problem.of(heat(grid.field("T", noise(grid.shape, 1)), 0.2))


@lru_cache(maxsize=1)
def own_average(rows: int, columns: int) -> Problem:
    """Jacobi's step, written with a division."""
    grid = Grid((rows, columns), boundary=("periodic", "fixed"))
    return Problem.of(average(grid.field("u", noise(grid.shape, 1))))


@lru_cache(maxsize=1)
def own_waves(rows: int, columns: int, lossy: bool) -> Problem:
    """Maxwell's equations for three fields, with one coefficient field or two."""
    grid = Grid((rows, columns))
    gain = grid.field("gain", _gain(grid))
    hx, hy, e = (grid.field(name, noise(grid.shape, seed)) for seed, name in enumerate(("Hx", "Hy", "E")))
    step = update_lossy(hx, hy, e, grid.field("loss", _loss(grid)), gain) if lossy else update_e(hx, hy, e, gain)
    return Problem.of([update_h(e, hx, hy, COURANT), step])


@lru_cache(maxsize=1)
def shipped_waves(rows: int, columns: int, lossy: bool) -> Problem:
    """The same by the stencils of the radar model, without its absorber."""
    from peergrid.models.fdtd import yee  # half of what a start of the command line would import

    grid = Grid((rows, columns))
    ez, hx, hy = (grid.field(name, noise(grid.shape, seed)) for seed, name in enumerate(("Ez", "Hx", "Hy")))
    ca, cb = grid.field("ca", _loss(grid)), grid.field("cb", _gain(grid))
    electric = yee.electric(ez, hx, hy, ca, cb) if lossy else yee.electric_lossless(ez, hx, hy, cb)
    return Problem.of([yee.magnetic(ez, hx, hy, COURANT, COURANT), electric])


def _gain(grid: Grid) -> Any:
    return np.float32(0.5) + np.float32(0.2) * noise(grid.shape, 5)


def _loss(grid: Grid) -> Any:
    return np.float32(0.9) + np.float32(0.1) * noise(grid.shape, 6)


def forget() -> None:
    """Free the memory of the last problems."""
    for made in (own_heat, own_average, own_waves, shipped_waves):
        made.cache_clear()

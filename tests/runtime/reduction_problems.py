"""Problems with a reduction of every kind, on any grid."""

from __future__ import annotations

import numpy as np

from peergrid import Box, Grid, Problem, Reduction, reduction, stencil
from peergrid.grid import Boundary

STEPS = 7


def reductions(u, c, table, here, ahead, within: Box) -> list[Reduction]:
    """Of each kind one, among them one that reads neighbours and the change of a step; one that looks up."""

    @reduction("sum", every=2)
    def energy(u, c):
        return c[here] * u[here] * u[here]

    @reduction("l2")
    def change(u):
        return u[here] - u.prev[here]

    @reduction("max", every=3)
    def slope(u):
        return abs(u[ahead] - u[here])

    lowest = reduction("min", every=3, name="lowest")(lambda u: u[here])
    average = reduction("mean", every=2, name="average")(lambda u: u[here])
    looked = reduction("sum", name="looked")(lambda u, table: table[3 * abs(u[here])])
    return [energy(u, c), change(u), slope(u), lowest(u).within(within), average(u).within(within), looked(u, table)]


def problem(shape: tuple[int, ...], edges: Boundary, dtype: str) -> Problem:
    grid = Grid(shape, edges, dtype)
    rng = np.random.default_rng(sum(shape))
    u, c = grid.field("u", rng.standard_normal(shape)), grid.field("c", rng.random(shape))
    table = grid.table("table", rng.random(7))
    here, ahead = (0,) * len(shape), (*(0,) * (len(shape) - 1), 1)
    within = Box(tuple(n // 4 for n in shape), tuple(n - n // 5 for n in shape))

    @stencil
    def step(u, c):
        u.next[here] = 0.5 * u[here] + c[here] * u[ahead]

    return Problem.of(step(u, c), reductions=reductions(u, c, table, here, ahead, within))

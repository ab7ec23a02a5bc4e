"""Problems of which the cells count, and little else: averages of neighbours."""

from __future__ import annotations

from peergrid.grid import Grid
from peergrid.stencil import Problem, stencil


@stencil
def average(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])


@stencil
def average3d(u):  # type: ignore[no-untyped-def]
    u.next[0, 0, 0] = 0.5 * (u[-1, 0, 0] + u[1, 0, 0]) + 0.1 * (u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1])


def flat(rows: int, columns: int) -> Problem:
    return Problem.of(average(Grid((rows, columns)).field("u")))


def cube(side: int) -> Problem:
    return Problem.of(average3d(Grid((side, side, side)).field("u")))

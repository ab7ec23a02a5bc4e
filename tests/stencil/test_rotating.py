"""Fields that may share memory with the field that they follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from lagged_stencils import add, by_hand, wave

from peergrid import Box, Grid, Problem, reduction, stencil
from peergrid.stencil.rotating import rotating_fields


@stencil
def slope(v: Any, u: Any) -> None:
    v.next[0] = u[1] - u[-1]


@stencil
def wide(u: Any) -> None:
    u.next[0] = u[-1] + u[1] - u.prev[1]


@stencil
def beside(v: Any, old: Any) -> None:
    v.next[0] = v[0] + old[0]


@reduction("sum")
def former(old: Any) -> Any:
    return old[0]


def test_previous_values_that_only_their_own_cell_reads_rotate() -> None:
    u = Grid(9).field("u", np.arange(9))
    assert rotating_fields(Problem.of([wave(u), add(u).within(Box((3,), (5,)))])) == {"u.prev": "u"}
    assert rotating_fields(Problem.of(wide(u))) == {}
    assert rotating_fields(Problem.of([add(u).within(Box((3,), (5,))), wave(u)])) == {}


def test_previous_values_that_others_read_do_not_rotate() -> None:
    grid = Grid(9)
    u, old, v = grid.field("u", np.arange(9)), grid.field("old", np.arange(9)), grid.field("v")
    assert rotating_fields(Problem.of(by_hand(u, old))) == {"old": "u"}
    assert rotating_fields(Problem.of([by_hand(u, old), beside(v, old)])) == {}
    assert rotating_fields(Problem.of(by_hand(u, old), reductions=[former(old)])) == {}


def test_previous_values_rotate_only_if_no_later_stage_reads_results_beside_a_cell() -> None:
    """Else cells are computed twice, from previous values that another tile or device may have replaced."""
    grid = Grid(9)
    u, v, w = grid.field("u", np.arange(9)), grid.field("v"), grid.field("w")
    assert rotating_fields(Problem.of([wave(u), beside(v, u)])) == {"u.prev": "u"}
    assert rotating_fields(Problem.of([wave(u), slope(v, u)])) == {}
    assert rotating_fields(Problem.of([wave(u), beside(v, u), slope(w, v)])) == {}
    assert rotating_fields(Problem.of([slope(v, u), wave(u)])) == {"u.prev": "u"}

"""Which fields hold what another one was a step before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from lagged_stencils import add, by_hand, wave

from peergrid import Box, Grid, Problem
from peergrid.stencil.lagged import lagged_fields


def test_the_previous_values_of_a_field_lag() -> None:
    assert lagged_fields(Problem.of(wave(Grid(9).field("u", np.arange(9))))) == {"u.prev": "u"}


def test_cells_that_nobody_updates_must_begin_alike() -> None:
    grid = Grid(9)
    u, same, other = grid.field("u", np.arange(9)), [0, 5, 5, 5, 5, 5, 5, 5, 8], [1, 5, 5, 5, 5, 5, 5, 5, 8]
    assert lagged_fields(Problem.of(by_hand(u, grid.field("old", same)))) == {"old": "u"}
    assert lagged_fields(Problem.of(by_hand(u, grid.field("old", other)))) == {}


def test_values_of_different_functions_are_not_alike() -> None:
    u = Grid(9).field("u", lambda box: np.arange(box.lo[0], box.hi[0]))
    same, other = replace(u, name="old"), replace(u, name="old", made_by=lambda box: np.ones(box.shape))
    assert lagged_fields(Problem.of(by_hand(u, same))) == {"old": "u"}
    assert lagged_fields(Problem.of(by_hand(u, other))) == {}


def test_a_field_that_changes_where_it_is_not_copied_is_not_followed() -> None:
    u = Grid(9).field("u", np.arange(9))
    assert lagged_fields(Problem.of([wave(u), add(u).within(Box((3,), (5,)))])) == {"u.prev": "u"}
    assert lagged_fields(Problem.of([wave(u), add(u)])) == {}

"""What a device gets of a global array: around periodic edges too, without copies where none are needed."""

from __future__ import annotations

import numpy as np
import pytest

from peergrid import Grid, Problem, stencil
from peergrid.grid import Box
from peergrid.runtime.memory import take_cells


@stencil
def copy(u):
    u.next[0, 0] = u[0, 0]


@pytest.mark.parametrize(("lo", "hi"), [(-2, 3), (-9, 9), (-1, 10), (7, 12), (0, 9), (2, 5), (9, 18), (-12, -8)])
def test_around_periodic_edges(lo: int, hi: int) -> None:
    grid = Grid((9, 7), boundary=("periodic", "fixed"))
    field = grid.field("u", np.arange(63.0).reshape(9, 7))
    problem, values = Problem.of(copy(field)), field.global_array()
    found = take_cells(problem, field, values, Box((lo, 1), (hi, 6)))
    assert np.array_equal(found, values[np.ix_(np.arange(lo, hi) % 9, np.arange(1, 6))])
    assert np.shares_memory(found, values) == (lo // 9 == (hi - 1) // 9)


def test_first_values_are_not_copied_where_nobody_writes_to_them() -> None:
    grid, init = Grid((9, 7)), np.zeros((9, 7), np.float32)
    init.flags.writeable = False
    assert np.shares_memory(grid.field("u", init).first_values(), init)
    assert grid.field("v", 2.0).first_values().shape == (9, 7)
    assert not np.shares_memory(grid.field("u", init).global_array(), init)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_first_values_are_those_of_when_the_field_was_made(dtype: str) -> None:
    grid, init = Grid((9, 7), dtype=dtype), np.zeros((9, 7))
    field, profile = grid.field("u", init), grid.profile("p", 0, init[:, 0])
    own = np.zeros((9, 7), dtype)
    spread = grid.field("v", np.broadcast_to(own, (9, 7)))
    init[...] = own[...] = 1
    assert not spread.init.any()
    assert not field.init.any()
    assert not profile.init.any()
    assert not field.init.flags.writeable

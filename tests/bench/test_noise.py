"""Fields that are measured start from noise of their own precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from peergrid import Grid, Problem, stencil
from peergrid.bench.problems import PATTERN, jacobi, noise, noise_on, noisy, relax
from peergrid.grid import Box, Dtype
from peergrid.stencil.lagged import lagged_fields


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise_has_the_grids_precision(dtype: Dtype) -> None:
    grid = Grid((8, 8), dtype=dtype)
    init = noisy(Problem.of(relax(grid.field("u")))).fields["u"].global_array()
    assert isinstance(init, np.ndarray)
    assert init.dtype == dtype
    assert np.unique(init).size > 32
    assert abs(init).max() <= 0.5


def test_noise_leaves_lagged_fields_lagged() -> None:
    @stencil
    def wave(u: Any) -> None:
        u.next[0] = u[-1] + u[1] - u.prev[0]

    problem = noisy(Problem.of(wave(Grid(9).field("u"))))
    assert lagged_fields(problem) == {"u.prev": "u"}
    assert (problem.fields["u.prev"].first_values() == problem.fields["u"].first_values()).all()


def test_boxes_have_the_noise_of_the_whole_grid() -> None:
    for shape, box in (((30, 50, 70), Box((3, 4, 5), (30, 30, 70))), ((PATTERN + 9,), Box((5,), (PATTERN + 7,)))):
        assert (noise_on(shape, 3)(box) == noise(shape, 3)[box.slices((0,) * len(shape))]).all()


def test_the_first_and_last_column_of_jacobi_hold_a_sine() -> None:
    field = jacobi(40, 30).fields["u"]
    whole = field.global_array()
    assert (whole[:, 0] == np.sin(2 * np.pi * np.arange(1, 41) / 41).astype("float32")).all()
    assert (whole[:, -1] == whole[:, 0]).all()
    assert (field.values(Box((7, 3), (20, 30))) == whole[7:20, 3:]).all()

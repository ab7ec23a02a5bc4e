"""Fields that are measured start from noise of their own precision."""

from __future__ import annotations

import numpy as np
import pytest

from peergrid import Grid, Problem
from peergrid.bench.problems import noisy, relax
from peergrid.grid import Dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise_has_the_grids_precision(dtype: Dtype) -> None:
    grid = Grid((8, 8), dtype=dtype)
    init = noisy(Problem.of(relax(grid.field("u")))).fields["u"].init
    assert isinstance(init, np.ndarray)
    assert init.dtype == dtype
    assert np.unique(init).size > 32
    assert abs(init).max() <= 0.5

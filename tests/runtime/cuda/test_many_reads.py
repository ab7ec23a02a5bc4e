"""Stencils that read more than registers hold: the kernel that loads values where it uses them has the same bits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from inorder import InOrderExecutor

from peergrid import Options
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.grid import Array, Dtype, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.executor import Executor
from peergrid.schedule import layout, one_iteration
from peergrid.stencil import Problem, stencil

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
WIDE = replace(H200, wide_cells=1, wide_columns=1)
STEPS = 3


def box(shape: Index, reach: int, dtype: Dtype) -> Problem:
    """Every cell of a box with a weight of its own, two coefficients, and a field that keeps the former value."""
    grid, rng = Grid(shape, "fixed", dtype), np.random.default_rng(3)
    here = (0,) * len(shape)

    @stencil
    def update(u: Any, v: Any, c: Any, w: Any) -> None:
        offsets = enumerate(product(range(-reach, reach + 1), repeat=len(shape)))
        total = sum(u[at] * (0.9 ** (n % 17)) for n, at in offsets)
        v.next[here] = u[here]
        u.next[here] = 0.001 * total * c[here] + w[here] * (v[here] - total * total)

    fields = [grid.field(name, rng.standard_normal(shape) / 9) for name in "uvc"]
    return Problem.of(update(*fields, grid.profile("w", len(shape) - 2, rng.standard_normal(shape[-2]) / 999)))


def carried(executor: Executor) -> list[Array]:
    load(executor)
    whole = one_iteration(executor.layout, Options("serial"))
    executor.execute(whole, STEPS, 0)
    return [executor.gather(name, (whole.final * STEPS) % 2) for name in executor.layout.problem.state]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "reach"), [((15, 17, 90), 3), ((40, 101), 6)])
def test_same_bits(shape: Index, reach: int, dtype: Dtype) -> None:
    problem = box(shape, reach, dtype)
    plan = layout(problem, Partition(problem.grid, (1,) * len(shape)), Options("serial"))
    driver = HostDriver(gpu=WIDE)
    executor = CudaExecutor(plan, STEPS, (0,), driver=driver)
    try:
        found = carried(executor)
    finally:
        executor.close()
    assert any("R g0[W]; load(g0" in text for text in driver.texts)
    for one, two in zip(found, carried(InOrderExecutor(plan, STEPS)), strict=True):
        assert np.isfinite(one).all()
        assert one.tobytes() == two.tobytes()

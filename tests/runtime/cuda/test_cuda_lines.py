"""1D problems on the CUDA executor, several steps per pass: the reference's bits under every strategy and split."""

from __future__ import annotations

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver
from inorder import InOrderExecutor
from line_problems import absorber, far_reads, relaxation, waves

from peergrid import Options
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import build, layout
from peergrid.schedule.strategies import STRATEGIES, StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STEPS = 20  # passes of 8 steps, and a rest


def check(make, boundary: str, devices: int, options: Options) -> set[str]:  # type: ignore[no-untyped-def]
    problem, driver = make(2800, boundary), HostDriver(gpus=4)
    plan = layout(problem, Partition(problem.grid, (devices,)), options)
    schedule = build(plan, options, STEPS)
    made = CudaExecutor(plan, STEPS, tuple(range(devices)), driver=driver)
    known = InOrderExecutor(plan, STEPS)
    try:
        for executor in (made, known):
            for name, field in problem.fields.items():
                executor.load(name, field.global_array(), 0)
            executor.execute(schedule, 1, 0)
        for name in problem.state:
            assert np.array_equal(made.gather(name, schedule.final), known.gather(name, schedule.final))
        assert np.array_equal(made.traces(), known.traces(), equal_nan=True)
    finally:
        made.close()
    return set(driver.kernels)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("make", "boundary"), [(waves, "fixed"), (far_reads, "periodic"), (relaxation, "reflecting")])
def test_every_strategy(make, boundary: str, strategy: StrategyName) -> None:  # type: ignore[no-untyped-def]
    assert "tile1d" in check(make, boundary, 2, Options(strategy, depth=8))


@pytest.mark.parametrize("devices", [1, 3, 4])
@pytest.mark.parametrize(("depth", "block"), [(4, 4), (8, 4), (12, 12)])
@pytest.mark.parametrize(("make", "boundary"), [(absorber, "fixed"), (waves, "periodic")])
def test_splits_and_depths(make, boundary: str, devices: int, depth: int, block: int) -> None:  # type: ignore[no-untyped-def]
    assert "tile1d" in check(make, boundary, devices, Options("overlap", depth, block))

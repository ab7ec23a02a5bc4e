"""Slabs of any thickness find the same bits on GPUs: on a driver that runs on the host, and kernels in all places."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver
from hypothesis import given, settings
from hypothesis import strategies as st

from peergrid import Options, Problem
from peergrid.codegen.cuda.blocked2d.strips.kernel import LARGE_BLOCK
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.models.fdtd.build import build as radar
from peergrid.models.modelfile import parse
from peergrid.runtime.cuda.commands.buffer import FIRST, FUNCTION
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.lower import lower
from peergrid.schedule import build, layout
from peergrid.schedule.strategies import StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STEPS, ROWS = 6, 61
RADAR = """
[grid]
size = [0.3, 0.9]
spacing = 0.005
steps = 40
[absorber]
cells = 5
[[source]]
kind = "line"
position = [0.15, 0.45]
waveform = { kind = "ricker", frequency = 1.5e9 }
[[receiver]]
position = [0.2, 0.5]
"""


@cache
def problem() -> Problem:
    return radar(parse(RADAR)).problem


def outcome(partition: Partition, options: Options, driver: HostDriver | None = None, align: Index = ()) -> bytes:
    """Fields and traces after some steps from fields full of numbers."""
    plan = layout(problem(), partition, options, align)
    executor = CudaExecutor(plan, STEPS, tuple(range(plan.devices)), driver=driver or HostDriver())
    try:
        for seed, (name, described) in enumerate(problem().fields.items()):
            values = described.global_array()
            if name in problem().state:
                values = np.random.default_rng(seed).standard_normal(values.shape).astype(values.dtype)
            executor.load(name, values, 0)
        schedule = build(plan, options, STEPS)
        executor.execute(schedule, 1, 0)
        fields = b"".join(executor.gather(name, schedule.final).tobytes() for name in problem().state)
        return fields + executor.traces().tobytes()
    finally:
        executor.close()


@cache
def expected() -> bytes:
    return outcome(Partition.over(problem().grid, 1), Options("serial", depth=1))


def test_all_kernels_take_part() -> None:
    kernel = pass_kernel(problem(), 3)
    assert kernel is not None
    assert problem().grid.shape[0] == ROWS
    assert {launch.program.entry for launch in kernel.launches(problem().grid.box, 4)} == {
        "stream2d",
        "layer2d",
        "edge2d",
    }


@settings(max_examples=4, deadline=None)
@given(
    st.sets(st.integers(1, ROWS - 1), min_size=1, max_size=2),
    st.sampled_from(("overlap", "peer", "async", "threads", "graph")),
    st.sampled_from((1, 3)),
)
def test_cuts_anywhere(cuts: set[int], strategy: StrategyName, depth: int) -> None:
    partition = Partition.slabs(problem().grid, (0, *sorted(cuts), ROWS))
    assert outcome(partition, Options(strategy, depth=depth)) == expected()


@pytest.mark.parametrize("strategy", ["overlap", "peer", "persistent"])
def test_balanced_slabs(strategy: StrategyName) -> None:
    partition = balanced(problem(), 3, 3)
    assert len({partition.owned(device).shape[0] for device in range(3)}) > 1
    assert outcome(partition, Options(strategy, depth=3)) == expected()


@pytest.mark.parametrize("align", [(), (1, 1)])
@pytest.mark.parametrize("strategy", ["overlap", "peer", "graph", "persistent"])
def test_one_step_of_all_stages_in_one_pass(strategy: StrategyName, align: Index) -> None:
    usual = expected()
    partition = Partition.slabs(problem().grid, (0, 20, 47, ROWS))
    driver = HostDriver(gpu=replace(H200, streamed_cells=1))
    assert outcome(partition, Options(strategy, depth=1), driver, align) == usual
    assert {"stream2d", "layer2d", "edge2d"} <= driver.kernels
    assert "persistent2d" not in driver.kernels


@pytest.mark.parametrize(("strategy", "large"), [("overlap", True), ("peer", False)])
def test_blocks_of_zones_are_large_where_plain_tiles_leave_no_room(strategy: StrategyName, large: bool) -> None:
    """Under `peer` they begin behind the plain ones."""
    usual = expected()
    for registers in (200, 128):
        driver = HostDriver(registers=registers)
        assert outcome(Partition.over(problem().grid, 2), Options(strategy, depth=3), driver) == usual
        zoned = [text for text in driver.texts if "struct StripTiles" in text]
        assert zoned
        bound = f"__launch_bounds__({32 * LARGE_BLOCK}, 1)"
        assert any(bound in text for text in zoned) == (large and registers == 128)


def test_zones_wait_for_edge_tiles_beside_long_plain_tiles() -> None:
    options = Options("overlap", depth=1)
    plan = layout(problem(), Partition.over(problem().grid, 1), options, (1, 1))
    for late, streams in ((8, 2), (ROWS, 3)):
        gpu = replace(H200, streamed_cells=1, long_rows=late)
        executor = CudaExecutor(plan, STEPS, (0,), driver=HostDriver(blocks=1, gpu=gpu))
        execution = executor._execution
        table = lower(execution, build(plan, options, 1)).buffers[0].table
        launches = table[table[:, FUNCTION] == execution.devices.entry("cuLaunchKernel")]
        assert len(launches) == 3
        assert len(set(launches[:, FIRST + 8])) == streams
        executor.close()

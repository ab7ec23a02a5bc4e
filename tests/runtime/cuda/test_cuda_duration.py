"""Work on slow GPUs is no fault and no launch of it is long; a lost signal on a fast one is noticed soon."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from executions import STEPS, carry_through, expected, load
from host_driver import COMPILER, HostDriver
from hypothesis import given
from hypothesis import strategies as st
from runtime_problems import PROBLEMS, heat_2d

from peergrid import Grid, Options, Problem
from peergrid.bench.problems import radar
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering import duration
from peergrid.runtime.cuda.lowering.duration import BATCH_SECONDS, IN_FLIGHT_SECONDS, batches, step_seconds, timeout
from peergrid.runtime.cuda.submission.submitter import Submitter
from peergrid.schedule import Layout, layout, one_iteration
from peergrid.stencil.cost import minimal_bytes

H200, T4 = HostDriver(speed=4.9e12), HostDriver(speed=3.2e11)


def plan(problem: Problem, devices: int = 1, depth: int = 8) -> Layout:
    return layout(problem, Partition.over(problem.grid, devices), Options("overlap", depth=depth, block=1))


def test_a_step_moves_every_field_and_makes_its_operations() -> None:
    problem = PROBLEMS["heat_periodic"]()  # double precision
    cells = problem.grid.box.size

    class Slow(HostDriver):
        def double_cost(self, ordinal: int) -> int:
            return 32

    moved = minimal_bytes(problem) / cells
    few, many = (step_seconds(plan(problem), (0,), kind(speed=1e3)) * 1e3 / cells for kind in (HostDriver, Slow))
    assert few > moved == 16
    assert many - moved == pytest.approx(16 * (few - moved))
    halves = [step_seconds(plan(problem, 2), on, HostDriver(speed=1e3)) for on in ((0, 0), (0, 1))]
    assert halves[0] == pytest.approx(2 * halves[1])  # devices that share a GPU take turns
    assert step_seconds(plan(problem), (0,), HostDriver(speed=0.0)) >= duration.SHORTEST


def test_a_fast_gpu_has_the_usual_patience_and_a_slow_one_more() -> None:
    """Radar that fills the memory of a T4 (15 GB) and of an H200 (140 GB)."""
    wave = radar(256, 256, 10)
    step = step_seconds(plan(wave), (0,), H200)
    assert timeout(5.0, step * 17408**2 / 256**2, plan(wave)) == 5.0
    cells = 256**2
    full = 15e9 / minimal_bytes(wave) * cells
    slow = step_seconds(plan(wave), (0,), T4) * full / cells
    assert timeout(5.0, slow, plan(wave)) > max(5.0, 10 * 8 * 15e9 / 3.2e11)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
@pytest.mark.parametrize("strategy", ["persistent", "graph", "overlap"])
def test_what_is_launched_and_issued_at_once_is_bounded_in_seconds(strategy: str) -> None:
    """Where a step takes more than `IN_FLIGHT_SECONDS`, a launch makes one iteration, and hosts are one ahead."""
    options = Options(strategy, depth=2)  # type: ignore[arg-type]
    launches = {}
    for speed in (1e15, 1e3):
        problem, driver = PROBLEMS["heat_fixed"](), HostDriver(speed=speed)
        made = layout(problem, Partition.over(problem.grid, 1), options)
        with closing(CudaExecutor(made, STEPS, (0,), driver=driver)) as executor:
            assert carry_through(executor, options) == expected("heat_fixed")
            lowered = executor._lower(one_iteration(made, options))
            if strategy == "persistent":
                launches[speed] = lowered.most  # type: ignore[attr-defined]
            else:
                launches[speed] = executor._submitter.work(lowered).submissions[0].every
    assert launches[1e15] > launches[1e3] == 1
    assert IN_FLIGHT_SECONDS < 1


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_turns_of_a_graph_count_as_what_lies_ahead() -> None:
    grid = Grid((64, 64))
    problem = Problem.of(heat_2d(grid.field("u", np.ones(grid.shape, np.float32)), 0.2))
    options, driver = Options("graph"), HostDriver()
    made = layout(problem, Partition.over(grid, 1), options)
    with closing(CudaExecutor(made, 100, (0,), driver=driver)) as executor:
        load(executor)
        lowered = executor._lower(one_iteration(made, options))
        iteration = executor._execution.step_seconds = IN_FLIGHT_SECONDS / 20 / lowered.schedule.steps
        found = [(work.submissions[0].every, count) for work, count in executor._graphs.works(lowered, 40, 0)]
        assert found == [(1, 2), (2, 1)]  # two graphs of 16 iterations, of which one may lie ahead, and one of eight
        executor._execution.step_seconds = iteration * 10
        assert [count for _, count in executor._graphs.works(lowered, 40, 0)] == [20]  # graphs of two iterations
        executor._execution.step_seconds = iteration / 100
        found = [count for _, count in executor._graphs.works(lowered, 300, 0)]
        assert found == [4, 5, 4]  # of 64 iterations, of eight, of one


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_hosts_and_kernels_wait_as_long_as_the_slowest_gpu_may_take() -> None:
    problem, options = PROBLEMS["heat_fixed"](), Options("overlap", depth=2)
    made = layout(problem, Partition.over(problem.grid, 2), options)
    waits = []
    for speed in (1e15, 1e3):
        with closing(CudaExecutor(made, STEPS, (0, 1), driver=HostDriver(speed=speed), timeout=0.5)) as executor:
            execution = executor._execution
            assert execution.timeout_ns == int(execution.timeout * 1e9)
            assert executor._submitter.timeout == max(1, int(1.3 * execution.timeout))
            waits.append(execution.timeout / (duration.TIMEOUT_FACTOR * made.blocks[0] * execution.step_seconds))
            assert execution.timeout >= 0.5
    assert waits[0] > 1 == pytest.approx(waits[1])


@given(times=st.integers(0, 10**4), seconds=st.floats(1e-4, 10))
def test_a_long_run_comes_in_spells(times: int, seconds: float) -> None:
    parts = list(batches(times, seconds))
    assert sum(parts) == times
    assert all(part == 1 or part * seconds <= BATCH_SECONDS for part in parts)
    assert len({*parts[:-1]}) <= 1
    assert all(part.bit_count() == 1 and 2 * part * seconds >= BATCH_SECONDS for part in parts[:-1])


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
def test_turns_of_small_grids_take_as_long_as_their_calls() -> None:
    problem, options = PROBLEMS["heat_fixed"](), Options("overlap", depth=1)
    made = layout(problem, Partition.over(problem.grid, 4), options)
    with closing(CudaExecutor(made, STEPS, (0, 1, 2, 3), driver=HostDriver())) as executor:
        lowered = executor._lower(one_iteration(made, options))
        assert executor._execution.step_seconds == duration.SHORTEST
        calls = max(len(part.ops) for part in lowered.buffers.values())
        assert (
            executor._iteration_seconds(lowered)
            == executor._execution.gpu.costs.calls.launch * calls
            > 20 * duration.SHORTEST
        )


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
@pytest.mark.parametrize("strategy", ["persistent", "graph", "overlap"])
def test_between_spells_a_run_can_be_interrupted(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, options = PROBLEMS["heat_fixed"](), Options(strategy, depth=2)  # type: ignore[arg-type]
    made, issued = layout(problem, Partition.over(problem.grid, 1), options), list[int]()
    run = Submitter.run

    def interrupted(self: Submitter, *arguments: Any) -> Any:
        issued.append(arguments[1])
        if len(issued) == 3:
            raise KeyboardInterrupt
        return run(self, *arguments)

    monkeypatch.setattr(Submitter, "run", interrupted)
    with closing(CudaExecutor(made, 10**4, (0,), driver=HostDriver(speed=1e3))) as executor:
        load(executor)
        with pytest.raises(KeyboardInterrupt):
            executor.execute(one_iteration(made, options), 100, 0)
    assert issued == [1, 1, 1]

"""What queues and kernels of GPUs really did, judged by the trace checker; on a driver that runs on the host."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from runtime_problems import random_heat

from peergrid import Options
from peergrid.errors import UsageError
from peergrid.grid import Boundary
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.trace.recorder import Recorded
from peergrid.runtime.trace.replay import check_recorded, check_trace
from peergrid.schedule import Layout, Schedule, layout, one_iteration
from peergrid.schedule.faults import count
from peergrid.schedule.ops import Wait
from peergrid.schedule.strategies import STRATEGIES, StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
QUEUED = tuple(name for name in STRATEGIES if name not in ("peer", "persistent"))


def case(
    strategy: StrategyName, depth: int, devices: int = 3, block: int | None = None, boundary: Boundary = "periodic"
) -> tuple[Layout, Schedule]:
    problem, options = random_heat((90, 200), (boundary, "fixed")), Options(strategy, depth=depth, block=block)
    plan = layout(problem, Partition(problem.grid, (devices, 1)), options)
    return plan, one_iteration(plan, options)


def recorded(plan: Layout, schedule: Schedule, driver: HostDriver | None = None) -> tuple[Recorded, bytes]:
    """The log of three iterations, after one that nobody records, and the field that they leave."""
    ordinals, driver = tuple(range(plan.devices)), driver or HostDriver()
    with closing(CudaExecutor(plan, 4 * schedule.steps, ordinals, driver=driver)) as it:
        load(it)
        it.execute(schedule, 1, 0)
        log = it.record(schedule, 3, schedule.steps)
        return log, it.gather("u", schedule.final).tobytes()


def faults(plan: Layout, found: Recorded) -> list[str]:
    return [str(fault) for fault in check_recorded(plan, found)]


def unrecorded(plan: Layout, schedule: Schedule) -> bytes:
    with closing(CudaExecutor(plan, 4 * schedule.steps, tuple(range(plan.devices)), driver=HostDriver())) as it:
        load(it)
        it.execute(schedule, 4, 0)
        return it.gather("u", schedule.final).tobytes()


@pytest.mark.parametrize(("depth", "block"), [(1, None), (3, 1)])
@pytest.mark.parametrize("strategy", QUEUED)
def test_queues_did_what_was_proved(strategy: StrategyName, depth: int, block: int | None) -> None:
    plan, schedule = case(strategy, depth, block=block)
    found, field = recorded(plan, schedule)
    assert len(found.log.iterations) == 3
    assert found.operations > 3 * plan.devices
    assert faults(plan, found) == []
    assert field == unrecorded(plan, schedule)


@pytest.mark.parametrize(("strategy", "boundary"), [("peer", "fixed"), ("peer", "periodic"), ("persistent", "fixed")])
def test_tiles_did_what_was_proved(strategy: StrategyName, boundary: Boundary) -> None:
    plan, schedule = case(strategy, 3, boundary=boundary)
    for seed in (1, 2):
        found, field = recorded(plan, schedule, HostDriver(seed=seed))
        assert found.operations > 3 * plan.devices
        assert faults(plan, found) == []
        assert field == unrecorded(plan, schedule)


class Changed(HostDriver):
    """Kernels whose text differs in one place."""

    def __init__(self, part: str, instead: str, seed: int = 1) -> None:
        super().__init__(seed=seed)
        self.change = part, instead

    def compile(self, source: str, architecture: str, cache: Path | None, file: Path | None = None) -> bytes:
        return super().compile(source.replace(*self.change), architecture, cache, file)


SIGNAL, BEGIN = "if (lane == 0) signal_neighbours(a, e, tile, e.passed);", "NOTE_WARP(BEGUN, 0, e.passed, 0, tile);"
WANTED = "wanted = lane ? (passed + 1) / 2 * side.expected : (p.before + pass) * gridDim.x"


@pytest.mark.parametrize(("strategy", "part", "instead", "said"), [
    ("peer", f"{BEGIN}\n", f"{SIGNAL}\n{BEGIN}\n", "await and signal differently"),
    ("persistent", WANTED, WANTED.replace(": (p.before + pass) * gridDim.x", ": 0"), "went on before"),
    ("persistent", WANTED, WANTED.replace("(passed + 1) / 2 * side.expected", "0"), "nobody had set the flag"),
])  # fmt: skip
def test_kernels_that_do_something_else_are_found(strategy: StrategyName, part: str, instead: str, said: str) -> None:
    plan, schedule = case(strategy, 3, boundary="fixed")
    found, _ = recorded(plan, schedule, Changed(part, instead))
    assert any(said in fault for fault in faults(plan, found))


class Deaf(HostDriver):
    """Queues that wait for nothing: neither for events nor for words."""

    def entry(self, name: str) -> int:
        return super().entry("cuCtxSetCurrent" if name in ("cuStreamWaitEvent", "cuStreamBatchMemOp") else name)


def test_queues_that_do_not_wait_are_found() -> None:
    plan, schedule = case("overlap", 1)
    found, _ = recorded(plan, schedule, Deaf())
    assert {"undetermined"} <= set(count(check_trace(plan, found.log)))


def test_a_schedule_without_its_waits_is_a_race_even_if_all_went_well() -> None:
    plan, right = case("async", 1)
    wrong = replace(right, ops=tuple(op for op in right.ops if not isinstance(op, Wait)))
    found, _ = recorded(plan, wrong)
    assert count(check_trace(plan, found.log))["race"]


def test_gpus_that_do_not_reach_each_other_are_refused() -> None:
    plan, schedule = case("async", 1)
    with pytest.raises(UsageError, match="device 1 does not reach 0"):
        recorded(plan, schedule, HostDriver(links=False))

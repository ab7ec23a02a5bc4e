"""Steps that are timed: enough of them, from step 0, on memory that arrangements of one layout share."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

import pytest
from runtime_problems import PROBLEMS

from peergrid import DeviceFault, Options
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import Layout, Schedule, layout, one_iteration
from peergrid.trials.step_timer import SAMPLE_SECONDS, SAMPLES, StepTimer

PROBLEM = PROBLEMS["heat_fixed"]()


@dataclass
class Clock:
    """A clock that only executors advance."""

    now: float = 0.0


@dataclass
class Paced:
    """An executor that takes `each` seconds for an iteration and `beside` for a call."""

    clock: Clock
    each: float
    beside: float
    asked: list[int] = field(default_factory=list)
    closed: bool = False

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        if schedule.options.strategy == "peer":
            raise DeviceFault("A signal was lost.")
        assert step == 0
        self.asked.append(times)
        self.clock.now += self.beside + times * self.each

    def close(self) -> None:
        self.closed = True


def arranged(options: Options) -> tuple[Schedule, Layout]:
    plan = layout(PROBLEM, Partition.over(PROBLEM.grid, 1), options)
    return one_iteration(plan, options), plan


def timer(patch: pytest.MonkeyPatch, most: int, each: float, beside: float = 0.0) -> tuple[StepTimer, list[Paced]]:
    clock, made = Clock(), list[Paced]()
    patch.setattr(time, "perf_counter", lambda: clock.now)

    def make(plan: Layout) -> CudaExecutor:
        made.append(Paced(clock, each, beside))
        return cast(CudaExecutor, cast(Any, made[-1]))

    return StepTimer(make, most), made


@pytest.mark.parametrize("each", [1e-7, 1e-5, 1e-3, 1.0])
def test_samples_are_long_and_a_power_of_two(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    timed, made = timer(monkeypatch, 10**9, each, beside=3e-4)
    schedule, plan = arranged(Options("graph"))
    assert timed.seconds(schedule, plan) == pytest.approx(each / schedule.steps, rel=3e-3)
    (executor,) = made
    *_, last = executor.asked
    assert executor.asked[-SAMPLES:] == [last] * SAMPLES
    assert last.bit_count() == 1
    assert last * each + 3e-4 >= SAMPLE_SECONDS
    assert last == 1 or last * each < 3 * SAMPLE_SECONDS


@pytest.mark.parametrize("most", [0, 1, 2, 3, 100, 1000])
def test_no_sample_is_longer_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    timed, made = timer(monkeypatch, most, 1e-7)
    schedule, plan = arranged(Options("graph"))
    found = timed.seconds(schedule, plan)
    if most < schedule.steps:
        assert found == inf
        assert not made
    else:
        assert max(made[0].asked) * schedule.steps <= most < 4 * max(made[0].asked) * schedule.steps


def test_arrangements_of_one_depth_share_an_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    timed, made = timer(monkeypatch, 10**6, 1e-5)
    with closing(timed):
        for options in (Options("graph", 2), Options("overlap", 2), Options("overlap", 1), Options("graph", 1)):
            timed.seconds(*arranged(options))
        assert [executor.closed for executor in made] == [True, False]
        timed.seconds(*arranged(Options("graph", 2, block=1)))
        assert len(made) == 3
    assert all(executor.closed for executor in made)


def test_the_next_arrangement_after_a_fault_has_an_executor_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    timed, made = timer(monkeypatch, 10**6, 1e-5)
    timed.seconds(*arranged(Options("graph", 2)))
    with pytest.raises(DeviceFault, match="signal"):
        timed.seconds(*arranged(Options("peer", 2)))
    assert [executor.closed for executor in made] == [True]
    timed.seconds(*arranged(Options("overlap", 2)))
    assert [executor.closed for executor in made] == [True, False]

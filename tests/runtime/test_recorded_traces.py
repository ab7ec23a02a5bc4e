"""What threads really did, judged by the trace checker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executions import load
from runtime_problems import heat_cube, heat_fixed

from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.reference import ReferenceKernel
from peergrid.runtime.trace.recorder import Log
from peergrid.runtime.trace.replay import check_trace
from peergrid.schedule import Layout, Options, Schedule, build, layout, one_iteration
from peergrid.schedule.faults import count
from peergrid.schedule.ops import Record
from peergrid.schedule.strategies import STRATEGIES, StrategyName


def recorded(plan: Layout, *runs: tuple[Schedule, int]) -> Log:
    """The log of carrying out schedules one after another."""
    log = Log()
    steps = sum(schedule.steps * times for schedule, times in runs)
    executor = ThreadedExecutor(plan, steps, ReferenceKernel(plan.problem), recorder=log)
    load(executor)
    step = 0
    for schedule, times in runs:
        executor.execute(schedule, times, step)
        step += schedule.steps * times
    executor.close()
    return log


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("depth", "block"), [(1, None), (3, 2)])
def test_a_run_on_threads_is_right(strategy: StrategyName, depth: int, block: int | None) -> None:
    options = Options(strategy=strategy, depth=depth, block=block, order="left-right", separate=True)
    for problem, parts in ((heat_fixed(), (3, 1)), (heat_cube(), (2, 1, 2))):
        plan = layout(problem, Partition(problem.grid, parts), options)
        repeated = one_iteration(plan, options)
        log = recorded(plan, (repeated, 2), (build(plan, options, 1, repeated.final), 1))
        assert len(log.iterations) == 3
        assert check_trace(plan, log) == ()


def test_a_run_without_its_events_is_a_race_even_if_all_went_well() -> None:
    options = Options(strategy="async")
    problem = heat_fixed()
    plan = layout(problem, Partition(problem.grid, (3, 1)), options)
    right = one_iteration(plan, options)
    wrong = replace(right, ops=tuple(op for op in right.ops if not isinstance(op, Record)))
    assert count(check_trace(plan, recorded(plan, (wrong, 1))))["race"]

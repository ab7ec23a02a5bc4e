"""What executors are given and what they find, and what the reference kernel finds on one device."""

from __future__ import annotations

from functools import cache

import numpy as np
from inorder import InOrderExecutor
from runtime_problems import MORE

from peergrid import Options
from peergrid.grid.partition import Partition
from peergrid.runtime.executor import Executor
from peergrid.schedule import build, layout, one_iteration
from peergrid.stencil import Problem

STEPS = 11  # of every run that is compared with `expected`
Found = tuple[dict[str, bytes], bytes]
"""The bits of each state field, and of all traces."""


def load(executor: Executor) -> None:
    """Give every field its first values, in slot 0."""
    for name, described in executor.layout.problem.fields.items():
        executor.load(name, described.global_array(), 0)


def carry_through(executor: Executor, options: Options) -> Found:
    """What `STEPS` steps leave, in whole periods and a rest."""
    load(executor)
    whole = one_iteration(executor.layout, options)
    times, rest = divmod(STEPS, whole.steps)
    executor.execute(whole, times, 0)
    slot = whole.final if times else 0
    if rest:
        tail = build(executor.layout, options, rest, slot)
        executor.execute(tail, 1, times * whole.steps)
        slot = tail.final
    return found(executor, slot)


def found(executor: Executor, slot: int) -> Found:
    fields = {name: executor.gather(name, slot).tobytes() for name in executor.layout.problem.state}
    return fields, executor.traces().tobytes()


@cache
def expected(name: str) -> Found:
    """What one device finds of a problem by name, one operation after another."""
    problem, options = MORE[name](), Options("serial")
    plan = layout(problem, Partition.over(problem.grid, 1), options)
    executor = InOrderExecutor(plan, STEPS)
    load(executor)
    schedule = build(plan, options, STEPS)
    executor.execute(schedule, 1, 0)
    assert all(np.isfinite(executor.gather(field, schedule.final)).all() for field in problem.state)
    return found(executor, schedule.final)


def step_by_step(problem: Problem) -> Found:
    """What the reference finds, step by step."""
    options = Options("serial")
    plan = layout(problem, Partition.over(problem.grid, 1), options)
    executor = InOrderExecutor(plan, STEPS)
    load(executor)
    schedule = build(plan, options, STEPS)
    executor.execute(schedule, 1, 0)
    return found(executor, schedule.final)

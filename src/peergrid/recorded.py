"""Run a few iterations of a problem while hosts, queues and kernels record what they do, and check the records."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product

from peergrid.errors import UsageError
from peergrid.placement import Placement
from peergrid.runtime.devices import Devices
from peergrid.runtime.executor import Recording
from peergrid.runtime.executors import executor_of
from peergrid.runtime.trace.replay import check_recorded
from peergrid.schedule import Options, one_iteration
from peergrid.schedule.mend import distinct
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

TIMES = 3  # iterations: one after another, and one that has both before and behind it


@dataclass(frozen=True)
class Judged:
    """The verdict of the trace checker on recorded runs; the keys of `verify --recorded --json`.

    schedules: run for `TIMES` iterations each; operations: that ended in queues or on hosts; faults: a line for each
    distinct conflict; notes: requests that could not be met.
    """

    devices: str
    schedules: int
    operations: int
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def judged(
    problem: Problem,
    devices: Devices,
    strategies: Sequence[StrategyName],
    depths: Sequence[int],
) -> Judged:
    """Run a problem under each strategy and depth, and check what was done.

    Raises UsageError if GPUs cannot access each other's memory.
    """
    operations, faults, notes = 0, list[str](), dict[str, None]()
    for strategy, depth in product(strategies, depths):
        placement = Placement.under(Options(strategy, depth=depth), problem, devices)
        plan = placement.layout
        schedule = one_iteration(plan, placement.options)
        with closing(executor_of(devices, plan, TIMES * schedule.steps, "compiled", None, None)) as executor:
            if not isinstance(executor, Recording):
                raise UsageError(f"Runs on {devices} cannot be recorded.")
            for name, field in problem.fields.items():
                executor.load(name, field.values if field.made_by else field.first_values(), 0)
            found = executor.record(schedule, TIMES, 0)
            notes |= dict.fromkeys(executor.notes)
        operations += found.operations
        faults += [f"{strategy}, depth {depth}: {line}" for line in distinct(check_recorded(plan, found))]
    return Judged(str(devices), len(strategies) * len(depths), operations, tuple(faults), tuple(notes))

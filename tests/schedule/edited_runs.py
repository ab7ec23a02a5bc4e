"""Edited schedules of small problems: what both checkers say of them, and what virtual devices make of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from random import Random

import numpy as np

from peergrid import Grid, Options, Problem, stencil
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.reference import ReferenceKernel
from peergrid.runtime.trace.judge import Checkers
from peergrid.runtime.trace.recorder import Actor, Position, Silent
from peergrid.schedule import Layout, Schedule, layout, one_iteration
from peergrid.schedule.edits import edited
from peergrid.schedule.passes.fused import fuse_exchange, fuse_steps
from peergrid.schedule.passes.semaphores import EventsToSemaphores
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import program

ITERATIONS = 2
PASSES = {"peer": fuse_exchange, "persistent": fuse_steps, "async": None, "overlap": None}


@stencil
def diffuse(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[0, 0] + 0.2 * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u[0, 0])


@dataclass(frozen=True)
class Case:
    """A schedule of a problem, as it was built or after a pass of its lowering."""

    name: str
    plan: Layout
    schedule: Schedule


def cases() -> Iterator[Case]:
    """Every strategy on two devices in a chain and three in a ring, as built and lowered."""
    for boundary, devices in (("fixed", 2), ("periodic", 3)):
        grid = Grid((24, 4), (boundary, "fixed"))  # type: ignore[arg-type]
        problem = Problem.of(diffuse(grid.field("u", np.random.default_rng(5).random(grid.shape))))
        for strategy in STRATEGIES:
            for depth, block in ((1, None), (3, 2)):
                yield from _of(strategy, problem, devices, depth, block)


def _of(strategy: StrategyName, problem: Problem, devices: int, depth: int, block: int | None) -> Iterator[Case]:
    options = Options(strategy, depth, block=block)
    plan = layout(problem, Partition(problem.grid, (devices, 1)), options)
    built, name = one_iteration(plan, options), f"{strategy}, {devices} devices, depth {depth}"
    yield Case(name, plan, built)
    if strategy in PASSES and (block is None or PASSES[strategy] is None):
        one = PASSES[strategy] or EventsToSemaphores(lambda source, target: source != target)
        yield Case(f"{name}, lowered", plan, one(plan, built))


class Delays(Silent):
    """Whoever begins an operation or issues one may be late."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def issue(self, host: int, position: Position) -> None:
        self._wait()

    def start(self, actor: Actor, position: Position) -> None:
        self._wait()

    def _wait(self) -> None:
        if self._chance.random() < 0.1:
            time.sleep(self._chance.random() * 3e-4)


@dataclass(frozen=True)
class Outcome:
    """accepted: whether each checker accepts the schedule, the static proof first; wrong: runs with other bits."""

    edit: str
    accepted: tuple[bool, bool]
    runs: int = 0
    wrong: int = 0


def outcome(case: Case, seed: int, runs: int) -> Outcome:
    """A schedule after one to three random edits: proved, replayed and, if both accept it, carried out."""
    chance = Random(seed)
    edit, schedule = edited(case.schedule, chance, chance.choice((1, 1, 2, 3)))
    iterations = program(case.plan, schedule)
    both = Checkers(case.plan, iterations)
    static, traced = next(both.proved(iterations), None), next(both.replayed(iterations, seed), None)
    if static and not traced:
        static = next(both.used(iterations), None)
    accepted = static is None, traced is None
    wrong = wrong_runs(case, schedule, seed, runs) if all(accepted) else 0
    return Outcome(f"{case.name}: {edit}", accepted, runs if all(accepted) else 0, wrong)


def wrong_runs(case: Case, schedule: Schedule, seed: int, runs: int) -> int:
    """The runs of a schedule, each with delays of its own, that do not leave the bits of the case's own schedule."""
    expected = next(fields(case, case.schedule, seed, 1))
    return sum(found != expected for found in fields(case, schedule, seed, runs))


def fields(case: Case, schedule: Schedule, seed: int, runs: int) -> Iterator[bytes]:
    """What each of several runs leaves, from the same values, with nothing in the other slot."""
    problem, steps = case.plan.problem, ITERATIONS * schedule.steps
    kernel = ReferenceKernel(problem)
    with closing(ThreadedExecutor(case.plan, steps, kernel, timeout=300.0, recorder=Delays(seed))) as executor:
        for _ in range(runs):
            for name in problem.state:
                values = problem.fields[name].global_array()
                executor.load(name, values, schedule.first)
                executor.load(name, np.full_like(values, np.nan), 1 - schedule.first)
            executor.execute(schedule, ITERATIONS, 0)
            yield b"".join(executor.gather(name, schedule.final).tobytes() for name in problem.state)

"""The work of `peergrid verify`: many schedules of one problem, each checked by both checkers."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, product
from multiprocessing import active_children, parent_process
from threading import Thread
from typing import get_args

from peergrid.runtime.devices import cores
from peergrid.runtime.trace.judge import REDUNDANT, Checkers, Outcome, Verdict, judge
from peergrid.schedule import Layout, Options, Schedule, build, one_iteration
from peergrid.schedule.exchange import Order
from peergrid.schedule.faults import Fault, count
from peergrid.schedule.mend import distinct
from peergrid.schedule.mutate import Mutant, mutants
from peergrid.schedule.passes import drained
from peergrid.schedule.proved import repeated
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.windows import MANY
from peergrid.stencil import Problem
from peergrid.verification import Target, opinions

Progress = Callable[[int, int], None]
"""Called with the number of finished schedules, and the number of all."""


@dataclass(frozen=True)
class Ways:
    """The schedules to check: every combination of devices, strategies, depths and orders.

    steps: of the run, whose last, shorter iteration is checked too (None: only the repeated iteration); mutants: the
    number of each kind to try on every schedule (None: none); balanced: use the slabs of GPU runs; ordinals: of the
    GPUs for which schedules are lowered (empty: virtual devices, without lowering).
    """

    devices: tuple[int, ...] = (1, 2, 3, 4, 7)
    strategies: tuple[StrategyName, ...] = tuple(STRATEGIES)
    depths: tuple[int, ...] = (1, 2, 3, 5, 8)
    orders: tuple[Order, ...] = get_args(Order)
    steps: int | None = None
    mutants: int | None = None
    balanced: bool = False
    ordinals: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        """The number of combinations."""
        return len(self.devices) * len(self.strategies) * len(self.depths) * len(self.orders)

    @property
    def parts(self) -> tuple[Ways, ...]:
        """The schedules in groups with one number of devices and one depth, which share a layout."""
        return tuple(replace(self, devices=(d,), depths=(r,)) for d, r in product(self.devices, self.depths))


@dataclass(frozen=True)
class Verification:
    """The figures of `peergrid verify --json`, and sentences for people.

    ops: in the schedules checked; races: including orders that are not determined; stale_reads: including accesses
    outside memory and reductions that leave out cells; redundant: mutants that both checkers find as right as the
    original; disagreements: mutants, or schedules, that one checker accepts and the other rejects; outcomes: the number
    of mutants by outcome; passes: on GPUs, the lowering passes of each strategy.
    """

    schedules: int
    ops: int
    races: int
    stale_reads: int
    deadlocks: int
    mutants: int | None
    killed: int | None
    redundant: int | None
    disagreements: int
    outcomes: dict[Outcome, int] = field(hash=False)
    faults: tuple[str, ...]
    passes: tuple[str, ...] | None = None

    @property
    def holds(self) -> bool:
        """True if every schedule is right and the checkers agree on every mutant."""
        return not (self.races or self.stale_reads or self.deadlocks or self.disagreements)


@dataclass(eq=False)
class _Tally:
    """The findings so far. torn: schedules that one checker accepts and the other rejects."""

    ways: int = 0
    schedules: int = 0
    ops: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    torn: int = 0
    faults: list[str] = field(default_factory=list)
    passes: dict[str, None] = field(default_factory=dict)

    def add(self, name: str, ops: int, static: tuple[Fault, ...], traced: tuple[Fault, ...]) -> None:
        """Add one schedule and the faults that each checker found."""
        self.schedules += 1
        self.ops += ops
        self.kinds.update(count(static or traced))
        self.torn += bool(static) != bool(traced)
        self.faults += [f"{name}: {line}" for line in distinct(static or traced)]

    def join(self, other: _Tally) -> None:
        """Add the findings of another process."""
        self.ways += other.ways
        self.schedules += other.schedules
        self.ops += other.ops
        self.kinds += other.kinds
        self.outcomes += other.outcomes
        self.torn += other.torn
        self.faults += other.faults
        self.passes |= other.passes

    def judged(self, name: str, verdict: Verdict) -> None:
        """Add the verdict on one mutant."""
        self.outcomes[verdict.outcome] += 1
        if verdict.outcome == "disagreement":
            who = "static proof" if verdict.static else "trace checker"
            found = verdict.static or verdict.traced
            self.faults.append(f"{name}, {verdict.mutant.what}: only the {who} rejects this mutant: {found}")


def verify_all(problem_of: Callable[[], Problem], ways: Ways, progress: Progress) -> Verification:
    """Check every schedule, and its mutants, with both checkers; several groups in processes of their own.

    problem_of: makes the problem, in every process anew.
    Raises UsageError if the grid cannot be cut for so many devices.
    """
    tally = _Tally()
    if len(ways.parts) == 1:
        _check_group(tally, problem_of(), ways, progress)
        return _report(tally, ways)
    with ProcessPoolExecutor(min(cores(), len(ways.parts)), initializer=_follow) as pool:
        try:
            for part in [pool.submit(_tally, problem_of, each) for each in ways.parts]:
                tally.join(part.result())
                progress(tally.ways, ways.number)
        except BaseException:
            for worker in active_children():  # else the pool waits until they finish their parts
                worker.terminate()
            raise
    return _report(tally, ways)


def _follow() -> None:
    """Leave Ctrl-C to the parent process, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _tally(problem_of: Callable[[], Problem], ways: Ways) -> _Tally:
    tally = _Tally()
    _check_group(tally, problem_of(), ways, lambda *_: None)
    return tally


def _check_group(tally: _Tally, problem: Problem, ways: Ways, progress: Progress) -> None:
    """Check the schedules of one number of devices and one depth."""
    ((devices,), (depth,)) = ways.devices, ways.depths
    target = Target(devices, ways.ordinals)
    options = [target.options(problem, s, depth, o) for s, o in product(ways.strategies, ways.orders)]
    plan = target.layout(problem, options[0], even=not ways.balanced)
    cases = [_case(plan, each, ways, target) for each in options]
    few = plan.devices < MANY or ways.mutants is not None
    checkers = Checkers(plan, chain.from_iterable(case.schedules for case in cases)) if few else None
    for case in cases:
        _check_case(tally, plan, checkers, case)
        progress(tally.ways, ways.number)


@dataclass(frozen=True)
class _Case:
    """One schedule of a problem: the iterations to check, and the mutants of the iteration that a run repeats."""

    name: str
    repeated: Schedule
    iterations: tuple[tuple[Schedule, ...], ...]
    mutants: tuple[Mutant, ...]
    passes: str

    @property
    def schedules(self) -> Iterator[Schedule]:
        yield from chain.from_iterable(self.iterations)
        yield from (mutant.schedule for mutant in self.mutants)


def _case(plan: Layout, options: Options, ways: Ways, target: Target) -> _Case:
    name = f"{options.strategy}, {plan.devices} devices, depth {options.depth}, order {options.order}"
    schedule = one_iteration(plan, options)
    made = target.lowered(plan, schedule)
    iterations = [repeated(plan, made)]
    if ways.steps is not None and (rest := ways.steps % schedule.steps):
        shorter = build(plan, options, rest)
        iterations.append((drained(made), *repeated(plan, target.lowered(plan, shorter))))
    found = () if ways.mutants is None else tuple(mutants(made, ways.mutants))
    return _Case(name, made, tuple(iterations), found, _lowering_in_words(options.strategy, target, plan, schedule))


def _lowering_in_words(strategy: StrategyName, target: Target, plan: Layout, schedule: Schedule) -> str:
    """The lowering passes of a schedule in words; '' if there is no lowering."""
    names = [one.name for one in target.passes(plan, schedule)]
    return f"{strategy}: {', then '.join(names) or 'unchanged'}" if target.ordinals else ""


def _check_case(tally: _Tally, plan: Layout, checkers: Checkers | None, case: _Case) -> None:
    """Check a case with both checkers; checkers: those that know its operations (None: too many devices)."""
    for iterations in case.iterations:
        if checkers is None:
            static, traced = opinions(plan, iterations)
        else:
            static, traced = checkers.proved(iterations), checkers.replayed(iterations)
        tally.add(case.name, len(iterations[1].ops), tuple(static), tuple(traced))
    for mutant in case.mutants:
        tally.judged(case.name, judge(plan, case.repeated, mutant, checkers=checkers))
    tally.ways += 1
    if case.passes:
        tally.passes[case.passes] = None


def _report(tally: _Tally, ways: Ways) -> Verification:
    tried = ways.mutants is not None
    return Verification(
        schedules=tally.schedules,
        ops=tally.ops,
        races=tally.kinds["race"] + tally.kinds["undetermined"],
        stale_reads=tally.kinds["stale read"] + tally.kinds["outside"] + tally.kinds["reduction"],
        deadlocks=tally.kinds["deadlock"],
        mutants=tally.outcomes.total() if tried else None,
        killed=tally.outcomes["killed"] if tried else None,
        redundant=sum(tally.outcomes[outcome] for outcome in REDUNDANT) if tried else None,
        disagreements=tally.torn + tally.outcomes["disagreement"],
        outcomes=dict(tally.outcomes),
        faults=tuple(tally.faults),
        passes=tuple(tally.passes) or None,
    )

"""The work of `peergrid verify`: many ways to run one problem, each looked at by both checkers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import get_args

from peergrid.codegen.cuda.balance import balanced
from peergrid.grid.partition import Partition
from peergrid.runtime.trace.judge import REDUNDANT, Outcome, Verdict, check, judge
from peergrid.schedule import Layout, Options, Schedule, build, layout, period
from peergrid.schedule.exchange import Order
from peergrid.schedule.faults import Fault, count
from peergrid.schedule.mutate import mutants
from peergrid.schedule.strategies import StrategyName
from peergrid.schedule.verify import program, prove
from peergrid.stencil import Problem

Progress = Callable[[int, int], None]
"""Told how many schedules are done, and of how many."""


@dataclass(frozen=True)
class Ways:
    """Which schedules to look at: every combination.

    steps: of the run whose last, shorter turn is looked at too; None: only the turn that is repeated;
    mutants: how many of each kind to try on every schedule; None: none at all; balanced: with the slabs that GPUs get.
    """

    devices: tuple[int, ...] = (1, 2, 3, 4, 7)
    strategies: tuple[StrategyName, ...] = get_args(StrategyName)
    depths: tuple[int, ...] = (1, 2, 3, 5, 8)
    orders: tuple[Order, ...] = get_args(Order)
    steps: int | None = None
    mutants: int | None = None
    balanced: bool = False


@dataclass(frozen=True)
class Verification:
    """What was found: the figures of `peergrid verify --json`, and sentences for whoever reads.

    ops: in the schedules looked at; races: with orders that depend on luck; stale_reads: with accesses outside memory;
    redundant: mutants that both checkers find as good as the original; disagreements: mutants, or schedules, of which
    one checker accepts what the other rejects; outcomes: mutants by what became of them.
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

    @property
    def holds(self) -> bool:
        """Whether every schedule is right and the checkers agree on every mutant."""
        return not (self.races or self.stale_reads or self.deadlocks or self.disagreements)


@dataclass(eq=False)
class _Tally:
    schedules: int = 0
    ops: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    torn: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, ops: int, static: tuple[Fault, ...], traced: tuple[Fault, ...]) -> None:
        """One schedule and what each checker found."""
        self.schedules += 1
        self.ops += ops
        self.kinds.update(count(static or traced))
        self.torn += bool(static) != bool(traced)
        self.faults += [f"{name}: {fault}" for fault in static or traced]

    def judged(self, name: str, verdict: Verdict) -> None:
        """One mutant."""
        self.outcomes[verdict.outcome] += 1
        if verdict.outcome == "disagreement":
            who, found = ("static proof", verdict.static) if verdict.static else ("trace checker", verdict.traced)
            self.faults.append(f"{name}, {verdict.mutant.what}: only the {who} rejects this mutant: {found[0]}")


def verify_all(problem: Problem, ways: Ways, progress: Progress | None = None) -> Verification:
    """Look at every schedule the ways name with both checkers, and at their mutants.

    Raises UsageError where the grid cannot be cut for as many devices.
    """
    tally = _Tally()
    chosen = list(_options(ways))
    for number, (devices, options) in enumerate(chosen):
        cut = balanced(problem, devices, options.depth) if ways.balanced else Partition.over(problem.grid, devices)
        plan = layout(problem, cut, options)
        _look(tally, plan, options, ways)
        if progress is not None:
            progress(number + 1, len(chosen))
    return _report(tally, ways)


def _options(ways: Ways) -> Iterator[tuple[int, Options]]:
    for devices, depth, strategy, order in product(ways.devices, ways.depths, ways.strategies, ways.orders):
        yield devices, Options(strategy=strategy, depth=depth, order=order)


def _look(tally: _Tally, plan: Layout, options: Options, ways: Ways) -> None:
    name = f"{options.strategy}, {plan.devices} devices, depth {options.depth}, order {options.order}"
    repeated = period(plan, options)
    turns = [program(plan, repeated)]
    if ways.steps is not None and (rest := ways.steps % repeated.steps):
        shorter = build(plan, options, rest)
        turns.append((repeated, shorter, build(plan, options, plan.depth, shorter.final)))
    for some in turns:
        tally.add(name, len(some[1].ops), prove(plan, some).faults, check(plan, some))
    if ways.mutants is not None:
        _mutate(tally, name, plan, repeated, ways.mutants)


def _mutate(tally: _Tally, name: str, plan: Layout, original: Schedule, per_kind: int) -> None:
    for mutant in mutants(original, per_kind):
        tally.judged(name, judge(plan, original, mutant))


def _report(tally: _Tally, ways: Ways) -> Verification:
    tried = ways.mutants is not None
    return Verification(
        schedules=tally.schedules,
        ops=tally.ops,
        races=tally.kinds["race"] + tally.kinds["undetermined"],
        stale_reads=tally.kinds["stale read"] + tally.kinds["outside"],
        deadlocks=tally.kinds["deadlock"],
        mutants=tally.outcomes.total() if tried else None,
        killed=tally.outcomes["killed"] if tried else None,
        redundant=sum(tally.outcomes[outcome] for outcome in REDUNDANT) if tried else None,
        disagreements=tally.torn + tally.outcomes["disagreement"],
        outcomes=dict(tally.outcomes),
        faults=tuple(tally.faults),
    )

"""Schedules with one thing wrong: rejected by both checkers, or shown to be as good as before."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import get_args

import pytest
from verify_examples import smooth

from peergrid.grid import Grid
from peergrid.grid.partition import Partition
from peergrid.runtime.trace.judge import REDUNDANT, Checkers, Outcome, check, judge, judge_all
from peergrid.schedule import Layout, Options, Schedule, layout, one_iteration
from peergrid.schedule.mutate import Change, mutants
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import program, prove
from peergrid.stencil import Problem, stencil

DIFFERENT = {strategy.build: name for name, strategy in STRATEGIES.items()}.values()  # 'graph' is 'overlap' replayed
ORDERING = ("Wait", "Record", "SignalOp", "SignalWait", "Sync", "HostBarrier", "DeviceBarrier")


@stencil
def magnetic(h, e):  # type: ignore[no-untyped-def]
    h.next[0, 0] = h[0, 0] + 0.5 * (e[1, 0] - e[0, 0])


@stencil
def electric(e, h):  # type: ignore[no-untyped-def]
    e.next[0, 0] = e[0, 0] + 0.5 * (h[0, 0] - h[-1, 0]) + 0.25 * h[0, -1]


def line(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """Thirteen cells in a ring over three devices."""
    grid = Grid(13, "periodic")
    options = Options(strategy=strategy, depth=depth, block=block)
    plan = layout(Problem.of(smooth(grid.field("u"))), Partition(grid, (3,)), options)
    return plan, one_iteration(plan, options)


def plane(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """Two fields and two stages on a plane that is cut along both axes."""
    grid = Grid((9, 7))
    e, h = grid.field("e"), grid.field("h")
    options = Options(strategy=strategy, depth=depth, block=block, order="left-right")
    plan = layout(Problem.of([magnetic(h, e), electric(e, h)]), Partition(grid, (2, 2)), options)
    return plan, one_iteration(plan, options)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("depth", "block"), [(1, None), (2, 1), (2, None), (3, 2)])
def test_the_originals_are_right(strategy: StrategyName, depth: int, block: int | None) -> None:
    for plan, original in (line(strategy, depth, block), plane(strategy, depth, block)):
        iterations = program(plan, original)
        assert prove(plan, iterations).faults == ()
        assert check(plan, iterations) == ()


@pytest.mark.parametrize("strategy", DIFFERENT)
@pytest.mark.parametrize(("depth", "block"), [(1, None), (2, 1), (3, 2)])
def test_every_mutant_is_rejected_by_both_checkers_or_as_good_as_the_original(
    strategy: StrategyName, depth: int, block: int | None
) -> None:
    outcomes: dict[str, Counter[Outcome]] = defaultdict(Counter)
    for (plan, original), per_kind in ((line(strategy, depth, block), 6), (plane(strategy, depth, block), 2)):
        for verdict in judge_all(plan, original, mutants(original, per_kind)):
            assert verdict.outcome != "disagreement", (verdict.mutant.what, verdict.static, verdict.traced)
            outcomes[verdict.mutant.kind][verdict.outcome] += 1
    for kind in ("drop Compute", "slots Compute", "level Compute", "level Copy", "slots Copy"):
        assert outcomes[kind].keys() == {"killed"}, (kind, outcomes[kind])
    assert outcomes["drop Copy"].keys() <= {"killed", "unused"}  # a corner that the stars do not reach
    assert {kind.split()[0] for kind in outcomes} >= {*get_args(Change)} - {"absent", "tag", "host"}
    for kind, found in outcomes.items():
        assert found["killed"] or kind.startswith("swap"), kind


@pytest.mark.parametrize("strategy", ["async", "threads", "overlap", "persistent"])
@pytest.mark.parametrize(("depth", "block"), [(1, None), (3, None), (3, 1)])
def test_no_strategy_orders_more_than_it_needs(strategy: StrategyName, depth: int, block: int | None) -> None:
    """`serial` does so on purpose, and `peer` repeats a flag that the next cycle's would answer for, but later."""
    plan, original = line(strategy, depth, block)
    kinds = {f"{change} {op}" for change in ("drop", "absent") for op in ORDERING}
    for verdict in judge_all(plan, original, (mutant for mutant in mutants(original) if mutant.kind in kinds)):
        assert verdict.outcome == "killed", verdict.mutant.what


def test_a_missing_flag_that_the_next_one_answers_for_is_implied() -> None:
    plan, original = line("peer", 1, None)
    dropped = (m for m in mutants(original) if m.kind == "drop SignalOp")
    found = Counter(verdict.outcome for verdict in judge_all(plan, original, dropped))
    assert found.keys() == {"killed", "implied"}


def test_order_between_stages_that_only_keeps_links_free_is_spare() -> None:
    grid = Grid(13, "periodic")
    options = Options(strategy="persistent", order="left-right", separate=True)
    plan = layout(Problem.of(smooth(grid.field("u"))), Partition(grid, (3,)), options)
    original = one_iteration(plan, options)
    dropped = (m for m in mutants(original) if m.kind == "drop DeviceBarrier")
    found = Counter(verdict.outcome for verdict in judge_all(plan, original, dropped))
    assert found == {"spare": 2, "killed": 2}


def test_corners_that_a_star_does_not_read_are_unused() -> None:
    plan, original = plane("persistent", 1, None)
    shrunk = (m for m in mutants(original) if m.kind == "shrink Copy")
    found = {verdict.outcome for verdict in judge_all(plan, original, shrunk)}
    assert found == {"killed", "unused"}


@pytest.mark.parametrize("blind", ["proved", "replayed"])
def test_a_checker_that_sees_nothing_is_noticed(blind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, original = line("async", 1, None)
    worst = next(mutants(original, per_kind=1))
    assert judge(plan, original, worst).outcome == "killed"
    monkeypatch.setattr(Checkers, blind, lambda *_: iter(()))
    assert judge(plan, original, worst).outcome == "disagreement"
    assert "disagreement" not in REDUNDANT


@pytest.mark.parametrize("strategy", ["overlap", "threads"])
def test_checkers_that_know_all_mutants_find_what_those_of_one_mutant_find(strategy: StrategyName) -> None:
    """Knowing more operations makes cells finer and clocks longer; it changes no verdict."""
    plan, original = plane(strategy, 2, 1)
    found = list(mutants(original, per_kind=2))
    checkers = Checkers(plan, (mutant.schedule for mutant in found))
    outcomes = set()
    for mutant in found:
        alone, among_others = judge(plan, original, mutant), judge(plan, original, mutant, checkers=checkers)
        assert among_others.outcome == alone.outcome, mutant.what
        outcomes.add(alone.outcome)
    assert {"killed", "commutes"} <= outcomes


def test_a_few_mutants_of_each_kind_are_spread_over_the_list() -> None:
    _, original = line("overlap", 1, None)
    every, few = Counter(m.kind for m in mutants(original)), Counter(m.kind for m in mutants(original, per_kind=2))
    assert few == {kind: min(2, number) for kind, number in every.items()}

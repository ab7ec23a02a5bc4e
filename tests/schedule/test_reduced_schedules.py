"""Reductions in schedules: proved like everything else, by both checkers, and mutants of them are rejected."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from verify_examples import smooth

from peergrid import Box, Grid, Options, Problem, reduction, stencil
from peergrid.grid.partition import Partition
from peergrid.runtime.trace.judge import Outcome, check, judge_all
from peergrid.schedule import Layout, Schedule, build, layout, one_iteration
from peergrid.schedule.faults import FaultKind
from peergrid.schedule.mutate import mutants
from peergrid.schedule.ops import Reduce
from peergrid.schedule.pass_plan import due
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import program, prove

DEPTHS = [(1, None), (2, 1), (3, None), (3, 2)]


@reduction("sum", every=3)
def around(u):  # type: ignore[no-untyped-def]
    return u[-2] * u[2]


@reduction("l2", every=2)
def change(u):  # type: ignore[no-untyped-def]
    return u[0] - u.prev[0]


@stencil
def blur(u, v):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 0.5 * v[0, 0] + 0.25 * (u[1, 0] + u[-1, 0])
    v.next[0, 0] = u[0, 1]


@stencil
def decay(v):  # type: ignore[no-untyped-def]
    v.next[0, 0] = 0.9 * v[0, 0]


@reduction("max", every=2)
def slope(u, v):  # type: ignore[no-untyped-def]
    return u[1, 1] - v[-1, 0]


@reduction("max", every=2)
def rise(v):  # type: ignore[no-untyped-def]
    return v[1, 1] - v[0, 0]


@reduction("mean", every=1)
def drift(v):  # type: ignore[no-untyped-def]
    return v[0, 0] - v.prev[0, 0]


def line(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """A ring over three devices; one reduction reads further than the step does."""
    u = Grid(13, "periodic").field("u")
    options = Options(strategy, depth, block)
    problem = Problem.of(smooth(u), reductions=[around(u), change(u).within(Box((2,), (11,)))])
    plan = layout(problem, Partition(problem.grid, (3,)), options)
    return plan, one_iteration(plan, options)


def alone(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """One device, whose box has no neighbour."""
    u = Grid(13).field("u")
    options = Options(strategy, depth, block)
    problem = Problem.of(smooth(u), reductions=[around(u), change(u)])
    plan = layout(problem, Partition(problem.grid, (1,)), options)
    return plan, one_iteration(plan, options)


def plane(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """Two fields on a plane that reflects and is cut along both axes."""
    grid = Grid((9, 7), "reflecting")
    u, v = grid.field("u"), grid.field("v")
    options = Options(strategy, depth, block)
    problem = Problem.of(blur(u, v), reductions=[slope(u, v), drift(v)])
    plan = layout(problem, Partition(grid, (2, 2)), options)
    return plan, one_iteration(plan, options, start=1)


def apart(strategy: StrategyName, depth: int, block: int | None) -> tuple[Layout, Schedule]:
    """A reduction alone reads cells of others; the first device sends none, so its interior is all that it owns."""
    grid = Grid((9, 7))
    v = grid.field("v")
    options = Options(strategy, depth, block)
    problem = Problem.of(decay(v), reductions=[rise(v), drift(v)])
    plan = layout(problem, Partition(grid, (2, 2)), options)
    return plan, one_iteration(plan, options, start=1)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("depth", "block"), DEPTHS)
def test_schedules_with_reductions_are_proved(strategy: StrategyName, depth: int, block: int | None) -> None:
    for plan, schedule in (made(strategy, depth, block) for made in (line, alone, plane, apart)):
        iterations = program(plan, schedule)
        assert any(isinstance(op, Reduce) for op in schedule.ops)
        assert schedule.first == schedule.final
        assert prove(plan, iterations).faults == ()
        assert check(plan, iterations) == ()


def test_reductions_are_due_at_multiples_of_the_runs_steps() -> None:
    plan, _ = line("async", 3, None)
    found = [(one.level, one.reduction) for one in due(plan.problem, 4, 5)]
    assert found == [(2, "around"), (2, "change"), (4, "change"), (5, "around")]
    schedule = build(plan, Options(depth=3), 5, 0, start=4)
    made = [(op.level, op.reduction) for op in schedule.ops if isinstance(op, Reduce) and op.device == 0]
    assert made == found


@pytest.mark.parametrize("strategy", ["serial", "async", "threads", "overlap", "peer", "persistent"])
@pytest.mark.parametrize(("depth", "block"), [(1, None), (3, 2)])
def test_mutants_are_rejected_by_both_checkers(strategy: StrategyName, depth: int, block: int | None) -> None:
    outcomes: dict[str, Counter[Outcome]] = defaultdict(Counter)
    kinds: dict[str, set[FaultKind]] = defaultdict(set)
    for made, per_kind in ((line, 3), (plane, 1), (apart, 1)):
        plan, original = made(strategy, depth, block)
        for verdict in judge_all(plan, original, mutants(original, per_kind)):
            assert verdict.outcome != "disagreement", (verdict.mutant.what, verdict.static, verdict.traced)
            outcomes[verdict.mutant.kind][verdict.outcome] += 1
            if verdict.static:
                kinds[verdict.mutant.kind].add(verdict.static.kind)
    for kind in ("drop Reduce", "level Reduce", "slots Reduce", "shrink Reduce"):
        assert outcomes[kind].keys() == {"killed"}, (kind, outcomes[kind])
    assert kinds["drop Reduce"] == kinds["shrink Reduce"] == {"reduction"}


def test_a_reduction_beside_the_pass_that_overwrites_it_is_a_race() -> None:
    """What the join behind the reductions of `overlap` is there for."""
    plan, schedule = plane("overlap", 1, None)
    found = [m for m in mutants(schedule) if m.kind == "drop Wait" and ":reduced" in m.what]
    assert found
    verdicts = list(judge_all(plan, schedule, found))
    assert {v.outcome for v in verdicts} <= {"killed", "spare", "implied"}
    assert any(v.static and v.static.kind == "race" for v in verdicts)

"""Many devices: proofs by a window of each kind say what proofs of the whole say."""

from __future__ import annotations

from random import Random

import pytest
from test_passes import PASSES, diffuse

from peergrid import Grid, Options, verify
from peergrid.grid import Boundary, Box
from peergrid.grid.partition import Partition
from peergrid.runtime.trace.judge import check, replayed_by_window
from peergrid.schedule import Layout, Schedule, build, layout, one_iteration
from peergrid.schedule.edits import edited
from peergrid.schedule.passes import apply_passes
from peergrid.schedule.proved import repeated
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import prove
from peergrid.schedule.windows import kinds, objections_by_window
from peergrid.stencil import Problem

DEVICES = 20


def made(strategy: StrategyName, boundary: Boundary = "fixed", *, lowered: bool = False) -> tuple[Layout, Schedule]:
    grid = Grid((5 * DEVICES + 3, 4), (boundary, "fixed"))
    problem = Problem.of(diffuse(grid.field("u"), grid.field("a")))
    options = Options(strategy, 2)
    plan = layout(problem, Partition(grid, (DEVICES, 1)), options)
    schedule = one_iteration(plan, options)
    return plan, apply_passes(plan, schedule, [PASSES[strategy][1]] if lowered else [])


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_right_is_right_by_windows(strategy: StrategyName, boundary: Boundary, lowered: bool) -> None:
    if lowered and strategy not in PASSES:
        return
    plan, schedule = made(strategy, boundary, lowered=lowered)
    iterations = (schedule, schedule)
    assert [*objections_by_window(plan, iterations)] == [*replayed_by_window(plan, iterations)] == []
    assert 2 < len([*kinds(plan, iterations)]) < DEVICES


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_wrong_somewhere_is_wrong_by_windows(strategy: StrategyName) -> None:
    """Random edits anywhere: windows accept nothing that the proof of the whole rejects."""
    plan, schedule = made(strategy)
    rejected = 0
    for seed in range(8):
        _, wrong = edited(schedule, Random(seed))
        iterations = (wrong, wrong)
        whole, by_window = prove(plan, iterations).faults, [*objections_by_window(plan, iterations)]
        assert bool(whole) <= bool(by_window), seed
        assert bool(check(plan, iterations)) <= bool(by_window or [*replayed_by_window(plan, iterations)]), seed
        rejected += bool(whole)
    assert rejected


def test_the_end_of_a_run_is_looked_at_too() -> None:
    plan, schedule = made("async")
    shorter = build(plan, schedule.options, 3)
    assert shorter.first == shorter.final
    iterations = repeated(plan, build(plan, schedule.options, 2))
    assert not [*objections_by_window(plan, iterations)]


def kinds_of(devices: int) -> int:
    """The number of kinds of windows of so many devices with slabs of one size."""
    grid, options = Grid((4 * devices, 4)), Options("async")
    problem = Problem.of(diffuse(grid.field("u"), grid.field("a")))
    plan = layout(problem, Partition(grid, (devices, 1)), options)
    schedule = one_iteration(plan, options)
    return len([*kinds(plan, (schedule, schedule))])


def test_three_hundred_devices_have_as_many_kinds_as_thirty() -> None:
    assert kinds_of(300) == kinds_of(30) < 10


def test_fields_at_one_end_of_the_grid_make_no_more_kinds_elsewhere() -> None:
    """Devices on which a field has no cells are alike, wherever they are."""
    grid, options = Grid((4 * 40, 4)), Options("async")
    edge = grid.field("v", within=Box((154, 0), (160, 4)))
    problem = Problem.of(
        [diffuse(grid.field("u"), grid.field("a")), diffuse(edge, grid.field("b")).within(Box((155, 1), (159, 3)))]
    )
    plan = layout(problem, Partition(grid, (40, 1)), options)
    schedule = one_iteration(plan, options)
    assert len([*kinds(plan, (schedule, schedule))]) < 12


def test_a_hundred_devices_are_verified_by_windows() -> None:
    grid = Grid((4 * 100, 4))
    assert verify(Problem.of(diffuse(grid.field("u"), grid.field("a"))), devices="cpu:100").holds

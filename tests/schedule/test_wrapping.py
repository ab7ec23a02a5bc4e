"""Axes that no device splits wrap within each device: after the exchange, by copies of its own."""

from __future__ import annotations

from typing import Any

import pytest

from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition
from peergrid.runtime.trace.judge import check
from peergrid.schedule import Options, layout, one_iteration, pass_plan
from peergrid.schedule.ops import Compute, Copy, Queue
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import program, prove
from peergrid.stencil import Problem, stencil


@stencil
def around(u: Any) -> None:
    u.next[0, 0] = u[-1, -1] + u[1, 1] + u[0, 0]


def problem(*boundary: Any) -> Problem:
    return Problem.of(around(Grid((24, 20), boundary).field("u")))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize(("depth", "block"), [(1, 1), (3, 3), (4, 2)])
def test_schedules_are_proved(strategy: StrategyName, parts: tuple[int, int], depth: int, block: int) -> None:
    options = Options(strategy, depth, block)
    made = problem("periodic", "periodic")
    plan = layout(made, Partition(made.grid, parts), options)
    whole = one_iteration(plan, options)
    assert prove(plan, program(plan, whole)).holds
    assert not check(plan, program(plan, whole))


def test_corners_come_from_ghost_cells_that_the_exchange_filled() -> None:
    made = problem("periodic", "periodic")
    plan = layout(made, Partition(made.grid, (2, 1)), Options(depth=2))
    assert {(halo.source, halo.target) for halo in plan.exchanged} == {(0, 1), (1, 0)}
    assert all(halo.source_box.shape == (2, 20) for halo in plan.exchanged)
    assert {halo.source_box for halo in plan.wrapped if halo.target == 0} == {
        Box((-2, 0), (14, 2)),
        Box((-2, 18), (14, 20)),
    }


def test_wrapping_takes_nothing_from_the_interior() -> None:
    made = problem("periodic", "periodic")
    options = Options("overlap", depth=2)
    for parts, interior in (((1, 1), Box((0, 0), (24, 20))), ((2, 1), Box((2, 0), (10, 20)))):
        plan = layout(made, Partition(made.grid, parts), options)
        ops = [op for op in one_iteration(plan, options).ops if isinstance(op, Compute) and op.device == 0]
        assert {op.box for op in ops if op.queue == Queue(0, "interior")} == {interior}


def test_one_device_wraps_in_one_queue_with_nothing_to_wait_for() -> None:
    made = problem("periodic", "periodic")
    options = Options("overlap", depth=2)
    plan = layout(made, Partition(made.grid, (1, 1)), options)
    assert {type(op) for op in one_iteration(plan, options).ops} == {Compute, Copy}
    assert len({op.queue for op in one_iteration(plan, options).ops if isinstance(op, Compute | Copy)}) == 1


@pytest.mark.parametrize("strategy", ["overlap", "graph", "peer"])
@pytest.mark.parametrize("parts", [(1, 1), (1, 2), (1, 3)])
def test_rows_of_large_grids_are_copied_beside_the_interior(
    strategy: StrategyName, parts: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_plan, "HIDES_COPIES", 4)
    made, options = problem("periodic", "fixed"), Options(strategy)
    plan = layout(made, Partition(made.grid, parts), options)
    whole = one_iteration(plan, options)
    assert {op.queue.name for op in whole.ops if isinstance(op, Copy)} == {"boundary"}
    inner = [op.box for op in whole.ops if isinstance(op, Compute) and op.queue.name == "interior"]
    assert {(box.lo[0], box.hi[0]) for box in inner} == {(1, 23)}
    assert prove(plan, program(plan, whole)).holds
    assert not check(plan, program(plan, whole))


def test_columns_and_rows_of_small_grids_are_copied_after_the_interior(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options("overlap")
    for least, boundary in ((4, ("fixed", "periodic")), (24 * 20 + 1, ("periodic", "fixed"))):
        monkeypatch.setattr(pass_plan, "HIDES_COPIES", least)
        made = problem(*boundary)
        whole = one_iteration(layout(made, Partition(made.grid, (1, 1)), options), options)
        assert {op.queue.name for op in whole.ops if isinstance(op, Copy)} == {"interior"}


def test_an_axis_that_is_split_is_exchanged() -> None:
    made = problem("fixed", "periodic")
    assert not layout(made, Partition(made.grid, (2, 2)), Options()).wrapped

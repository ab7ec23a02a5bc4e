"""Which cells decide a result: found by putting NaN into one cell after the other and looking where it comes out."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_problems import alone, boxes_in, loaded, problems, results
from hypothesis import given, settings
from hypothesis import strategies as st

from peergrid.grid import Box, Grid
from peergrid.grid.partition import Partition
from peergrid.runtime.trace.cells import CellSet, cells_read, exact_reads
from peergrid.runtime.trace.judge import check
from peergrid.schedule import Layout, Options, build, layout, one_iteration
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.verify import program, prove
from peergrid.stencil import Problem, footprint, read_box, read_boxes, stencil


def cells(boxes: tuple[Box, ...]) -> set[tuple[int, ...]]:
    return {cell for box in boxes for cell in box.cells()}


@settings(max_examples=25)
@given(data=st.data(), steps=st.integers(1, 2))
def test_exactly_the_cells_that_matter_are_read(data: st.DataObject, steps: int) -> None:
    problem = data.draw(problems().filter(lambda p: p.grid.box.size <= 60))
    box = data.draw(boxes_in(problem.grid))
    source = data.draw(st.sampled_from(problem.state))
    wrapped = {
        tuple(
            i % n if wraps else i for i, n, wraps in zip(cell, problem.grid.shape, problem.grid.periodic, strict=True)
        )
        for cell in cells(exact_reads(problem, source, box, steps))
    }
    assert wrapped == _influential(problem, source, box, steps)


@settings(max_examples=60)
@given(data=st.data(), steps=st.integers(0, 3))
def test_what_is_used_is_part_of_what_is_declared(data: st.DataObject, steps: int) -> None:
    problem = data.draw(problems())
    box = data.draw(boxes_in(problem.grid))
    for name in problem.state:
        declared, whole = read_boxes(problem, name, box, steps), read_box(problem, name, box, steps)
        assert sum(part.size for part in declared) == len(cells(declared))  # they do not overlap
        assert cells(exact_reads(problem, name, box, steps)) <= cells(declared) <= set(whole.cells())


def test_a_star_leaves_out_the_corners() -> None:
    @stencil
    def star(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]

    problem = Problem.of(star(Grid((9, 9)).field("u")))
    box = Box((3, 3), (5, 5))
    assert read_box(problem, "u", box, 1) == Box((2, 2), (6, 6))
    used = {*((i, j) for i in (2, 3, 4, 5) for j in (3, 4)), *((i, j) for i in (3, 4) for j in (2, 5))}
    assert cells(exact_reads(problem, "u", box, 1)) == cells(read_boxes(problem, "u", box, 1)) == used
    assert read_boxes(problem, "u", box, 2) == (read_box(problem, "u", box, 2),)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_corners_travel_only_where_they_are_read(strategy: StrategyName) -> None:
    @stencil
    def star(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1]

    @stencil
    def bishop(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = u[-1, -1] + u[1, 1] + u[0, 0]

    grid = Grid((9, 9), boundary=("periodic", "fixed"))
    for update, depth, block, corners in ((star, 1, 1, 0), (bishop, 1, 1, 4), (star, 3, 1, 8), (star, 3, 3, 8)):
        options = Options(strategy, depth, block)
        plan = layout(Problem.of(update(grid.field("u"))), Partition(grid, (2, 2)), options)
        assert sum(all(halo.direction) for halo in plan.halos) == corners
        whole = one_iteration(plan, options)
        assert prove(plan, program(plan, whole)).holds
        assert not check(plan, program(plan, whole))


def test_corners_of_what_corners_are_made_of_travel_with_these() -> None:
    @stencil
    def wave(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 2 * u[0, 0] - u.prev[0, 0] + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])

    @stencil
    def slope(g, u):  # type: ignore[no-untyped-def]
        g.next[0, 0] = u[1, 0] - u[0, -1]

    grid = Grid((9, 9))
    u, g = grid.field("u"), grid.field("g")
    for stages, fields in (([wave(u)], set()), ([wave(u), slope(g, u)], {"u", "u.prev"})):
        plan = layout(Problem.of(stages), Partition(grid, (2, 2)), Options())
        assert {halo.field for halo in plan.halos if all(halo.direction)} == fields


def test_a_mirror_folds_reads_back_into_the_grid() -> None:
    @stencil
    def left(u):  # type: ignore[no-untyped-def]
        u.next[0] = u[-2]

    problem = Problem.of(left(Grid(6, "reflecting").field("u")))
    assert cells(exact_reads(problem, "u", Box((0,), (1,)), 1)) == {(1,)}
    assert cells(exact_reads(problem, "u", Box((0,), (4,)), 1)) == {(0,), (1,)}


def test_no_steps_read_the_box_itself() -> None:
    @stencil
    def stay(u):  # type: ignore[no-untyped-def]
        u.next[0] = u[1]

    problem = Problem.of(stay(Grid(6).field("u")))
    (found,) = cells_read(problem, Box((1,), (3,)), 0).values()
    assert found.boxes() == (Box((1,), (3,)),)
    assert footprint(problem, 0).inputs["u"].apply(Box((1,), (3,))) == Box((1,), (3,))


def test_a_set_of_cells_is_kept_between_its_changes_alone() -> None:
    mask = np.zeros((6, 5), dtype=np.bool_)
    mask[2:4, 1:] = True
    found = CellSet.of(mask, (10, 20))
    assert found.cuts == ((10, 12, 14, 16), (20, 21, 25))
    assert found.boxes() == (Box((12, 21), (14, 25)),)


def _influential(problem: Problem, source: str, box: Box, steps: int) -> set[tuple[int, ...]]:
    """The cells of `source` whose NaN at the start is seen in some state field on `box` after the steps."""
    plan = Layout(problem, Partition.over(problem.grid, 1), (1,))
    schedule = build(plan, Options(strategy="serial"), steps)
    found: set[tuple[int, ...]] = set()
    for cell in problem.grid.box.cells():
        executor = loaded(plan, steps)
        values = problem.fields[source].global_array()
        values[cell] = np.nan
        executor.load(source, values, 0)
        executor.execute(schedule, 1, 0)
        after = results(executor, schedule.final)
        if any(np.isnan(array[box.slices((0,) * box.ndim)]).any() for array in after.values()):
            found.add(cell)
    assert not any(np.isnan(array).any() for array in alone(problem, steps).values())
    return found

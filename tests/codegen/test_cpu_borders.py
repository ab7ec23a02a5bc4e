"""Lines that a 3D tile computes around itself are taken by the next one, where they cost much to compute."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from stream_problems import values
from test_cpu_kernel import check

from peergrid.codegen.cpu.effort import COSTLY
from peergrid.codegen.cpu.plan import StreamPlan, stream_plan
from peergrid.codegen.cpu.tables import program
from peergrid.codegen.cpu.work import Tile
from peergrid.grid import Boundary, Box, Grid
from peergrid.runtime.cpu.kernel import CpuKernel, TilePlanner
from peergrid.stencil import Problem, Stage, stencil

SHAPE = (10, 23, 37)


def slopes_of(count: int) -> Any:
    """A stencil of so many operations, and one more."""

    @stencil
    def slopes(u: Any, g: Any) -> None:
        terms = ((k + 3.0) * u[k % 2, k % 3 - 1, -1] for k in range(count // 2))
        g.next[0, 0, 0] = 0.5 * sum(terms, u[0, -1, 1])

    return slopes


@stencil
def follow(u: Any, g: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.01 * (g[0, 2, 0] - g[-1, -1, 0] + g[1, 0, 1])


def problem_of(boundary: Boundary = "fixed", count: int = COSTLY) -> Problem:
    grid = Grid(SHAPE, boundary)
    u, g = grid.field("u", values(SHAPE, 1)), grid.field("g", values(SHAPE, 2))
    return Problem.of([slopes_of(count)(u, g), follow(u, g)])


def in_lines(problem: Problem, lines: int) -> TilePlanner:
    """Tiles of so many lines."""

    def planner(box: Box, steps: int) -> tuple[StreamPlan, tuple[Box, ...]]:
        edges = [*range(box.lo[1], box.hi[1], lines), box.hi[1]]
        return stream_plan(problem, steps), tuple(box.with_axis(1, low, high) for low, high in pairwise(edges))

    return planner


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
@pytest.mark.parametrize(("lines", "steps"), [(2, 1), (2, 3), (5, 2), (9, 3)])
def test_bits_are_those_of_the_reference(compiled: Path, boundary: Boundary, lines: int, steps: int) -> None:
    problem = problem_of(boundary)
    check(problem, CpuKernel(problem, compiled, in_lines(problem, lines)), (2, 1, 1), steps)


def test_tiles_whose_longest_rows_begin_at_different_cells_share_borders(compiled: Path) -> None:
    grid = Grid(SHAPE)
    u, g = grid.field("u", values(SHAPE, 1)), grid.field("g", values(SHAPE, 2))
    parts = Box((0, 0, 0), (10, 12, 37)), Box((0, 12, 3), (10, 23, 37))
    step = [Stage([update.within(part) for part in parts]) for update in (slopes_of(COSTLY)(u, g), follow(u, g))]
    problem = Problem.of(step)
    check(problem, CpuKernel(problem, compiled, in_lines(problem, 12)), (1, 1, 1), 1)


@stencil
def spread(u: Any) -> None:
    u.next[0, 0, 0] = 0.4 * (u[0, -1, 0] + u[0, 1, 0])


@stencil
def react(u: Any, g: Any) -> None:
    u.next[0, 0, 0] = sum(((k + 3.0) * u[0, 0, 0] for k in range(COSTLY)), 0.5) / 600.0
    g.next[0, 0, 0] = 0.5 * g[0, 0, 0] + u[0, 0, 0]


def test_lines_are_taken_when_nothing_reads_the_old_values_any_more(compiled: Path) -> None:
    grid = Grid(SHAPE)
    u, g = grid.field("u", values(SHAPE, 1)), grid.field("g", values(SHAPE, 2))
    problem = Problem.of([spread(u), react(u, g)])
    check(problem, CpuKernel(problem, compiled, in_lines(problem, 6)), (1, 1, 1), 2)


def test_no_line_is_computed_twice() -> None:
    problem = problem_of("periodic")
    plan, boxes = in_lines(problem, 6)(problem.grid.box, 1)
    first, second = (
        Tile(problem, plan, box, (), before=before) for before, box in zip((None, boxes[0]), boxes[:2], strict=True)
    )
    node = plan.nodes[0]
    ends = first.region(node, "g").hi[1]
    assert second.taken(node)["g"].hi[1] == ends
    kinds = [
        (piece.box.lo[1], [access.storage.kind for access in piece.single.accesses]) for piece in second.pieces(node)
    ]
    assert {line for line, (target, *sources) in kinds if target == "window" and "border" not in sources} == {ends}


@pytest.mark.parametrize(("count", "kept"), [(COSTLY, True), (COSTLY - 4, False)])
def test_only_costly_values_wait_for_the_next_tile(count: int, kept: bool) -> None:
    problem = problem_of(count=count)
    plan, boxes = in_lines(problem, 6)(problem.grid.box, 1)
    assert any(storage.kind == "border" for storage in program(problem, plan, boxes, ()).storages) == kept


def test_tiles_that_cut_lines_take_nothing() -> None:
    problem = problem_of()
    plan, boxes = in_lines(problem, 6)(problem.grid.box, 1)
    cut = [box.with_axis(2, low, high) for box in boxes for low, high in ((0, 20), (20, SHAPE[2]))]
    assert all(storage.kind != "border" for storage in program(problem, plan, cut, ()).storages)

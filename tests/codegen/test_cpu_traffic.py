"""What row functions in 3D do about memory: later steps ask for what the first reads, last values pass the caches."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from stream_problems import values
from test_cpu_kernel import DTYPES, check, in_tiles

from peergrid.codegen.cpu.plan import AT_ONCE, StreamPlan, stream_plan
from peergrid.codegen.cpu.prefetch import Traffic
from peergrid.codegen.cpu.rows import Later
from peergrid.codegen.cpu.tables import program
from peergrid.codegen.cpu.work import Tile
from peergrid.grid import Box, Dtype, Grid
from peergrid.runtime.cpu.kernel import CpuKernel
from peergrid.stencil import Problem, stencil

SHAPE = (11, 12, 41)


@stencil
def waves(u: Any, c: Any) -> None:
    terms = ((k + 3.0) * u[k % 5 - 2, k % 3 - 1, k % 2] for k in range(15))
    u.next[0, 0, 0] = 1.5 * u[0, 0, 0] - u.prev[0, 0, 0] + 0.01 * c[0, 0, 0] * sum(terms, u[0, 0, -2])


@stencil
def heat(u: Any) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] + 0.1 * (u[1, 0, 0] - u[-1, 0, 0])


@stencil
def halved(u: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0]


def problem_of(dtype: Dtype = "float32") -> Problem:
    grid = Grid(SHAPE, dtype=dtype)
    return Problem.of(waves(grid.field("u", values(SHAPE, 1)), grid.field("c", values(SHAPE, 2))))


def texts(problem: Problem, plan: StreamPlan) -> list[str]:
    return [text for text in program(problem, plan, (problem.grid.box,), ()).functions if "nontemporal" in text]


def test_later_steps_share_in_asking_for_what_the_first_one_reads() -> None:
    first, second, third = stream_plan(problem_of(), 3).nodes
    lag = second.lag
    assert first.traffic.early == ()
    assert second.traffic.early == (("c", lag + AT_ONCE), ("u.prev", lag + AT_ONCE))
    assert third.traffic.early == (("u", 2 + 2 * lag + AT_ONCE),)  # the first step reads two planes ahead


def test_the_planes_asked_for_are_those_that_the_first_step_reads_next() -> None:
    problem = problem_of()
    tile = Tile(problem, stream_plan(problem, 2), problem.grid.box, ())
    first, second = tile.plan.nodes
    forms = [piece.several for piece in tile.pieces(second) if piece.several]
    asked = {
        (operand.field, place.storage.kind, place.shift)
        for form in forms
        for operand, place in zip(form.code.operands, form.accesses, strict=True)
        if isinstance(operand, Later)
    }
    ahead = second.lag - first.lag + AT_ONCE
    kinds = (("c", "coefficient", 0), ("u.prev", "source", 0), ("u", "source", 2))
    assert asked == {(name, kind, (ahead + r + row, 0, 0)) for name, kind, r in kinds for row in range(AT_ONCE)}


def test_steps_that_take_few_operations_ask_for_nothing() -> None:
    problem = Problem.of(heat(Grid(SHAPE).field("u", 0.0)))
    assert all(node.traffic == Traffic() for node in stream_plan(problem, 3).nodes)


@pytest.mark.parametrize("steps", [1, 3])
def test_the_last_values_pass_the_caches_of_a_large_pass(steps: int) -> None:
    problem = problem_of()
    *within, last = stream_plan(problem, steps, past_cache=True).nodes
    assert last.traffic.past == {"u", "u.prev"}
    assert not any(node.traffic.past for node in within)
    assert texts(problem, stream_plan(problem, steps, past_cache=True))
    assert not texts(problem, stream_plan(problem, steps))


def test_values_that_are_replaced_in_place_do_not_pass_the_caches() -> None:
    assert not texts(problem_of(), stream_plan(problem_of(), 1, past_cache=True, rotate=True))


def test_values_that_a_later_stage_needs_do_not_pass_the_caches() -> None:
    u = Grid(SHAPE).field("u", values(SHAPE, 1))
    plan = stream_plan(Problem.of([heat(u), halved(u)]), 1, past_cache=True)
    assert [node.traffic.past for node in plan.nodes] == [frozenset(), frozenset()]


def test_a_source_in_one_cell_does_not_keep_values_in_the_caches() -> None:
    u = Grid(SHAPE).field("u", values(SHAPE, 1))
    plan = stream_plan(Problem.of([heat(u), halved(u).within(Box.cell((5, 6, 7)))]), 1, past_cache=True)
    assert plan.nodes[0].traffic.past == {"u"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [9, 16, 100])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_bits_are_those_of_the_reference(tmp_path: Path, dtype: Dtype, width: int, steps: int) -> None:
    """Vectors on cache lines and beside them: tiles begin at every place of a line."""
    problem = problem_of(dtype)
    check(problem, CpuKernel(problem, tmp_path, in_tiles(problem, width, past_cache=True)), (2, 1, 1), steps)


def test_vectors_beside_cache_lines_are_stored_as_usual(tmp_path: Path) -> None:
    problem = problem_of()
    grid = problem.grid.box

    def planner(box: Box, steps: int) -> tuple[StreamPlan, tuple[Box, ...]]:
        cuts = [grid.lo[2], *range(3, 20), grid.hi[2]]
        boxes = tuple(box.with_axis(2, low, high) for low, high in pairwise(cuts))
        return stream_plan(problem, steps, past_cache=True), boxes

    check(problem, CpuKernel(problem, tmp_path, planner), (1, 1, 1), 2)
    assert any("nontemporal" in text for text in program(problem, *planner(grid, 2), ()).functions)

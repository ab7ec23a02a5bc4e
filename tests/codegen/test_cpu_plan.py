"""Streaming plans against figures worked out by hand."""

from __future__ import annotations

import pytest
from stream_problems import PLANE, line, plain, values, yee

from peergrid.codegen.cpu.plan import stream_plan
from peergrid.codegen.cpu.tiles import Caches, fitted, tiles, weigh
from peergrid.codegen.cpu.work import mirror_cuts, mirrored
from peergrid.grid import Box, Grid
from peergrid.runtime.cpu.caches import caches
from peergrid.stencil import Problem, stencil

FIXED = ("fixed", "fixed")


def test_a_step_of_heat_lags_one_row_and_keeps_three() -> None:
    plan = stream_plan(plain((20, 20), FIXED, "float32"), 4)
    assert [node.lag for node in plan.nodes] == [0, 1, 2, 3]
    assert plan.depths == (3, 3, 3)
    assert [node.after["u"].kind for node in plan.nodes] == ["window", "window", "window", "target"]


def test_a_step_of_yee_lags_one_row_and_works_in_place() -> None:
    plan = stream_plan(yee((20, 20), ("periodic", "fixed"), "float32"), 3)
    assert [node.lag for node in plan.nodes] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [sorted(node.in_place) for node in plan.nodes[3:5]] == [["hx", "hy"], ["ez"]]
    assert plan.nodes[2].in_place == {"ez"}  # a source on one cell leaves the row where it is


def test_a_mirrored_row_is_waited_for() -> None:
    @stencil
    def behind(u):
        u.next[0, 0] = u[-3, 0]

    problem = Problem.of(behind(Grid((9, 9), ("reflecting", "fixed")).field("u", values((9, 9), 1))))
    plan = stream_plan(problem, 2)
    assert [node.lag for node in plan.nodes] == [0, 2]  # row 0 reads row 2
    assert plan.depths == (2 + 3 + 1,)


def test_lines_have_one_row() -> None:
    plan = stream_plan(line((40,), ("fixed",), "float32"), 3)
    assert {node.lag for node in plan.nodes} == {0}
    assert plan.depths == (1,) * len(plan.depths)
    many = stream_plan(line((40,), ("fixed",), "float32"), 20)
    assert len(many.depths) <= 4  # two fields, old and new: windows are used again


@pytest.mark.parametrize("name", PLANE)
def test_a_plan_does_not_depend_on_the_extent(name: str) -> None:
    small, large = (stream_plan(PLANE[name](shape, FIXED, "float32"), 3) for shape in ((12, 13), (40, 50)))
    assert (small.nodes, small.depths) == (large.nodes, large.depths)


def test_mirror_cuts_single_cells_at_the_edges() -> None:
    grid = Grid((10,), "reflecting")
    cuts = [(box.lo[0], box.hi[0]) for box in mirror_cuts(grid, Box((0,), (10,)), [(-2,), (1,)])]
    assert cuts == [(0, 1), (1, 2), (2, 9), (9, 10)]
    assert mirrored(grid, (0,), (-2,)) == (1,)
    assert mirrored(grid, (9,), (1,)) == (0,)
    assert mirrored(grid, (5,), (-2,)) == (-2,)


def test_tiles_fit_the_cache_and_cover_the_box() -> None:
    problem = plain((100, 20_000), FIXED, "float32")
    plan, box = stream_plan(problem, 8), Box((0, 0), (100, 20_000))
    weight = weigh(problem, plan)
    found = tiles(problem, plan, box, 1 << 20)
    assert len(found) > 1
    assert sum(tile.size for tile in found) == box.size
    for tile in found:
        assert (tile.shape[1] + weight.margins[0]) * weight.bytes_per_cell <= 1 << 20
    assert tiles(problem, plan, box, 1 << 30) == (box,)


def test_large_passes_are_handed_over_past_the_caches() -> None:
    problem = plain((100, 100), FIXED, "float32")
    assert not fitted(problem, Caches(1 << 20, 100 * 100 * 8), problem.grid.box, 1)[0].past_cache
    assert fitted(problem, Caches(1 << 20, 100 * 100 * 8 - 1), problem.grid.box, 1)[0].past_cache


def test_caches_are_read_from_the_system(tmp_path) -> None:
    for number, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("2", "Unified", "2M"), ("3", "Unified", "8M")]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    assert caches(tmp_path) == Caches(2 << 20, 8 << 20)
    assert caches(tmp_path / "absent") == Caches(1 << 20, 32 << 20)

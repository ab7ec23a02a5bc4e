"""Streaming plans against figures worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain, product
from pathlib import Path
from typing import Any, get_args

import pytest
from stream_problems import PLANE, Maker, cube, line, plain, surge, values, yee

from peergrid.codegen.cpu import plan as plan_module
from peergrid.codegen.cpu.plan import stream_plan
from peergrid.codegen.cpu.rows import Later, RowCode
from peergrid.codegen.cpu.tiles import LARGE, tiled_plan, tiles, weigh
from peergrid.codegen.cpu.vectors import vector_code
from peergrid.codegen.cpu.work import Form, Piece, Placement, Tile
from peergrid.codegen.regions import mirror_cuts, mirrored
from peergrid.grid import Boundary, Box, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.wave import Medium, Propagator
from peergrid.runtime.cpu.caches import second_level, tile_cache, update_rate
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, Stage, stencil

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
    assert set(plan.nodes[2].in_place) == {"ez"}  # a source on one cell leaves the row where it is


def test_what_a_field_was_is_not_copied_within_a_pass() -> None:
    plan = stream_plan(surge((9, 9, 9), "fixed", "float32"), 3)
    first, second, last = (node for node in plan.nodes if node.stage == 0)
    assert [node.renamed for node in (first, second, last)] == [{"u.prev"}, {"u.prev"}, set()]
    assert first.after["u.prev"] == first.before["u"]
    assert second.after["u.prev"] == second.before["u"]
    assert last.after["u.prev"].kind == "target"  # the slot is asked for


def test_the_last_values_go_straight_to_where_they_are_wanted() -> None:
    plan = stream_plan(yee((20, 20), ("periodic", "fixed"), "float32"), 1)
    magnetic, electric, source = plan.nodes
    assert {name: home.kind for name, home in magnetic.after.items()} == {"hx": "handover", "hy": "handover"}
    assert electric.after["ez"].kind == "target"
    assert set(source.in_place) == {"ez"}


def test_values_that_go_past_the_cache_wait_in_windows() -> None:
    plan = stream_plan(yee((20, 20), ("periodic", "fixed"), "float32"), 1, past_cache=True)
    assert {home.kind for node in plan.nodes for home in node.after.values()} == {"window"}
    assert plan.depths == (1, 2, 1)  # Hx, Hy (Ez reads the row behind), Ez


def test_large_passes_go_past_the_cache() -> None:
    problem, box = plain((100, 200), FIXED, "float32"), Box((0, 0), (100, 200))
    moved = 4 * 2 * box.size  # one field, read and written
    assert tiled_plan(problem, moved // LARGE, box, 1)[0].past_cache is False
    assert tiled_plan(problem, moved // LARGE - 1, box, 1)[0].past_cache is True


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


def test_tiles_that_no_second_level_holds_fit_the_cache_behind() -> None:
    tilted = Propagator(Medium((256,) * 3, 10.0, 2000.0, epsilon=0.2, delta=0.1, tilt=0.3))
    problem = Problem.of(tilted.advance)
    plan, cache = stream_plan(problem, 1), 1 << 19
    weight = weigh(problem, plan)
    found = tiles(problem, plan, problem.grid.box, cache)
    assert sum(tile.size for tile in found) == problem.grid.box.size
    assert all(tile.shape[1] * tile.shape[2] * weight.bytes_per_cell <= 8 * cache for tile in found)


@pytest.fixture
def cache_root(tmp_path) -> Path:
    for number, (level, size) in enumerate([("1", "48K"), ("2", "2M"), ("3", "32M")]):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(level + "\n")
        (folder / "size").write_text(size + "\n")
    return tmp_path


def test_the_cache_is_read_from_the_system(cache_root) -> None:
    assert second_level(cache_root) == 2 << 20
    assert second_level(cache_root / "absent") == 1 << 20


@pytest.mark.parametrize(
    ("third", "rate", "expected"),
    [
        ("32M", 0.7, 16 << 20),  # eight times the second level, nearly as fast
        ("32M", 0.2, 2 << 20),
        ("24M", 0.7, 2 << 20),  # no room for tiles of all cores
    ],
)
def test_tiles_are_cut_for_a_third_level_that_is_large_and_fast(cache_root, third, rate, expected) -> None:
    (cache_root / "index2" / "size").write_text(third + "\n")
    assert tile_cache(cache_root, lambda size: 1.0 if size <= 2 << 20 else rate) == expected
    assert tile_cache(cache_root / "absent", lambda size: 1.0) == 1 << 20


def test_the_rate_of_updating_an_array_is_measured() -> None:
    assert update_rate(1 << 16) > 0


def reached(tile: Tile, layout: Layout, access: Placement, cells: Box) -> tuple[Box, Box]:
    """The cells that an access reaches, and those that are there; rows of a window count as there."""
    found, storage = cells.shift(access.shift), access.storage
    if storage.kind == "window":
        nodes = [(node, name) for node in tile.plan.nodes for name in node.after]
        parts = [tile.region(node, name) for node, name in nodes if node.after[name].number == storage.number]
        there = reduce(Box.hull, parts).with_axis(0, found.lo[0], found.hi[0])
    else:
        there = tile.box if storage.kind == "target" else layout.local(0, storage.name)
    for axis in range(found.ndim):
        if storage.name and axis not in tile.problem.fields[storage.name].axes:
            there = there.with_axis(axis, found.lo[axis], found.hi[axis])
    return found, there


EDGES = get_args(Boundary)
MIXED = [EDGES[n:] + EDGES[:n] for n in range(3)]
SHAPED: dict[str, tuple[Maker, Index, Sequence[tuple[Boundary, ...]]]] = {
    "line": (line, (23,), [(edge,) for edge in EDGES]),
    **{name: (make, (11, 12), list(product(EDGES, repeat=2))) for name, make in PLANE.items()},
    **{make.__name__: (make, (9, 10, 11), [*((e, e, e) for e in EDGES), *MIXED]) for make in (cube, surge)},
}
"""Problems of every number of axes, with their grids and edges."""


def read_or_written(form: Form) -> list[Placement]:
    """The accesses of a form but for the cache lines that are only asked for: these may lie anywhere."""
    operands = zip(form.code.operands, form.accesses, strict=True)
    return [access for operand, access in operands if not isinstance(operand, Later)]


def forms(tile: Tile, piece: Piece) -> Iterator[tuple[Form, Box]]:
    """Each form of a piece with the cells from which its rows begin."""
    yield piece.single, piece.box
    if piece.several is not None:
        last = piece.box.hi[0] - tile.plan.at_once + 1
        yield piece.several, piece.box.with_axis(0, piece.box.lo[0], last)


@pytest.mark.parametrize("past_cache", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("name", SHAPED)
def test_no_pointer_leaves_its_place(name: str, steps: int, past_cache: bool) -> None:
    """The compiled code checks nothing: every access of every form of every piece must lie where it may."""
    make, shape, edges = SHAPED[name]
    splits = [(1,) * len(shape), *(tuple(1 + (a == axis) for a in range(len(shape))) for axis in range(len(shape)))]
    for boundary, split in product(edges, splits):
        problem = make(shape, boundary, "float32")
        layout = Layout(problem, Partition(problem.grid, split), (steps,))
        tile = Tile(problem, stream_plan(problem, steps, past_cache), layout.partition.owned(0), ())
        for piece in chain.from_iterable(tile.pieces(node) for node in tile.plan.nodes):
            for form, cells in forms(tile, piece):
                for access in (a for a in read_or_written(form) if a.shift):
                    found, there = reached(tile, layout, access, cells)
                    assert there.covers(found), (piece.box, access)


def test_some_pieces_have_forms_of_several_rows() -> None:
    """Otherwise the test above would not look at any."""
    problem = cube((9, 10, 11), FIXED + FIXED[:1], "float32")
    tile = Tile(problem, stream_plan(problem, 1), problem.grid.box, ())
    assert any(piece.several for node in tile.plan.nodes for piece in tile.pieces(node))


@stencil
def carried(u, v):
    v.next[0, 0] = u[0, 0] + v[0, 0]
    u.next[0, 0] = v[0, 0]


def test_many_updates_have_one_row_function_each_for_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of small updates are planned in seconds: none is generated again for each step."""
    grid, made = Grid((40, 20)), list[object]()
    fields = [(grid.field(f"u{k}"), grid.field(f"v{k}")) for k in range(300)]
    updates = [carried(u, v).within(Box.cell((k // 20, k % 20))) for k, (u, v) in enumerate(fields)]
    problem = Problem.of(Stage(updates))

    def counted(*arguments: Any, **options: Any) -> RowCode:
        made.append(arguments)
        return vector_code(*arguments, **options)

    monkeypatch.setattr(plan_module, "vector_code", counted)
    tile = Tile(problem, stream_plan(problem, 4), problem.grid.box, ())
    pieces = [piece for node in tile.plan.nodes for piece in tile.pieces(node)]
    assert len(pieces) > 4 * len(updates)
    assert len(made) <= 3 * len(updates), "in the first, the last and other steps"
    assert problem.stages[0].readers["u7"] == (problem.stages[0].updates[7],)

"""The kernel of the strips along a grid's sides gives the bits of the reference and keeps to what is its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from emulate import advance
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_examples import absorbers, jacobi, radar, relaxation, relaxed_thrice, two_fields, wide_reads, yee
from table_problems import layered

from peergrid.bench.own import shipped_waves
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.blocked2d.strips.kernel import LARGE_BLOCK, left, tiles_in_block
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.nvrtc import Resources, resources
from peergrid.grid import Boundary, Box, Grid
from peergrid.grid.partition import Partition
from peergrid.stencil import Problem

Make = Callable[..., Problem]
ALL = {"stream2d", "edge2d", "layer2d"}


def kernel_of(problem: Problem, steps: int = 3) -> PassKernel:
    return PassKernel(problem, Shape(steps, warps=2), layer_rows=32)


@pytest.mark.parametrize("make", [relaxation, wide_reads, two_fields, yee, layered])
def test_sides_that_hold_still(make: Make) -> None:
    problem = make((80, 230))
    outcome = advance(problem, kernel_of(problem))
    assert outcome.entries == ALL
    assert outcome.agrees


@pytest.mark.parametrize(
    ("make", "boundary"),
    [(yee, ("fixed", "periodic")), (yee, ("periodic", "fixed")), (yee, "periodic"), (radar, ("fixed", "periodic"))],
)
def test_sides_of_periodic_grids(make: Make, boundary: Boundary) -> None:
    problem = make((80, 236), boundary)
    outcome = advance(problem, kernel_of(problem))
    assert "layer2d" in outcome.entries
    assert outcome.agrees


@pytest.mark.parametrize(("make", "steps"), [(relaxation, 8), (relaxation, 9), (relaxation, 12), (wide_reads, 3)])
@pytest.mark.parametrize("boundary", ["periodic", ("fixed", "periodic")])
def test_columns_that_wrap_cost_a_margin_on_both_sides(make: Make, steps: int, boundary: Boundary) -> None:
    problem = make((80, 300), boundary)
    outcome = advance(problem, kernel_of(problem, steps))
    assert "layer2d" in outcome.entries
    assert outcome.agrees


@pytest.mark.nvrtc
@pytest.mark.parametrize(("make", "peer"), [(absorbers, False), (yee, True)])
def test_two_interior_tiles_leave_room_for_one_of_a_strip(make: Make, peer: bool) -> None:
    made = pass_kernel(make((2048, 2048)), 8)
    assert made is not None
    program = PeerKernel.of(made).interior if peer else made.interior
    roomy = replace(made, beside=left(taken(program).registers))
    kernel = PeerKernel.of(roomy) if peer else roomy
    assert kernel.layer is not None
    interior, strips = (taken(program) for program in (kernel.interior, kernel.layer))
    assert interior.spills == strips.spills == 0
    assert 32 * (2 * whole(interior.registers) + whole(strips.registers)) <= H200.registers // 4


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("lossy", [False, True])
def test_interior_tiles_of_waves_spill_nothing(lossy: bool, arch: str) -> None:
    """A spilled value waits for the rows that are being copied: waves without losses made 0.73 of the rate."""
    made = pass_kernel(shipped_waves(2048, 2048, lossy), 8)
    assert made is not None
    assert taken(made.interior, arch).spills == 0


@pytest.mark.nvrtc
@pytest.mark.parametrize(
    ("steps", "norm", "arch"), [(7, "u", "sm_80"), (7, "u", "sm_90"), (8, None, "sm_90"), (8, None, "sm_100")]
)
def test_a_large_block_takes_the_place_of_one_of_interior_tiles(steps: int, norm: str | None, arch: str) -> None:
    made = pass_kernel(relaxation((2048, 4096), ("periodic", "fixed")), steps, norm)
    assert made is not None
    interior = taken(made.interior, arch)
    strips = made.around(interior.registers).layer
    assert strips is not None
    assert strips.tiles_per_block == LARGE_BLOCK
    assert taken(strips, arch).spills == 0
    assert strips.threads * whole(taken(strips, arch).registers) <= made.interior.threads * whole(interior.registers)


@pytest.mark.parametrize(
    ("registers", "room"),
    [(193, (112, 104)), (200, (112, 104)), (189, (128, 104)), (207, (96, 96)), (216, (80, 80)), (128, (80, 80))],
)
def test_registers_left_beside_interior_tiles(registers: int, room: tuple[int, int]) -> None:
    assert (left(registers), left(registers, 3)) == room


@pytest.mark.parametrize(
    ("registers", "tiles"), [(193, 1), (216, 1), (217, LARGE_BLOCK), (120, LARGE_BLOCK), (128, LARGE_BLOCK)]
)
def test_blocks_of_strips_are_large_where_interior_tiles_leave_no_room(registers: int, tiles: int) -> None:
    assert tiles_in_block(registers) == tiles


@pytest.mark.parametrize(("size", "higher"), [(2048, False), (4096, True), (8192, False), (17408, False)])
def test_interior_tiles_are_higher_where_all_begin_at_once_by_it(size: int, higher: bool) -> None:
    """A block of strips takes the room of two blocks; that costs small grids more than rows that tiles make more."""
    problem, slots = Problem.of(jacobi(Grid((size, size)).field("u"))), 4 * 528
    usual = pass_kernel(problem, 8)
    assert usual is not None
    box, made = problem.grid.box, usual.around(116)
    assert made.displaced == 2 * usual.shape.warps
    interior, _, strips = made.shorter(box, 528, slots).launches(box, slots)
    alone = replace(made, displaced=0).shorter(box, 528, slots).launches(box, slots)[0]
    assert (len(interior.regions) < len(alone.regions)) == higher
    assert (len(interior.regions) <= slots - made.displaced * strips.blocks) == (size <= 4096)
    assert usual.around(200).displaced == 0, "strips find room beside two blocks of radar"


@pytest.mark.parametrize(
    ("make", "boundary", "norm"),
    [(absorbers, "fixed", None), (relaxation, ("periodic", "fixed"), None), (relaxation, ("periodic", "fixed"), "u")],
)
def test_tiles_of_large_blocks(make: Make, boundary: Boundary, norm: str | None) -> None:
    problem = absorbers((160, 420)) if make is absorbers else make((110, 300), boundary)
    small = replace(kernel_of(problem), norm=norm, boundary_rows=24)
    large = replace(small, tiles_per_block=LARGE_BLOCK)
    for kernel, warps in ((small, 1), (large, LARGE_BLOCK)):
        assert kernel.layer is not None
        assert (kernel.layer.threads, kernel.layer.tiles_per_block) == (32 * warps, warps)
        along = {strip.columns for strip in kernel.strips if strip.axis == 0}
        assert along == ({16 if kernel is small else 112} if norm or make is absorbers else set())
    outcomes = [advance(problem, kernel) for kernel in (small, large)]
    assert all(outcome.agrees and "layer2d" in outcome.entries for outcome in outcomes)
    if norm:
        assert np.array_equal(*(outcome.norm_rows for outcome in outcomes))  # type: ignore[arg-type]


def test_what_wraps_is_a_strip_for_a_box_without_interior_tiles() -> None:
    """As the boundary region of a device that has the last rows of a grid, where these are no whole block of a norm."""
    problem = relaxation((110, 300), ("periodic", "fixed"))
    kernel = replace(kernel_of(problem), norm="u", boundary_rows=24)
    rows = {
        launch.program.entry: int(launch.extents[:, 1].sum()) for launch in kernel.launches(Box((96, 0), (110, 300)), 4)
    }
    assert set(rows) == {"edge2d", "layer2d"}
    assert rows["edge2d"] <= 24 < 270 <= rows["layer2d"]


def test_interior_tiles_of_peer_kernels_make_room_for_a_strip_along_axis_0() -> None:
    problem, slots = absorbers((2048, 2048)), 7 * 18  # of 18 strips
    linked = PeerKernel.of(PassKernel(problem, Shape(8)))
    boxes = [problem.grid.box.with_axis(0, lo, hi) for lo, hi in ((0, 600), (600, 1200))]
    for kernel, (end, middle) in ((linked, (18 * 5, 18 * 7)), (linked.made, (18 * 7, 18 * 7))):
        assert [len(kernel.launches(box, slots)[0].regions) for box in boxes] == [end, middle]


@pytest.mark.parametrize(("beside", "pointers"), [(112, False), (120, True)])
def test_tiles_of_strips_keep_pointers_where_ample_registers_are_left_for_them(beside: int, pointers: bool) -> None:
    kernel = replace(PassKernel(absorbers((2048, 2048)), Shape(8)), beside=beside)
    assert kernel.layers is not None
    assert kernel.layer is not None
    assert all(part.runs == pointers for part in kernel.layers.parts)
    assert f"__maxnreg__({beside})" in kernel.layer.source


def taken(program: Program, arch: str = "sm_90") -> Resources:
    return _compiled(program.source, arch)[program.entry]


@cache
def _compiled(source: str, arch: str) -> Mapping[str, Resources]:
    return resources(source, arch)


def whole(registers: int) -> int:
    """Registers as they are given to a warp's threads."""
    return -(-registers // 8) * 8


def test_sides_that_reflect_have_no_strips() -> None:
    problem = yee((80, 230), "reflecting")
    assert kernel_of(problem).layer is None


@pytest.mark.parametrize(("depth", "dtype"), [(4, "float32"), (4, "float64"), (30, "float32")])
def test_absorbers_on_all_sides(depth: int, dtype: str) -> None:
    problem = absorbers((160, 420), depth, dtype)
    outcome = advance(problem, kernel_of(problem, 4))
    assert outcome.entries == ALL
    edge = next(launch for launch in outcome.launches if launch.program.entry == "edge2d")
    assert edge.extents[:, :2].prod(axis=1).sum() < 5 * (depth + 20) ** 2  # corners alone
    assert outcome.agrees


@pytest.mark.parametrize("tiles", [1, LARGE_BLOCK])
@pytest.mark.parametrize(
    ("parts", "device"), [((3, 1), 0), ((3, 1), 1), ((3, 1), 2), ((1, 2), 0), ((2, 2), 3), ((1, 5), 2), ((2, 6), 0)]
)
def test_absorbers_on_parts_of_a_grid(parts: tuple[int, int], device: int, tiles: int) -> None:
    """The last two are narrower than interior tiles."""
    problem = absorbers((140, 420))
    outcome = advance(problem, replace(kernel_of(problem, 4), tiles_per_block=tiles), parts, device)
    assert "layer2d" in outcome.entries
    assert outcome.agrees


@pytest.mark.parametrize("cell", [(2, 150), (60, 3), (108, 150), (60, 297), (60, 12)])
def test_a_source_and_a_receiver_in_a_strip(cell: tuple[int, int]) -> None:
    problem = absorbers((110, 300), sources=(cell,), receivers=(cell, (cell[0] + 1, cell[1] + 1)))
    outcome = advance(problem, kernel_of(problem))
    assert outcome.entries == ALL
    assert outcome.agrees
    assert np.isfinite(outcome.device.traces[:, 3:]).all()


FIXED: Boundary = "fixed"
ROWS_WRAP: Boundary = ("periodic", "fixed")


@pytest.mark.parametrize(
    ("make", "boundary", "norm", "steps", "columns"),
    [
        (relaxation, FIXED, "u", 3, {1}),
        (relaxation, ROWS_WRAP, "u", 7, {1}),
        (relaxation, FIXED, "u", 12, {1, 2}),
        (relaxed_thrice, FIXED, "u", 2, {1}),
        (wide_reads, FIXED, "u", 5, {2, 4}),
        (two_fields, FIXED, "v", 3, {1}),
        (yee, FIXED, "Ez", 3, {1}),
    ],
)
def test_norms_are_those_of_boundary_tiles(
    make: Make, boundary: Boundary, norm: str, steps: int, columns: set[int]
) -> None:
    problem = make((110, 300), boundary)
    kernel = replace(kernel_of(problem, steps), norm=norm, boundary_rows=24)
    assert kernel.layers is not None
    assert {part.shape.columns for part in kernel.layers.parts} == columns
    assert_same_norms(problem, kernel)


@pytest.mark.parametrize("cell", [(2, 150), (60, 3), (108, 150), (60, 297), (60, 12)])
def test_norms_beside_a_source_and_a_receiver_in_a_strip(cell: tuple[int, int]) -> None:
    problem = absorbers((110, 300), sources=(cell,), receivers=(cell, (cell[0] + 1, cell[1] + 1)))
    assert_same_norms(problem, replace(kernel_of(problem), norm="Ez", boundary_rows=24))


def assert_same_norms(problem: Problem, kernel: PassKernel) -> None:
    outcome, edges = (advance(problem, made) for made in (kernel, replace(kernel, has_strips=False)))
    assert outcome.entries == ALL
    assert outcome.agrees
    assert np.isfinite(outcome.norm_rows).all()  # type: ignore[arg-type]
    assert np.array_equal(outcome.norm_rows, edges.norm_rows)  # type: ignore[arg-type]


def test_an_absorber_on_one_side_and_a_source_in_a_corner() -> None:
    problem = radar((90, 260))
    outcome = advance(problem, kernel_of(problem, 4))
    assert outcome.entries == ALL
    assert outcome.agrees


@settings(max_examples=20, deadline=None)
@given(st.integers(60, 200), st.integers(200, 300), st.integers(1, 8), st.integers(1, 3), st.data())
def test_every_cell_has_one_tile_beside_the_interior_ones(
    rows: int, columns: int, depth: int, devices: int, data: st.DataObject
) -> None:
    source = data.draw(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1)))
    problem = absorbers((rows, columns), depth, sources=(source,), receivers=(source,))
    kernel, partition = kernel_of(problem), Partition(problem.grid, (devices, 1))
    covered = np.zeros((rows, columns), int)
    for device in range(devices):
        for launch in kernel.launches(partition.owned(device), 4, (0,)):
            for tile in launch.regions:
                box = Box(tuple(map(int, tile["lo"][:2])), tuple(map(int, tile["hi"][:2])))
                covered[box.lo[0] : box.hi[0], box.lo[1] : box.hi[1]] += 1
                assert launch.program.entry == "edge2d" or source not in box
                assert launch.program.entry == "stream2d" or not box.empty
    assert covered.min() == 1

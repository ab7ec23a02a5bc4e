"""3D kernels that stream through shared memory give the bits of the reference, on all boundaries and parts of grids."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from emulate import Device, compiled, pointers
from host_maps import tensor_map
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_problems import absorbing, absorbing_vacuum
from runtime_problems import heat_3d
from stream_examples import random
from stream_examples_3d import diffusion, profiles, radar, two_fields, wide_reads, yee
from table_problems import media

from peergrid.bench.problems import noisy
from peergrid.codegen.cuda.choose.one_step3d import one_pass
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import scratch_fields
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.codegen.cuda.stream3d.correction_text import rounds
from peergrid.codegen.cuda.stream3d.corrections import corrections
from peergrid.codegen.cuda.stream3d.kernel import AWAITED, PACE, WRAPS, Parts, StreamKernel, in_one
from peergrid.codegen.cuda.stream3d.tensors import Stored, copied, tensors
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.costs.machines import machine_named
from peergrid.grid import Box, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.fdtd3d import SIDES, VACUUM, Absorber, Domain, Medium, Slab, build
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, Stage, stencil, write_box

Make = Callable[..., Problem]
SMALL = replace(H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0)
FEW = StreamShape(columns=32, rows=8, rows_each=2, ahead=2)


@stencil
def wave(u: Any, prev: Any, m: Any, p: Any, q: Any) -> None:
    """Radius 4 along each axis, and profiles along all of them."""
    total = -8.0 * u[0, 0, 0]
    for k in range(1, 5):
        total = total + (u[k, 0, 0] + u[-k, 0, 0] + u[0, k, 0] + u[0, -k, 0] + u[0, 0, k] + u[0, 0, -k]) / k
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - prev[0, 0, 0] + m[0, 0, 0] * (p[0, 1, 0] * total) + q[0, 0, -1] - q[1, 0, 0]
    prev.next[0, 0, 0] = u[0, 0, 0]


def waves(shape: Index, boundary: Any = "fixed", dtype: Any = "float32") -> Problem:
    grid = Grid(shape, boundary, dtype)
    p = grid.profile("p", 1, np.linspace(0.1, 0.5, shape[1]))
    q = grid.profile("q", 2, np.linspace(0.2, 0.4, shape[2]))
    return Problem.of(wave(random(grid, "u", 1), random(grid, "prev", 2), random(grid, "m", 3), p, q))


def absorbing_radar(cells: Index, conductivity: float) -> Problem:
    """Radar in two media with absorbers on all sides."""
    ids = np.zeros((6, *(n + 1 for n in cells)), np.uint8)
    ids[:3, :, :, : cells[2] // 2] = 1
    absorber = Absorber(tuple((side, Slab(5)) for side in SIDES))
    media = VACUUM, Medium("soil", 4.0, conductivity)
    return noisy(build(Domain(cells, (0.002,) * 3, 3e-12, 9, media, ids, absorber=absorber)).problem)


def advance(problem: Problem, shape: StreamShape, steps: int = 1, parts: Index = (1, 1, 1), device: int = 0,
            slots: int = 4, kernel: StreamKernel | None = None) -> tuple[Device, Box]:  # fmt: skip
    """One pass by the kernel, on the cells that it serves, and by the reference on all."""
    kernel = kernel or in_one(problem, steps, shape)
    one = Device(Layout(problem, Partition(problem.grid, parts), (steps,)), device, 9)
    for name in problem.state:  # both slots have the cells that nobody writes
        before, after = one.padded[name]
        after.array[...] = before.array
    one.reference(0, 3, steps)
    for name in problem.state:  # no ghost cells are read across edges that the kernel wraps
        before, _ = one.padded[name]
        for axis, cells in enumerate(kernel.wraps(one.box)):
            if cells:
                first = -before.corner[axis]
                for beyond in (slice(0, first), slice(first + cells, None)):
                    before.array[(slice(None),) * axis + (beyond,)] = np.nan
    (plain,) = kernel.parts(one.box, SMALL).interior
    given = one.arguments(0, 3, scratch_fields(problem))
    wraps, none = np.array([(kernel.wraps(one.box),)], WRAPS), np.zeros(1, AWAITED)
    for number, launch in enumerate(kernel.launches(plain, [slots] * len(kernel.stages))):
        blocks = min(slots, launch.blocks) if shape.lead else launch.blocks
        clocks = kernel.clocks(number, launch, blocks)
        counters = np.zeros(clocks + 1, np.uint32)
        pace = np.array((counters.ctypes.data, shape.lead, clocks), PACE)
        given["lo"], given["hi"] = plain.lo, plain.hi
        given["regions"], given["count"] = launch.regions.ctypes.data, len(launch.regions)
        more, structs = ["Pace", "Wraps", "Awaited"], [given, pace, wraps, none]
        if kernel.shapes[number].tensor:
            more.append("Tensors")
            structs += tensors(kernel.pipelines[number], given, stored(one).__getitem__, tensor_map)
        fault = compiled(launch.program, more)(blocks, 1, pointers(structs))
        assert fault is None, fault
        assert not counters.any()
    return one, plain


def stored(device: Device) -> dict[str, Stored]:
    padded = {name: blocks[0] for name, blocks in device.padded.items()}
    return {name: Stored(one.corner, *one.array.shape[:2]) for name, one in padded.items()}


def agrees(problem: Problem, one: Device, plain: Box) -> bool:
    """Whether the cells that the kernel serves have the bits of the reference."""
    same = []
    for name in problem.state:
        cells = write_box(problem, name, plain)
        expected, found = one.memory.block(name, 1).view(cells), one.padded[name][1].view(cells)
        same.append(np.array_equal(expected, found, equal_nan=True))
    return all(same)


def check(problem: Problem, shape: StreamShape, steps: int = 1, **more: Any) -> None:
    one, plain = advance(problem, shape, steps, **more)
    assert plain.size > 0
    assert agrees(problem, one, plain)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", ("periodic", "fixed", "reflecting")])
@pytest.mark.parametrize("make", [diffusion, profiles, two_fields, yee, waves, media])
def test_boundaries(make: Make, boundary: Any) -> None:
    check(make((40, 38, 70), boundary), FEW)


@pytest.mark.parametrize("parts", [((1, 1, 1), 0), ((2, 1, 1), 1), ((1, 2, 2), 3)])
def test_layers_in_the_stage_of_the_usual_update_are_left_over(parts: tuple[Index, int]) -> None:
    problem = absorbing((40, 38, 70))
    one, plain = advance(problem, FEW, parts=parts[0], device=parts[1])
    assert plain == one.box & Box((4, 4, 4), (37, 35, 67))
    assert in_one(problem, 1, FEW).parts(one.box, SMALL) == Parts((plain,), one.box - plain, ())
    assert agrees(problem, one, plain)


@pytest.mark.parametrize(
    "shape",
    [FEW, StreamShape(68, 10, 2, 1), StreamShape(36, 8, 2, 1), StreamShape(68, 10, 2, 1, tensor=True, hints=True)],
)
@pytest.mark.parametrize("parts", [((1, 1, 1), 0), ((2, 1, 1), 1), ((1, 2, 2), 3)])
@pytest.mark.parametrize("conductivity", [0.0, 0.01])
def test_layers_at_the_ends_of_rows_follow_the_usual_updates(
    conductivity: float, parts: tuple[Index, int], shape: StreamShape
) -> None:
    problem = absorbing_radar((50, 48, 70), conductivity)
    one, plain = advance(problem, shape, parts=parts[0], device=parts[1])
    assert (plain.lo[2], plain.hi[2]) == (one.box.lo[2], one.box.hi[2])
    assert agrees(problem, one, plain)


@pytest.mark.parametrize("shape", [FEW, StreamShape(68, 10, 2, 1, tensor=True, hints=True)])
def test_layers_are_stored_once(shape: StreamShape) -> None:
    """Kernels of one step that run at the same time store their last values, too, and read them: usual updates must
    not store others in between. Here nothing is stored behind these.
    """
    problem = absorbing_radar((50, 48, 70), 0.01)
    kernel = in_one(problem, 1, shape)
    (made,) = kernel.programs
    text = expanded(made.source)
    assert text.count(STORED) == 1
    with patch.dict(vars(kernel), programs=(replace(made, source=text.replace(STORED, ";")),)):
        one, plain = advance(problem, shape, kernel=kernel)
    layers = [(update, name) for some in corrections(problem, 1) for update in some for name in update.targets]
    changed = [(name, update.box & plain) for update, name in layers if "memory" not in name]
    assert len(changed) == 8
    for name, cells in changed:
        before, after = (block.view(cells) for block in one.padded[name])
        assert cells.size > 0
        assert np.array_equal(before, after)
    assert not agrees(problem, one, plain)


def test_blocks_with_layers_at_the_ends_of_rows_are_not_in_step() -> None:
    """Without layers planes are asked for earlier, too."""
    for problem, layered in ((absorbing_radar((50, 48, 70), 0.01), True), (yee((40, 38, 70)), False)):
        kernel = one_pass(problem)
        assert kernel is not None
        (shape,), (rings,) = kernel.shapes, kernel.pipelines
        assert rings.layered == layered
        assert (shape.lead == 0, shape.ahead == 1) == (layered,) * 2


@pytest.mark.parametrize(("size", "tile", "both"), [(192, 96, 2), (256, 128, 2), (320, 160, 1), (512, 256, 2)])
def test_tiles_with_layers_divide_rows_and_threads_have_one_cell_of_a_layer(size: int, tile: int, both: int) -> None:
    """both: cells of a thread, if tiles had the layers of both ends."""
    kernel = one_pass(absorbing_vacuum((size,) * 3))
    assert kernel is not None
    (rings,) = kernel.pipelines
    columns = [(first, first + tile) for first in range(0, size, tile)]
    assert rings.shape.columns == tile + 4
    assert rounds(rings, columns) == 1
    assert rounds(rings, [(0, size)]) == both


@pytest.mark.parametrize("shape", [(21, 40, 60), (40, 21, 60), (21, 21, 21), (40, 60, 21)])
def test_grids_that_are_nearly_all_layers_do_not_stream(shape: Index) -> None:
    problem = absorbing_vacuum(shape)
    kernel = one_pass(problem)
    assert kernel is not None
    assert kernel.parts(problem.grid.box) == Parts((), (problem.grid.box,), ())


@stencil
def mixed(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.1 * (u[0, 0, 1] + v[0, 1, 0])
    v.next[0, 0, 0] = 0.5 * v[0, 0, 0] + 0.1 * (v[0, 0, -1] - u[1, 0, 0])


@stencil
def added_to(u: Any, v: Any) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] + 0.3 * v[0, 0, 0]


def test_layers_that_read_each_other_are_left_to_other_kernels() -> None:
    grid = Grid((40, 38, 70), "fixed", "float32")
    u, v, layer = random(grid, "u", 1), random(grid, "v", 2), Box((0, 0, 0), (40, 38, 5))
    problem = Problem.of([mixed(u, v), Stage((added_to(u, v).within(layer), added_to(v, u).within(layer)))])
    assert not any(corrections(problem, 1))
    check(problem, FEW)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_far_and_lopsided_reads(boundary: str) -> None:
    check(wide_reads((25, 27, 70), boundary), FEW)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize(("make", "steps"), [(diffusion, 3), (profiles, 3), (two_fields, 2), (yee, 2), (media, 2)])
def test_several_steps(make: Make, steps: int, boundary: str) -> None:
    check(make((20, 23, 75), boundary), StreamShape(64, 16, 2, ahead=2), steps)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize(
    ("make", "steps", "shape"),
    [
        (diffusion, 3, StreamShape(64, 16, 4, ahead=2, own=True, unroll=3)),
        (diffusion, 1, StreamShape(64, 16, 4, ahead=2, own=True, unroll=3, around=True)),
        (two_fields, 1, StreamShape(48, 16, 2, ahead=2, own=True, around=True)),
        (diffusion, 3, StreamShape(64, 16, 4, ahead=3, own=True, unroll=3, split_barrier=True)),
        (diffusion, 3, StreamShape(64, 16, 4, ahead=1, own=True, unroll=3, split_barrier=True)),
        (diffusion, 2, StreamShape(128, 12, 3, ahead=3, own=True, unroll=3, split_barrier=True)),
        (two_fields, 2, StreamShape(48, 16, 2, ahead=2, own=True, unroll=3, split_barrier=True)),
        (diffusion, 2, StreamShape(48, 16, 2, ahead=2, own=True)),
        (two_fields, 2, StreamShape(64, 16, 2, ahead=1, own=True, unroll=2)),
        (yee, 2, StreamShape(64, 16, 2, ahead=2, own=True, unroll=2)),
        (yee, 2, StreamShape(48, 16, 2, ahead=2, own=True)),
        (wide_reads, 2, StreamShape(64, 24, 3, ahead=2, own=True)),
        (waves, 1, StreamShape(64, 16, 1, ahead=2, own=True)),
        (diffusion, 3, StreamShape(72, 12, 4, ahead=1, own=True, unroll=3)),
        (yee, 2, StreamShape(36, 12, 2, ahead=1, own=True)),
    ],
)
def test_planes_of_own_cells_in_registers(make: Make, steps: int, shape: StreamShape, boundary: str) -> None:
    """Also where a warp ends within a row, and where the last warp has more threads than the tile cells."""
    check(make((40, 38, 75), boundary), shape, steps)


def test_threads_keep_profiles_along_rows_and_columns() -> None:
    """As far as there are registers: of the numbers along axis 0 each plane has another."""
    problem = profiles((40, 38, 70))
    (program,) = in_one(problem, 1, FEW).programs
    read = re.findall(r"(Along|Profile)<\d+, (\d), 0>\{\}", program.source)
    assert read == [("Along", "0"), ("Profile", "1"), ("Profile", "2")]
    (program,) = in_one(problem, 1, replace(FEW, rows=32, rows_each=16)).programs
    assert re.findall(r"Profile<\d+, (\d), 0>\{\}", program.source) == ["1"]


@stencil
def conducting(u: Any, k: Any) -> None:
    along = u[1, 0, 0] - u[-1, 0, 0]
    u.next[0, 0, 0] = u[0, 0, 0] + 0.1 * (along + k[0, 1, 0] * u[0, 1, 0] - k[0, -1, 0] * u[0, -1, 0])


def test_no_copies_come_where_the_last_step_reads_coefficients_of_others() -> None:
    grid = Grid((40, 38, 75))
    problem = Problem.of(conducting(random(grid, "u", 1), random(grid, "k", 2)))
    check(problem, StreamShape(128, 12, 3, ahead=2, own=True, unroll=3, split_barrier=True), 2)


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from([diffusion, two_fields, yee, waves, media]),
    st.sampled_from([(32, 8, 2), (64, 8, 1), (32, 16, 4), (64, 12, 3)]),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([0, 3]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([("fixed", "fixed", "periodic"), ("periodic", "reflecting", "fixed")]),
    st.sampled_from([((1, 1, 1), 0), ((2, 1, 1), 1), ((1, 2, 2), 3), ((3, 1, 1), 1)]),
)
def test_shapes(
    make: Make, tile: Index, ahead: int, own: bool, lead: int, dtype: str, boundary: Any, part: tuple[Index, int]
) -> None:
    shape = StreamShape(*tile, ahead=ahead, own=own, lead=lead)
    check(make((60, 41, 83), boundary, dtype), shape, parts=part[0], device=part[1])


def test_cells_that_other_updates_reach_are_left_over() -> None:
    problem = radar((18, 20, 40))
    kernel = in_one(problem, 1, FEW)
    one, plain = advance(problem, FEW)
    parts = kernel.parts(one.box, SMALL, one.recorded)
    assert sum(box.size for box in (*parts.interior, *parts.beside)) == one.box.size
    heard = [problem.receivers[number].cell for number in one.recorded]
    assert all(any(cell in box for box in (*parts.beside, *parts.after)) for cell in heard)
    for box in parts.after:  # made anew once the kernel is done
        for name in problem.state:
            cells = write_box(problem, name, box)
            one.padded[name][1].view(cells)[...] = one.memory.block(name, 1).view(cells)
    assert agrees(problem, one, plain)


@settings(deadline=None, max_examples=12)
@given(
    st.sampled_from([diffusion, two_fields, yee, media]),
    st.sampled_from([(64, 16, 2), (68, 12, 4), (32, 16, 1)]),
    st.integers(2, 3),
    st.integers(1, 3),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([("fixed", "fixed", "periodic"), ("periodic", "reflecting", "fixed")]),
    st.sampled_from([((1, 1, 1), 0), ((2, 1, 1), 1), ((1, 2, 2), 3), ((3, 1, 1), 1)]),
)
def test_several_steps_of_parts_of_a_grid(
    make: Make, tile: Index, steps: int, unroll: int, dtype: str, boundary: Any, part: tuple[Index, int]
) -> None:
    """Boxes whose columns begin anywhere, with ghost cells on some sides and edges on the others."""
    shape = StreamShape(*tile, ahead=2, own=True, unroll=unroll)
    check(make((60, 41, 83), boundary, dtype), shape, steps, parts=part[0], device=part[1])


@stencil
def half_step(u: Any, v: Any, g: Any) -> None:
    g.next[0, 0, 0] = u[1, 0, 0] - u[0, -1, 0] + v[0, 0, 2]


@stencil
def other_half(u: Any, v: Any, g: Any) -> None:
    v.next[0, 0, 0] = u[0, 0, 0] + 0.5 * (g[0, 0, 1] - g[-1, 0, 0]) - v[0, 0, 0]


def turns(shape: Index, boundary: Any = "fixed") -> Problem:
    """Fields that change places from stage to stage, and one that is written twice."""
    grid = Grid(shape, boundary)
    u, v, g = (random(grid, name, k) for k, name in enumerate("uvg"))
    return Problem.of([half_step(u, v, g), other_half(u, v, g), half_step(v, u, g), other_half(v, u, g)])


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize(
    ("make", "stages"), [(yee, ((0,), (1,))), (turns, ((0,), (1,), (2,), (3,))), (turns, ((0, 1), (2, 3)))]
)
def test_stages_in_launches_of_their_own(make: Make, stages: tuple[tuple[int, ...], ...], boundary: str) -> None:
    problem = make((40, 22, 70), boundary)
    kernel = StreamKernel(problem, 1, (FEW,) * len(stages), stages)
    check(problem, FEW, kernel=kernel)
    check(problem, FEW, kernel=kernel, parts=(2, 1, 1), device=1)


@stencil
def reacting(u: Any, v: Any) -> None:
    """Two fields, each of which diffuses, and the other as a source."""
    for f, other in ((u, v), (v, u)):
        around = f[-1, 0, 0] + f[1, 0, 0] + f[0, -1, 0] + f[0, 1, 0] + f[0, 0, -1] + f[0, 0, 1]
        f.next[0, 0, 0] = f[0, 0, 0] + 0.1 * (around - 6 * f[0, 0, 0]) + 0.1 * other[0, 0, 0]


@stencil
def moved(u: Any, v: Any, w: Any) -> None:
    """Each value comes from one cell alone."""
    u.next[0, 0, 0], v.next[0, 0, 0], w.next[0, 0, 0] = v[1, 0, 1], w[0, -1, 1], u[-1, 1, 0]


def large(make: str, shape: Index) -> StreamKernel:
    """The kernel of a problem whose fields have no values of their own."""
    grid = Grid(shape)
    if make == "heat":
        problem = Problem.of(heat_3d(grid.field("u"), 0.1))
    elif make == "reacting":
        problem = Problem.of(reacting(grid.field("u"), grid.field("v")))
    elif make == "moved":
        problem = Problem.of(moved(*(grid.field(name) for name in "uvw")))
    else:
        p, q = (grid.profile(name, axis, np.ones(shape[axis])) for name, axis in (("p", 1), ("q", 2)))
        problem = Problem.of(wave(*(grid.field(name) for name in ("u", "prev", "m")), p, q))
    kernel = one_pass(problem)
    assert kernel is not None
    return kernel


@pytest.mark.parametrize(
    ("make", "shape", "streams"),
    [
        ("heat", (512, 512, 512), True),
        ("heat", (192, 192, 192), False),
        ("heat", (128, 128, 128), False),
        ("wave", (256, 256, 256), True),
        ("wave", (192, 192, 192), True),
        ("wave", (128, 128, 128), False),
        ("reacting", (256, 256, 256), True),
        ("reacting", (128, 128, 128), False),
        ("moved", (512, 512, 512), False),  # no value is loaded twice
    ],
)
def test_boxes_stream_where_that_saves_time(make: str, shape: Index, streams: bool) -> None:
    """As measured: see docs/measurements/streaming-3d.md."""
    kernel = large(make, shape)
    assert bool(kernel.parts(kernel.problem.grid.box, H200).interior) is streams


@pytest.mark.parametrize(("make", "streams"), [("heat", False), ("wave", True)])
def test_few_reads_do_not_stream_where_memory_is_slow(make: str, streams: bool) -> None:
    """As measured on an H100."""
    kernel = large(make, (512, 512, 512))
    assert bool(kernel.parts(kernel.problem.grid.box, GpuModel.of(machine_named("h100-x8"))).interior) is streams


def test_cells_that_no_update_writes_do_not_stream() -> None:
    kernel = large("heat", (64, 64, 64))
    box = kernel.problem.grid.box
    assert kernel.parts(box, SMALL).interior
    for axis in (1, 2):
        face = box.with_axis(axis, 0, 1)
        assert kernel.parts(face, SMALL) == Parts((), (face,), ())


TENSOR = StreamShape(columns=32, rows=8, rows_each=2, ahead=2, tensor=True)


@pytest.mark.parametrize(
    "boundary", ["fixed", "periodic", ("periodic", "fixed", "reflecting"), ("fixed", "periodic", "fixed")]
)
@pytest.mark.parametrize("make", [diffusion, profiles, two_fields, yee, waves, media])
def test_tensor_copies(make: Make, boundary: Any) -> None:
    problem = make((40, 38, 70), boundary)
    check(problem, replace(TENSOR, ahead=3, lead=2))
    check(problem, TENSOR, parts=(2, 2, 1), device=3)


SPLIT = StreamShape(64, 16, 4, ahead=3, own=True, unroll=3, split_barrier=True)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", ("periodic", "fixed", "reflecting")])
@pytest.mark.parametrize(
    ("make", "steps", "shape"),
    [
        (diffusion, 2, replace(SPLIT, columns=136, rows=12, rows_each=3)),
        (diffusion, 3, SPLIT),
        (diffusion, 4, replace(SPLIT, rows_each=2)),
        (diffusion, 3, replace(SPLIT, lead=2)),
        (diffusion, 3, replace(SPLIT, ahead=2, split_barrier=False)),
        (two_fields, 2, replace(SPLIT, columns=48, rows_each=2, split_barrier=False)),
        (profiles, 3, SPLIT),
        (yee, 2, StreamShape(64, 16, 2, ahead=2, own=True)),
        (yee, 3, StreamShape(36, 12, 1, ahead=3, own=True)),
        (yee, 4, StreamShape(64, 12, 1, ahead=2, own=True)),
        (waves, 2, StreamShape(64, 24, 1, ahead=2, own=True, unroll=3)),
    ],
)
def test_several_steps_by_tensor_copies(make: Make, steps: int, shape: StreamShape, boundary: Any) -> None:
    """Cells beyond periodic edges have the time to come behind the rest of their planes."""
    problem, shape = make((40, 38, 76), boundary), replace(shape, tensor=True, hints=True)
    (rings,) = in_one(problem, steps, shape).pipelines
    assert rings.split_barrier == shape.split_barrier
    assert copied(rings)
    check(problem, shape, steps)
    check(problem, shape, steps, parts=(2, 2, 1), device=3)


@pytest.mark.parametrize(("shape", "ahead"), [(SPLIT, 1), (replace(SPLIT, split_barrier=False), 1)])
def test_fixed_edges_need_planes_one_clock_ahead(shape: StreamShape, ahead: int) -> None:
    check(diffusion((40, 38, 76)), replace(shape, ahead=ahead, tensor=True), 3)


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize("shape", [shape for shape in H200.streams.several if shape.tensor])
def test_tensor_copies_in_the_shapes_that_are_chosen(shape: StreamShape, boundary: str) -> None:
    problem, shape = yee((20, 38, 268), boundary), replace(shape, columns=shape.columns + 4)
    (rings,) = in_one(problem, 1, shape).pipelines
    assert copied(rings) == (boundary == "fixed" or shape.ahead > 1)
    check(problem, shape if copied(rings) else replace(shape, tensor=False))


STORED = "block_of<M::FIELD, M::VERSION>(stream.a)[memory<M::FIELD>()] = value;"


def soil(shape: Index) -> Problem:
    """Of so many planes between its absorbers."""
    return absorbing_radar((shape[0] + 12, *shape[1:]), 0.01)


STREAMS = {
    waves: H200.streams.far, two_fields: H200.streams.few, yee: H200.streams.several, diffusion: H200.streams.many,
    soil: H200.streams.layered,
}  # fmt: skip


@pytest.mark.parametrize(("make", "shape"), [(make, shape) for make, shapes in STREAMS.items() for shape in shapes])
def test_all_shapes_that_can_be_chosen(make: Make, shape: StreamShape) -> None:
    """Blocks with layers at the ends of rows do not keep in step."""
    problem, shape = make((24, 50, 140)), replace(shape, columns=shape.columns + 4 * (make in (yee, soil)))
    (rings,) = in_one(problem, 1, shape).pipelines
    shape = replace(shape, lead=0) if rings.layered else shape
    check(problem, shape if not shape.tensor or copied(rings) else replace(shape, tensor=False))


@pytest.mark.parametrize(("reach", "lead"), [(4, 2), (8, 0)])
def test_tiles_with_wide_borders_do_not_keep_in_step(reach: int, lead: int) -> None:
    def farther(u: Any) -> None:
        u.next[0, 0, 0] = u[0, reach, 0] + u[0, -reach, 0] + u[0, 0, reach] + u[0, 0, -reach]

    made = Problem.of(stencil(farther)(Grid((512, 512, 512)).field("u")))
    kernel = one_pass(made, replace(H200, streams=replace(H200.streams, far=H200.streams.far[1:])))
    assert kernel is not None
    assert kernel.pipelines[0].border == (32 + 2 * reach) * (64 + 2 * reach) / (32 * 64)
    assert kernel.shapes[0].lead == lead


@stencil
def quotients(u: Any, d: Any) -> None:
    """Divisors that are 0 beside the grid."""
    sides = [(d[0, 0, 0] + d[at], u[at]) for at in ((1, 0, 0), (0, -1, 0), (0, 0, 1))]
    u.next[0, 0, 0] = sum(other / divisor for divisor, other in sides)


def quotient(shape: Index, boundary: Any = "fixed") -> Problem:
    grid = Grid(shape, boundary)
    d = grid.field("d", init=np.random.default_rng(5).uniform(1, 2, shape).astype(np.float32))
    return Problem.of(quotients(random(grid, "u", 1), d))


@pytest.mark.parametrize("boundary", ["fixed", "periodic", ("periodic", "fixed", "reflecting")])
@pytest.mark.parametrize("shape", [FEW, TENSOR, replace(FEW, own=True, unroll=3)])
@pytest.mark.parametrize("steps", [1, 2])
def test_threads_without_cells_do_not_divide(shape: StreamShape, steps: int, boundary: Any) -> None:
    problem = quotient((40, 38, 76), boundary)
    if any(problem.grid.periodic) and shape.tensor:
        shape = replace(shape, ahead=3)
    assert "SLOW_AT_ZERO = true" in in_one(problem, steps, shape).programs[0].source
    check(problem, shape, steps)
    check(problem, shape, steps, parts=(2, 2, 1), device=3)


@pytest.mark.parametrize(("split", "ahead"), [(False, 2), (True, 3)])
def test_periodic_edges_need_planes_some_clocks_ahead(split: bool, ahead: int) -> None:
    problem = diffusion((40, 38, 76), "periodic")
    found = []
    for fewer in (ahead, ahead - 1):
        shape = replace(SPLIT, ahead=fewer, split_barrier=split, tensor=True)
        found += [copied(rings) for rings in in_one(problem, 3, shape).pipelines]
    assert found == [True, False]


@pytest.mark.parametrize("make", [diffusion, yee])
@pytest.mark.parametrize("shape", [FEW, TENSOR])
def test_accesses_that_a_box_cuts_are_stored_whole(make: Make, shape: StreamShape) -> None:
    problem = make((40, 38, 70), "fixed")
    rings = in_one(problem, 1, shape).pipelines[0]
    for node in rings.levels.nodes:
        for write in node.writes:
            box = rings.reads.box(node, write)
            assert rings.reads.keeps(node, write) == bool(box.lo[2] % 4 or (box.hi[2] < 70 and box.hi[2] % 4))
    one, plain = advance(problem, shape)
    assert agrees(problem, one, plain)


def test_a_box_is_extended_by_cells_that_nobody_writes_to_whole_accesses() -> None:
    kernel, grid = in_one(diffusion((40, 38, 70)), 1, FEW), Box((0, 0, 0), (40, 38, 70))
    assert kernel.accessed(Box((1, 1, 1), (39, 37, 69)), grid) == Box((1, 1, 0), (39, 37, 70))
    assert kernel.accessed(Box((1, 1, 1), (39, 37, 33)), grid) == Box((1, 1, 0), (39, 37, 33))
    assert kernel.accessed(Box((1, 1, 1), (39, 37, 69)), Box((0, 0, 1), (40, 38, 69))) == Box((1, 1, 1), (39, 37, 69))


def test_a_field_without_cells_on_a_device_has_a_map_of_nothing() -> None:
    rings = in_one(diffusion((40, 38, 70)), 1, TENSOR).pipelines[0]
    regions = np.zeros(64, np.uint8)
    given = {"fields": [{"pitch": (0, 0), "slot": (0, 0)}], "scratch": (), "regions": regions.ctypes.data // 16 * 16}
    (found,) = tensors(rings, given, lambda _: Stored((0, 0, 0), 0, 0), tensor_map)[0]
    assert found["first"].min() > 40
    assert found["map"][:, 1:4].tolist() == [[2, 1, 1]] * 2

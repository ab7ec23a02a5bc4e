"""Steps and shapes of passes, chosen from the problem alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalogue.problems import MATCHED, SPONGE, waves
from line_problems import distant
from runtime_problems import PROBLEMS
from stream_examples import absorbers, radar, relaxation, wide_reads, yee

from peergrid import Options
from peergrid.bench.problems import radar as model
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.choose.shape2d import MOST_STEPS, one_step, pass_kernel
from peergrid.codegen.cuda.choose.steps import block_of, several_steps, split_at, steps_per_pass, supports
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.norm import NORM_ALIGN
from peergrid.codegen.nvrtc import resources
from peergrid.grid.partition import Partition
from peergrid.resolve import default_options, with_supported_block
from peergrid.runtime.devices import Devices

CUBE, DISTANT = PROBLEMS["heat_cube"](), distant(4096)
SQUARE, CELLS = (2048, 2048), 2048 * 2048


def test_texts_are_made_once_however_tiles_are_cut() -> None:
    kernel = pass_kernel(yee(SQUARE), 8)
    assert kernel is not None
    shorter = replace(kernel, boundary_rows=16, least_rows=8)
    assert shorter.interior is kernel.interior
    assert shorter.boundary is kernel.boundary


def test_what_was_measured_best_is_chosen() -> None:
    assert pass_kernel(relaxation(SQUARE), 8).shape == Shape(8, 4, ahead=4)  # type: ignore[union-attr]
    assert pass_kernel(yee(SQUARE), 8).shape == Shape(8, 4, ahead=2, registers=200)  # type: ignore[union-attr]
    assert {steps_per_pass(problem) for problem in (relaxation(SQUARE), yee(SQUARE), radar(SQUARE))} == {8}


def test_farther_reads_and_double_precision_make_passes_shorter() -> None:
    assert steps_per_pass(wide_reads(SQUARE, dtype="float64")) < steps_per_pass(wide_reads(SQUARE))
    assert pass_kernel(yee(SQUARE, dtype="float64"), 8).shape.columns == 2  # type: ignore[union-attr]


def test_one_step_where_there_is_no_kernel_for_more() -> None:
    assert steps_per_pass(DISTANT) == 1
    assert [block_of(DISTANT, depth) for depth in (1, 2, 8)] == [1, 1, 1]


@pytest.mark.nvrtc
def test_rows_are_in_registers_however_many_fields_there_are() -> None:
    """Compilers leave objects of more than 8 KiB in memory, all values of a thread among them."""
    kernel = pass_kernel(waves((512, 512), MATCHED), 1, least=1)
    assert kernel is not None
    (found,) = resources(kernel.interior.source, "sm_90").values()
    assert found.stack == 0


def test_no_kernel_keeps_more_rows_than_compilers_keep_in_registers() -> None:
    far = waves((512, 512), replace(SPONGE, order=16))
    assert pass_kernel(far, 1, least=1) is not None
    assert pass_kernel(far, 2) is None


def test_stages_share_a_pass_where_that_moves_fewer_bytes() -> None:
    """Not where waves keep a field between their stages, nor where the first group is that of layers alone."""
    tilted = waves(SQUARE, epsilon=1e-4, delta=5e-5, tilt=1e-4)
    assert all(one_step(problem, CELLS) is None for problem in (tilted, waves(SQUARE, MATCHED)))
    assert all(one_step(problem, CELLS) is not None for problem in (yee(SQUARE), radar(SQUARE)))


def test_passes_are_few_and_even() -> None:
    problem = relaxation(SQUARE)
    assert not supports(problem, MOST_STEPS + 1)
    assert [block_of(problem, depth) for depth in (1, 8, 16, 17, 31)] == [1, 8, 16, 9, 16]


def test_passes_are_as_short_as_norms_need_them() -> None:
    problem, depth = absorbers((2048, 2048)), 12
    block = block_of(problem, depth, norm="Ez")
    assert depth % block == 0
    assert several_steps(problem, block, "Ez") is not None
    assert several_steps(problem, depth, "Ez") is None


def test_tiles_are_short_where_the_device_has_room() -> None:
    kernel = pass_kernel(relaxation(SQUARE), 8)
    assert kernel is not None
    box = relaxation(SQUARE).grid.box
    assert kernel.shorter(box, 1, 1) == kernel
    shortest = kernel.shorter(box, 10**6, 10**6)
    assert (shortest.boundary_rows, shortest.layer_rows, shortest.least_rows) == (32, 8, 8)

    def longest(one: PassKernel, entry: str) -> int:
        (regions,) = (launch.regions for launch in one.launches(box, 10**6) if launch.program.entry == entry)
        return int((regions["hi"][:, 0] - regions["lo"][:, 0]).max())

    assert replace(kernel, has_strips=False).shorter(box, 10**6, 10**6).boundary_rows == 8
    assert longest(shortest, "layer2d") <= 8 < longest(kernel, "layer2d")
    assert longest(shortest, "stream2d") < longest(kernel, "stream2d")
    assert shortest.interior.source == kernel.interior.source
    normed = pass_kernel(relaxation(SQUARE), 8, "u")
    assert normed is not None
    assert normed.shorter(box, 10**6, 10**6) == normed


def test_tiles_of_one_step_find_room_beside_plain_ones() -> None:
    problem = model(512, 512, 10)
    kernel = pass_kernel(problem, 1, least=1)
    assert kernel is not None
    room = H200.shared % (kernel.interior.shared_bytes + H200.block_reserved)
    assert kernel.boundary.shared_bytes + H200.block_reserved <= room
    assert replace(kernel, boundary_ahead=kernel.boundary_ahead + 1).boundary.shared_bytes + H200.block_reserved > room
    one, few = kernel.shorter(problem.grid.box, 10**6, 1), kernel.shorter(problem.grid.box, 1, 1)
    assert (one.boundary_rows, one.layer_rows, few.boundary_rows) == (4, 8, kernel.boundary_rows)


def test_plain_tiles_of_one_step_take_turns_where_they_would_be_long() -> None:
    kernel = pass_kernel(model(512, 512, 10), 1, least=1)
    assert kernel is not None
    plain = next(launch for launch in kernel.launches(kernel.problem.grid.box, 1) if launch.program is kernel.interior)
    rows = plain.regions["hi"][:, 0] - plain.regions["lo"][:, 0]
    assert 64 < rows.max() <= 128
    slow = pass_kernel(model(512, 512, 10), 2)
    assert slow is not None
    assert slow.cut.most_rows > 512


def test_strips_of_cells_that_keep_their_value_are_no_rim_of_streaming_kernels() -> None:
    problem = radar(SQUARE)
    halves = Partition.over(problem.grid, 2)
    gpu = replace(H200, streamed_cells=problem.grid.box.size // 2)
    assert split_at(problem, halves, gpu=gpu) == (1, 1)
    assert split_at(problem, Partition.over(problem.grid, 4), gpu=gpu) == ()
    assert split_at(relaxation(SQUARE), halves, gpu=gpu) == ()  # one stage: a pass for each is one pass
    assert split_at(problem, halves, "ez", gpu) == NORM_ALIGN


def test_a_norm_wants_four_columns_and_may_have_one_step() -> None:
    problem = relaxation(SQUARE)
    assert pass_kernel(problem, 1) is None
    for steps in (1, 3, 8):
        kernel = pass_kernel(problem, steps, "u")
        assert kernel is not None
        assert kernel.norm == "u"
        assert kernel.shape.columns == 4
    assert steps_per_pass(problem, norm="u") == 7
    assert steps_per_pass(problem, most=6, norm="u") == 6


def test_usual_options_and_the_block_that_fits() -> None:
    gpus, threads = Devices("cuda", (0, 1)), Devices("cpu", (0, 1))
    assert default_options(gpus, relaxation(SQUARE)) == Options("overlap", depth=8)
    assert default_options(gpus, relaxation((40, 2048))).depth == 4  # 20 rows each: half of the work not redundant
    assert default_options(gpus, CUBE).depth == 1
    assert with_supported_block(Options("async", depth=4), gpus, DISTANT) == Options("async", depth=4, block=1)
    assert with_supported_block(Options("async", depth=4), threads, DISTANT) == Options("async", depth=4)
    assert with_supported_block(Options("async", depth=4), gpus, CUBE).block is None
    assert with_supported_block(Options("async", depth=8), gpus, relaxation(SQUARE)).block is None
    asked = Options("async", depth=8, block=2)
    assert (
        with_supported_block(asked, gpus, DISTANT) == asked
    )  # refused by the executor, not changed behind the user's back

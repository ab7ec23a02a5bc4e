"""Kernels for GPUs with less shared memory than H200s: RTX cards give a thread block 99 KiB, T4s 64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from stream_examples import absorbers, radar, relaxation, wide_reads, yee
from stream_examples_3d import diffusion
from stream_examples_3d import yee as volume

from peergrid.bench.problems import radar as model
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.choose.shape2d import BOUNDARY_COLUMNS, NARROW, one_step, pass_kernel, smaller
from peergrid.codegen.cuda.choose.shape3d import pass3d
from peergrid.codegen.cuda.choose.steps import LENGTHS, lengths, several_steps
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.nvrtc import resources
from peergrid.stencil import Problem

RTX, T4 = (H200.with_block_shared(count << 10) for count in (99, 64))
SQUARE = (2048, 2048)
PLANES: dict[str, Callable[[], Problem]] = {
    f"{make.__name__} {dtype}": partial(make, SQUARE, dtype=dtype)
    for make in (absorbers, radar, relaxation, wide_reads, yee)
    for dtype in ("float32", "float64")
} | {"model": partial(model, 2048, 2048, 10)}


@pytest.mark.parametrize("gpu", [RTX, T4])
@pytest.mark.parametrize("name", PLANES)
def test_planes_have_as_long_passes_on_smaller_gpus(name: str, gpu: GpuModel) -> None:
    problem = PLANES[name]()
    assert lengths(problem, gpu=gpu)[0] == (6 if (name, gpu) == ("absorbers float64", T4) else lengths(problem)[0])
    kernels = [kernel for steps in LENGTHS[2] if (kernel := pass_kernel(problem, steps, gpu=gpu)) is not None]
    for kernel in (*kernels, one_step(problem, 1 << 30, gpu)):
        if kernel is not None:
            programs = (kernel.interior, kernel.boundary, *((kernel.layer,) if kernel.layer else ()))
            assert max(program.shared_bytes for program in programs) <= gpu.block_shared
            assert kernel.cut.boundary_columns >= BOUNDARY_COLUMNS


def test_rows_ahead_go_before_columns_and_blocks_are_of_few_warps() -> None:
    def shape(gpu: GpuModel, dtype: str) -> tuple[int, int, int]:
        kernel = pass_kernel(PLANES[f"absorbers {dtype}"](), 8, gpu=gpu)
        assert kernel is not None
        return kernel.boundary_width, kernel.boundary_ahead, kernel.shape.warps

    bounds = [(kernel.shape.blocks, kernel.shape.warps) for kernel in (
        pass_kernel(PLANES[f"{name} float32"](), 8, gpu=RTX) for name in ("absorbers", "relaxation")
    ) if kernel]  # fmt: skip
    assert bounds == [(5, 1), (2, 4)]  # what there is shared memory for, but no more than there are registers for
    assert shape(H200, "float32") == (64, 3, 4)
    assert shape(RTX, "float32") == (64, 3, 1)  # five warps of a multiprocessor, not four
    assert shape(T4, "float32") == (64, 1, 3)
    assert shape(RTX, "float64") == (NARROW, 3, 1)


def test_large_gpus_have_the_kernels_that_were_measured() -> None:
    problem = PLANES["model"]()
    for steps in LENGTHS[2]:
        usual = pass_kernel(problem, steps)
        assert usual is not None
        assert smaller(usual, H200) is usual
        assert pass_kernel(problem, steps, gpu=H200) == usual
    cube = diffusion((160, 160, 160))
    assert pass3d(cube, 3, H200) == pass3d(cube, 3)


def test_none_where_nothing_fits() -> None:
    problem = PLANES["model"]()
    assert pass_kernel(problem, 16) is not None
    assert pass_kernel(problem, 16, gpu=T4) is None
    assert lengths(problem, gpu=H200.with_block_shared(1 << 10)) == (1,)


def test_volumes() -> None:
    """Lower tiles, of which fewer cells are useful: several steps of heat on all, of Maxwell's equations on most."""
    heat, maxwell = diffusion((160, 160, 160)), volume((160, 160, 160))
    assert lengths(heat, gpu=RTX)[0] == lengths(heat, gpu=T4)[0] == 3
    assert (lengths(maxwell, gpu=RTX)[0], lengths(maxwell, gpu=T4)[0]) == (2, 1)
    for problem, gpu in ((heat, RTX), (heat, T4), (maxwell, RTX), (maxwell, T4)):
        for steps in set(lengths(problem, gpu=gpu)) - {1}:
            kernel = several_steps(problem, steps, gpu=gpu)
            assert kernel is not None
            assert kernel.interior.shared_bytes <= gpu.block_shared


@pytest.mark.nvrtc
@pytest.mark.parametrize(("architecture", "gpu"), [("sm_75", T4), ("sm_86", RTX), ("sm_120", RTX)])
def test_plain_tiles_do_not_spill(architecture: str, gpu: GpuModel) -> None:
    pytest.importorskip("cuda.core")
    kernel = pass_kernel(PLANES["absorbers float32"](), 8, gpu=gpu)
    assert kernel is not None
    (report,) = resources(kernel.interior.source, architecture).values()
    assert report.spills == 0


@pytest.mark.parametrize("gpu", [H200, RTX, T4])
def test_a_block_of_edge_tiles_alone_has_a_multiprocessor_to_itself(gpu: GpuModel) -> None:
    made = pass_kernel(PLANES["relaxation float32"](), 8)
    assert isinstance(made, PassKernel)
    program = PersistentKernel(made, interior=False, gpu=gpu).program
    assert gpu.blocks_by_shared(program.shared_bytes) == 1
    assert program.shared_bytes <= gpu.block_shared

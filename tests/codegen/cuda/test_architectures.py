"""Generated kernels compile for GPUs of every generation that CUDA 13 serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from runtime_problems import PROBLEMS

from peergrid.codegen.cuda import put, service
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.choose.steps import several_steps
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.onestep import OneStepKernels
from peergrid.codegen.cuda.skeletons import expanded, skeleton
from peergrid.codegen.cuda.stream3d.kernel import in_one
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.codegen.nvrtc import compile_cubin, link, relocatable_cubin
from peergrid.runtime.ranks.nvshmem import FUNCTIONS, HEADERS

DECLARED = """
enum { NVSHMEM_SIGNAL_SET = 9 };
__device__ void nvshmemx_putmem_nbi_block(void*, const void*, size_t, int);
__device__ void nvshmemx_putmem_signal_block(void*, const void*, size_t, unsigned long*, unsigned long, int, int);
__device__ void nvshmemx_signal_op(unsigned long*, unsigned long, int, int);
__device__ unsigned long nvshmem_signal_fetch(unsigned long*);
__device__ void nvshmem_fence();
"""
"""What the kernel that puts messages calls, as NVSHMEM declares it."""


def texts() -> Iterator[str]:
    problem, cube = PROBLEMS["heat_fixed"](), PROBLEMS["heat_cube"]()
    yield OneStepKernels.of(problem, [[problem.grid.box]]).source
    yield service.SOURCE
    made, volume = pass_kernel(problem, 2), several_steps(cube, 2)
    assert made is not None
    assert volume is not None
    kernels = (made, PeerKernel.of(made), volume)
    boxes = (problem.grid.box, problem.grid.box, cube.grid.box)
    for kernel, box in zip(kernels, boxes, strict=True):
        yield from {launch.program.source for launch in kernel.launches(box, 1)}
    yield PersistentKernel(made).program.source
    yield from (program.source for program in in_one(cube, 1, StreamShape(32, 8, 1, 2)).programs)


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_120"])
def test_all_kinds_of_kernels_compile(architecture: str) -> None:
    pytest.importorskip("cuda.core")
    for text in texts():
        assert compile_cubin(text, architecture)[:4] == b"\x7fELF"


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_kernel_that_puts_messages_compiles_and_links_where_the_library_is(architecture: str) -> None:
    pathfinder = pytest.importorskip("cuda.pathfinder")
    text = expanded(put.SOURCE).replace(skeleton("nvshmem.cuh"), DECLARED)
    assert relocatable_cubin(text, architecture, ())[:4] == b"\x7fELF"
    found = [pathfinder.find_nvidia_header_directory(name) for name in HEADERS]
    if all(found):
        headers = [Path(folder) for folder in found]
        compiled = relocatable_cubin(put.SOURCE, architecture, headers)
        assert link(compiled, architecture, headers[0].parent / "lib" / FUNCTIONS)[:4] == b"\x7fELF"

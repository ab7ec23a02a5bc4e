"""Generated kernels compile for GPUs of every generation that CUDA 13 serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from runtime_problems import PROBLEMS

from peergrid.codegen.cuda import onestep, service
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.choose.steps import several_steps
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.stream3d.kernel import in_one
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.codegen.nvrtc import compile_cubin


def texts() -> Iterator[str]:
    problem, cube = PROBLEMS["heat_fixed"](), PROBLEMS["heat_cube"]()
    yield onestep.program(problem, [[problem.grid.box]]).source
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

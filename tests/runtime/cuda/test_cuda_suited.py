"""Which kernel makes many passes: the room that compilers leave it on a multiprocessor."""

from __future__ import annotations

import pytest

from peergrid.bench.problems import jacobi
from peergrid.codegen.cuda.blocked.shared import MOST_BYTES
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.nvrtc import resources
from peergrid.runtime.cuda.lowering.suited import CROWD, suited

REGISTERS = 65536  # of a multiprocessor


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("steps", [8, 6, 4, 2, 1])
def test_blocks_with_plain_tiles_leave_room_for_each_other(steps: int, architecture: str) -> None:
    """On grids of some million cells the edge tiles alone take a hundred blocks: with two blocks on a multiprocessor
    in place of three a pass takes up to twice as long.
    """
    pytest.importorskip("cuda.core")
    problem = jacobi.__wrapped__(2048, 4096)
    made = pass_kernel(problem, steps, least=1)
    assert made is not None
    kernel = suited(made, [problem.grid.box], MOST_BYTES, lambda _: [3 * 132])
    assert kernel is not None
    assert kernel.plain
    (report,) = resources(kernel.program.source, architecture).values()
    warps = REGISTERS // (-(-report.registers // 8) * 8 * kernel.threads) * kernel.warps
    assert warps >= CROWD
    assert report.spills <= 64  # bytes, of two thousand instructions

"""Kernels with norms: their text stays short, and they keep their steps in registers."""

from __future__ import annotations

import pytest
from stream_examples import relaxation, wide_reads, yee

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.norm import NORM_ALIGN, NORM_ROWS
from peergrid.codegen.nvrtc import resources

PROBLEM = relaxation((2048, 2048))


@pytest.mark.nvrtc
@pytest.mark.parametrize(("steps", "rows"), [(1, 2), (2, 6), (6, 9), (7, 12), (8, 12)])
def test_only_the_rows_with_which_sums_end_stand_in_the_code_by_themselves(steps: int, rows: int) -> None:
    pytest.importorskip("cuda.core")
    source = PassKernel(PROBLEM, Shape(steps), norm="u").interior.source
    sums = "BlockSums<Interior2D>"
    said = f"static_assert(({sums}::last() - {sums}::first() + 2) * {sums}::PERIOD == {rows});"
    assert resources(source + said, "sm_90")


def test_rows_change_registers_where_a_block_is_no_whole_number_of_their_turns() -> None:
    assert PassKernel(yee((256, 256)), Shape(2), norm="Ez").stream.rotates
    wide = PassKernel(wide_reads((256, 256)), Shape(2), norm="u").stream
    assert wide.rotates == (NORM_ROWS % wide.levels.period == 0)
    assert NORM_ROWS % wide.period == 0


def test_tiles_begin_where_blocks_do() -> None:
    kernel = pass_kernel(PROBLEM, 6, "u")
    assert kernel is not None
    plain = next(launch for launch in kernel.launches(PROBLEM.grid.box, 200) if launch.program is kernel.interior)
    assert not (plain.regions["lo"][:, :2] % NORM_ALIGN).any()


@pytest.mark.nvrtc
@pytest.mark.parametrize(("steps", "arch"), [(7, "sm_80"), (7, "sm_90"), (7, "sm_100"), (6, "sm_90")])
def test_steps_stay_in_registers(steps: int, arch: str) -> None:
    pytest.importorskip("cuda.core")
    kernel = pass_kernel(PROBLEM, steps, "u")
    assert kernel is not None
    for source in (kernel.interior.source, PeerKernel.of(kernel).interior.source):
        (report,) = resources(source, arch).values()
        assert report.spills <= 8
        assert report.registers <= 128

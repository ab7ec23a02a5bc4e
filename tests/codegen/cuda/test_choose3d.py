"""Shapes of 3D passes: chosen where they pay, within the registers and the shared memory that a compiler finds."""

from __future__ import annotations

import pytest
from stream_examples_3d import diffusion, radar, wide_reads, yee

from peergrid.codegen.cuda.choose.shape3d import pass3d, worth
from peergrid.codegen.cuda.choose.steps import steps_per_pass, supports
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.stream3d.tensors import copied
from peergrid.codegen.nvrtc import resources
from peergrid.stencil import Problem

CUBE = (160, 160, 160)


def test_two_steps_pay_for_heat_and_for_yee() -> None:
    for problem in (diffusion(CUBE), diffusion(CUBE, dtype="float64"), yee(CUBE), radar(CUBE)):
        assert steps_per_pass(problem) > 1
        kernel = pass3d(problem, 2)
        assert kernel is not None
        assert worth(kernel) > 1
        assert kernel.interior.shared_bytes <= H200.most_shared


def test_what_has_no_kernel() -> None:
    assert supports(wide_reads(CUBE, ("periodic", "fixed", "fixed")), 2)
    assert supports(wide_reads(CUBE, "reflecting"), 2)  # what is near the mirrors is made step by step
    assert not supports(diffusion(CUBE), 9)
    far = wide_reads(CUBE, dtype="float64")
    assert not supports(far, 4, H200.with_block_shared(99 << 10))  # no tile is as wide as what it would have to read
    assert supports(far, 2)


def test_surfaces_cost() -> None:
    """What tiles leave is slow: the less of a grid is inside, the less several steps are worth."""
    large, small = (pass3d(radar((n, n, n)), 2) for n in (160, 48))
    assert large is not None
    assert small is not None
    assert worth(small) < 0.9 * worth(large)


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("problem", [diffusion(CUBE), diffusion(CUBE, "periodic"), yee(CUBE), yee(CUBE, "periodic")])
def test_planes_come_by_tensor_copies_where_there_are_such(problem: Problem, steps: int) -> None:
    ours, others = pass3d(problem, steps), pass3d(problem, steps, H200.with_block_shared(160 << 10))
    assert ours is not None
    assert ours.shape.tensor
    assert copied(ours.rings)
    assert others is not None
    assert not others.shape.tensor


@pytest.mark.nvrtc
def test_chosen_kernels_do_not_spill() -> None:
    pytest.importorskip("cuda.core")
    for problem in (diffusion(CUBE), radar(CUBE)):
        kernel = pass3d(problem, 2)
        assert kernel is not None
        (report,) = resources(kernel.interior.source, "sm_90").values()
        assert report.spills == 0
        assert report.registers * kernel.interior.threads <= 65536

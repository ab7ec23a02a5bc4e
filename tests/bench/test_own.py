"""A user's stencils come to the same kernels as those that are shipped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from peergrid.bench.own import own_average, own_heat, own_waves, shipped_waves
from peergrid.bench.problems import jacobi
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.choose.steps import steps_per_pass
from peergrid.stencil import Problem
from peergrid.stencil.cost import minimal_bytes, operations

N = 256


@pytest.mark.parametrize(
    ("shipped", "own"),
    [
        (lambda: jacobi(N, N), lambda: own_average(N, N)),
        (lambda: jacobi(N, N), lambda: own_heat(N, N)),
        (lambda: shipped_waves(N, N, lossy=False), lambda: own_waves(N, N, lossy=False)),
        (lambda: shipped_waves(N, N, lossy=True), lambda: own_waves(N, N, lossy=True)),
    ],
)
def test_as_many_steps_in_the_same_shape(shipped: Callable[[], Problem], own: Callable[[], Problem]) -> None:
    ours, theirs = shipped(), own()
    assert minimal_bytes(ours) == minimal_bytes(theirs)
    assert operations(ours) <= operations(theirs)
    steps = steps_per_pass(ours)
    assert steps == steps_per_pass(theirs) > 1
    kernels = [pass_kernel(problem, steps) for problem in (ours, theirs)]
    assert len({(kernel.shape, kernel.cut.columns, kernel.interior.shared_bytes) for kernel in kernels if kernel}) == 1

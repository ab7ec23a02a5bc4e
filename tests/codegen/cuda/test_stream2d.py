"""The time-blocked 2D kernels give the bits of the reference, on every boundary and on parts of a grid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from emulate import Outcome, advance
from stream_examples import radar, relaxation, two_fields, wide_reads, yee

from peergrid.codegen.cuda.pass_kernel import PassKernel
from peergrid.codegen.cuda.stream2d import Shape
from peergrid.stencil import Problem

Make = Callable[..., Problem]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulated")


def agree(outcome: Outcome) -> None:
    for name, expected in outcome.expected.items():
        assert np.array_equal(expected, outcome.found[name], equal_nan=True), name
    assert np.array_equal(outcome.expected_traces, outcome.found_traces, equal_nan=True)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
@pytest.mark.parametrize("make", [relaxation, wide_reads, two_fields, yee])
def test_boundaries(make: Make, boundary: str, directory: Path) -> None:
    problem = make((80, 230), boundary)
    outcome = advance(problem, PassKernel(problem, Shape(3, warps=2)), directory)
    assert {launch.program.entry for launch in outcome.launches} == {"stream2d", "edge2d"}
    agree(outcome)


def test_absorber_source_receivers(directory: Path) -> None:
    problem = radar((90, 260))
    outcome = advance(problem, PassKernel(problem, Shape(4, warps=2)), directory)
    assert {launch.program.entry for launch in outcome.launches} == {"stream2d", "edge2d"}
    agree(outcome)
    assert np.isfinite(outcome.found_traces[:, 3:]).all()

"""The time-blocked 2D kernels give the bits of the reference, on every boundary and on parts of a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from emulate import advance
from stream_examples import lamps, radar, relaxation, two_fields, wide_reads, yee
from table_problems import layered

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.common.arguments import MOST_CORNERS, Arguments
from peergrid.stencil import Problem

Make = Callable[..., Problem]


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
@pytest.mark.parametrize("make", [relaxation, wide_reads, two_fields, yee, layered])
def test_boundaries(make: Make, boundary: str) -> None:
    problem = make((80, 230), boundary)
    outcome = advance(problem, PassKernel(problem, Shape(3, warps=2), has_strips=False))
    assert outcome.entries == {"stream2d", "edge2d"}
    assert outcome.agrees


def test_absorber_source_receivers() -> None:
    problem = radar((90, 260))
    outcome = advance(problem, PassKernel(problem, Shape(4, warps=2), has_strips=False))
    assert outcome.entries == {"stream2d", "edge2d"}
    assert outcome.agrees
    assert np.isfinite(outcome.device.traces[:, 3:]).all()


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
def test_more_sources_than_have_their_place_in_the_struct(boundary: str) -> None:
    problem = lamps((90, 260), boundary)
    assert len(problem.stages) - 1 > len(Arguments(problem).movable) == MOST_CORNERS
    outcome = advance(problem, PassKernel(problem, Shape(4, warps=2), has_strips=False))
    assert outcome.entries == {"stream2d", "edge2d"}
    assert outcome.agrees


def test_a_source_just_beside_a_plain_tile() -> None:
    problem = radar((90, 300))
    kernel = PassKernel(problem, Shape(4, warps=2))
    plain = next(launch for launch in kernel.launches(problem.grid.box, 4) if launch.program == kernel.interior)
    right = int(plain.regions["hi"][:, 1].min())
    beside = radar((90, 300), source=(45, right + 1))
    outcome = advance(beside, PassKernel(beside, Shape(4, warps=2), has_strips=False))
    assert outcome.entries == {"stream2d", "edge2d"}
    assert outcome.agrees


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shapes(dtype: str) -> None:
    problem = yee((80, 600), "fixed", dtype)
    for shape in (Shape(2, 2, ahead=1, warps=1), Shape(3, 8, warps=1), Shape(4, 4, rotate=False, warps=3)):
        outcome = advance(problem, PassKernel(problem, shape, has_strips=False))
        assert outcome.entries == {"stream2d", "edge2d"}
        assert outcome.agrees


@pytest.mark.parametrize(("width", "columns", "steps"), [(64, 4, 2), (64, 4, 4), (128, 8, 3)])
def test_norms_do_not_depend_on_tiles_or_devices(width: int, columns: int, steps: int) -> None:
    problem = relaxation((144, 420))
    kernel = PassKernel(problem, Shape(steps, columns, warps=2), width, norm="u")
    whole = advance(problem, kernel)
    assert whole.entries == {"stream2d", "edge2d", "layer2d"}
    assert whole.agrees
    assert whole.norm_rows is not None
    expected = squared_changes(problem, steps)
    np.testing.assert_allclose(whole.norm_rows.sum(axis=1), expected, rtol=1e-5)
    parts = [advance(problem, kernel, (2, 1), device).norm_rows for device in (0, 1)]
    assert np.array_equal(np.concatenate(parts, axis=1), whole.norm_rows)  # type: ignore[arg-type]
    only_edges = advance(problem, PassKernel(problem, Shape(steps, 16, warps=2), 64, norm="u"))
    assert only_edges.entries == {"edge2d"}
    assert np.array_equal(only_edges.norm_rows, whole.norm_rows)  # type: ignore[arg-type]


def squared_changes(problem: Problem, steps: int) -> list[float]:
    """In double precision, from the states themselves."""
    u, found = problem.fields["u"].global_array(), []
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * ((u[1:-1, :-2] + u[1:-1, 2:]) + (u[:-2, 1:-1] + u[2:, 1:-1]))
        found.append(float(((v.astype(np.float64) - u) ** 2).sum()))
        u = v
    return found

"""The time-blocked 3D kernels give the bits of the reference, on every boundary and on parts of a grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulate import Outcome, advance
from stream_examples_3d import diffusion, radar, two_fields, wide_reads, yee

from peergrid.codegen.cuda.blocked3d.edge.rings import EdgeShape3D
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.stencil import Problem

Make = Callable[..., Problem]


def outcome(problem: Problem, shape: Shape3D, **more: Any) -> Outcome:
    kernel = PassKernel3D(problem, shape, EdgeShape3D(shape.steps, warps=2), least_planes=4)
    return advance(problem, kernel, **more)


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (diffusion, Shape3D(3, 2, 2, warps=4, turning=False, joined=True)),
        (two_fields, Shape3D(2, 4, 2, warps=5, held=False)),
        (yee, Shape3D(2, 2, 2, warps=6, joined=True)),
    ],
)
def test_boundaries(make: Make, shape: Shape3D, boundary: str) -> None:
    found = outcome(make((9, 13, 70), boundary), shape)
    assert found.entries == {"stream3d"}
    assert len(found.launches[0].regions) > 2
    assert found.agrees


@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
def test_far_and_lopsided_reads(boundary: str) -> None:
    assert outcome(wide_reads((9, 15, 70), boundary), Shape3D(2, 2, 4, warps=3)).agrees


@pytest.mark.parametrize("boundary", ["fixed", ("periodic", "fixed", "reflecting")])
def test_absorber_source_receivers(boundary: Any) -> None:
    found = outcome(radar((18, 20, 40), boundary), Shape3D(2, 2, 2, warps=6))
    assert found.entries == {"stream3d", "edge3d"}
    assert found.agrees
    assert np.isfinite(found.device.traces[:, 3:]).all()


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        (Shape3D(1, 4, 4, warps=2, ahead=1), "float32"),
        (Shape3D(2, 2, 1, warps=9, ahead=3), "float64"),
        (Shape3D(3, 2, 4, warps=2, skew=1), "float64"),
        (Shape3D(2, 2, 2, warps=5, turning=False), "float32"),
    ],
)
def test_shapes(shape: Shape3D, dtype: str) -> None:
    assert outcome(diffusion((10, 12, 70), ("fixed", "periodic", "reflecting"), dtype), shape).agrees


@pytest.mark.parametrize(("parts", "device"), [((2, 1, 1), 1), ((1, 2, 2), 0), ((1, 2, 2), 3)])
def test_parts_of_a_grid(parts: tuple[int, int, int], device: int) -> None:
    """Boxes whose columns begin anywhere, with ghost cells on some sides and edges on the others."""
    problem = diffusion((9, 13, 71), ("fixed", "periodic", "fixed"))
    assert outcome(problem, Shape3D(2, 4, 2, warps=4), parts=parts, device=device).agrees


@pytest.mark.parametrize("columns", [2, 4])
def test_loads_pass_the_first_level_cache_where_little_is_left_of_it(columns: int) -> None:
    """All copies have 16 bytes."""
    for make, kind, whole in ((yee, "16, true", False), (radar, "16", True)):
        plain = PassKernel3D(make((64, 64, 64)), Shape3D(2, columns)).plain
        assert plain.source.count(f"pg_fetch<{kind}>(") == plain.source.count("pg_fetch<") > 0
        assert plain.whole == whole

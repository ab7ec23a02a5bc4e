"""Several steps of a 1D problem in one pass give the bits of the reference, on every boundary and on parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from emulate import advance
from hypothesis import given, settings
from hypothesis import strategies as st
from line_problems import absorber, distant, far_reads, relaxation, two_fields, waves
from table_problems import layered

from peergrid.codegen.cuda.blocked1d.pass_kernel import PassKernel1D
from peergrid.codegen.cuda.blocked1d.shape import Shape1D
from peergrid.codegen.cuda.choose.shape1d import pass1d
from peergrid.codegen.cuda.choose.steps import lengths, several_steps
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.stencil import Problem, stencil

Make = Callable[..., Problem]
BOTH = {"tile1d", "tile1d_boundary"}


@pytest.mark.parametrize("boundary", ["fixed", "periodic", "reflecting"])
@pytest.mark.parametrize("make", [relaxation, far_reads, two_fields, waves, layered])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_boundaries(make: Make, boundary: str, dtype: str) -> None:
    problem = make(1501, boundary, dtype)
    outcome = advance(problem, PassKernel1D(problem, Shape1D(5, 8, warps=2)))
    assert outcome.entries == BOTH
    assert outcome.agrees


def test_updates_and_fields_of_some_cells() -> None:
    problem = absorber(900)
    outcome = advance(problem, PassKernel1D(problem, Shape1D(4, 8)))
    assert outcome.entries == BOTH
    assert outcome.agrees


def test_receivers_record_every_step_also_where_interior_tiles_serve() -> None:
    problem = waves(2000)
    kernel = PassKernel1D(problem, Shape1D(5, 8))
    outcome = advance(problem, kernel)
    plain = next(launch for launch in outcome.launches if launch.program == kernel.interior)
    away = problem.receivers[1].cell[0]
    assert any(row["lo"][0] <= away < row["hi"][0] for row in plain.regions)
    assert outcome.agrees
    assert np.isfinite(outcome.device.traces[:, 3:]).all()


def test_wrapped_edges_have_interior_tiles() -> None:
    problem = relaxation(4 * 480, "periodic")
    outcome = advance(problem, PassKernel1D(problem, Shape1D(8)))
    assert outcome.entries == {"tile1d"}
    assert outcome.agrees


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([relaxation, far_reads, two_fields, waves, absorber, layered]),
    st.sampled_from([4, 8, 16]),
    st.integers(1, 9),
    st.sampled_from([32, 256]),
    st.sampled_from(["fixed", "periodic", "reflecting"]),
    st.integers(60, 1400),
    st.sampled_from([((1,), 0), ((2,), 0), ((2,), 1), ((3,), 1), ((4,), 3)]),
    st.integers(1, 6),
)
def test_shapes(
    make: Make, cells: int, steps: int, most: int, boundary: str, length: int,
    part: tuple[tuple[int], int], slots: int,
) -> None:  # fmt: skip
    boundary = "fixed" if make is absorber else boundary
    problem = make(length, boundary)
    kernel = PassKernel1D(problem, Shape1D(steps, cells, most=most))
    if kernel.tile.useful <= 0 or 3 * sum(kernel.tile.ghosts) > length:
        return
    assert advance(problem, kernel, *part, slots=slots).agrees


@settings(deadline=None, max_examples=6)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4))
def test_any_reach(left: int, right: int, steps: int) -> None:
    @stencil
    def lopsided(u):  # type: ignore[no-untyped-def]
        u.next[0] = 0.5 * u[-left] - 0.25 * u[right]

    problem = relaxation(700, "periodic")
    problem = Problem.of(lopsided(problem.fields["u"]))
    assert advance(problem, PassKernel1D(problem, Shape1D(steps, 8)), (2,), 1).agrees


def test_a_three_point_stencil_makes_many_steps() -> None:
    problem = relaxation(1 << 14)
    assert lengths(problem)[0] >= 8
    kernel = several_steps(problem, lengths(problem)[0])
    assert isinstance(kernel, PassKernel1D)


def test_reads_beyond_the_next_lane_are_left_to_single_steps() -> None:
    problem = distant(4096)
    assert pass1d(problem, 2) is None
    assert lengths(problem) == (1,)


def test_boundary_tiles_are_as_short_as_shared_memory_asks() -> None:
    problem = two_fields(4096)
    usual, small = pass1d(problem, 8), pass1d(problem, 8, H200.with_block_shared(2 << 10))
    assert usual is not None
    assert small is not None
    assert small.shape.most < usual.shape.most
    assert small.tile.shared_bytes <= 2 << 10

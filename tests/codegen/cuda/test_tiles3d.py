"""The tiles of a 3D pass cover its box, fit the thread blocks that work on them, and keep off confined updates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_examples_3d import diffusion, radar

from peergrid.codegen.cuda.stream3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.stream3d.tiles import across, tiles_and_rest
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.grid import Box
from peergrid.stencil import Problem

STEPS = 2


def kernel_of(problem: Problem, steps: int, *tile: int) -> PassKernel3D:
    return PassKernel3D(problem, steps, StreamShape(*tile, own=True))


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.integers(12, 40)] * 2, st.integers(20, 150)), st.integers(1, 40), st.data())
def test_every_cell_has_a_tile_and_sources_stay_away_from_interior_ones(
    shape: tuple[int, int, int], slots: int, data: st.DataObject
) -> None:
    source = data.draw(st.tuples(*(st.integers(5, n - 1) for n in shape)))
    found = tiles_and_rest(
        kernel_of(radar(shape, source=source), STEPS, 64, 16, 2).rings, Box.of(shape), slots, least=4
    )
    covered = np.zeros(shape, int)
    for tile in (*found.interior, *found.boundary):
        covered[tile.slices((0, 0, 0))] += 1
    assert (covered == 1).all()
    reached = [tile for tile in found.interior if all(
        lo - (STEPS - 1) <= at < hi + STEPS - 1 for lo, at, hi in zip(tile.lo, source, tile.hi, strict=True)
    )]  # fmt: skip
    assert not reached


@settings(max_examples=50, deadline=None)
@given(st.integers(-9, 90), st.integers(1, 300), st.sampled_from([64, 72]), st.sampled_from(["fixed", "periodic"]))
def test_tiles_are_full_and_fit(start: int, count: int, columns: int, kind: str) -> None:
    """Also where a box begins anywhere: columns are loaded from a multiple of a copy's on."""
    problem = diffusion((20, 20, 400), ("fixed", "fixed", kind))  # type: ignore[arg-type]
    rings = kernel_of(problem, 3, columns, 16, 2).rings
    lo, hi = (start if kind == "periodic" else abs(start), abs(start) + count)
    _, spans = across(rings, Box((0, 0, lo), (20, 20, hi)))
    assert spans[0][0] == lo
    assert spans[-1][1] == hi
    for (_, end), (begin, _) in pairwise(spans):
        assert end == begin
        assert begin % 4 == 0
    for begin, end in spans:
        first, last = begin - rings.reads.growth.below[2], end + rings.reads.growth.above[2]
        if kind == "fixed":
            first, last = max(first, 0), min(last, 400)
        assert last - first // 4 * 4 <= columns


def test_few_tiles_are_short_where_the_device_has_room() -> None:
    problem = diffusion((64, 64, 64))
    kernel = kernel_of(problem, 2, 128, 32, 2)
    (usual,) = kernel.launches(problem.grid.box, 1000)
    (short,) = kernel.shorter(problem.grid.box, 1000, 1000).launches(problem.grid.box, 1000)
    assert len(short.regions) > 2 * len(usual.regions)

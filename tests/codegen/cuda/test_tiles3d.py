"""The tiles of a 3D pass cover its box, fit the thread blocks that work on them, and keep off confined updates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_examples_3d import diffusion, radar

from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.tiles import across, tiles3d
from peergrid.grid import Box

STEPS = 2


@settings(max_examples=25, deadline=None)
@given(st.tuples(*[st.integers(12, 40)] * 2, st.integers(20, 150)), st.integers(1, 40), st.data())
def test_every_cell_has_a_tile_and_sources_stay_away_from_plain_ones(
    shape: tuple[int, int, int], slots: int, data: st.DataObject
) -> None:
    source = data.draw(st.tuples(*(st.integers(5, n - 1) for n in shape)))
    found = tiles3d(radar(shape, source=source), Shape3D(STEPS, 2, 2, 8), Box.of(shape), slots, least_planes=4)
    covered = np.zeros(shape, int)
    for tile in (*found.plain, *found.edge):
        covered[tile.slices((0, 0, 0))] += 1
    assert (covered == 1).all()
    reached = [tile for tile in found.plain if all(
        lo - (STEPS - 1) <= at < hi + STEPS - 1 for lo, at, hi in zip(tile.lo, source, tile.hi, strict=True)
    )]  # fmt: skip
    assert not reached


@settings(max_examples=50, deadline=None)
@given(st.integers(-9, 90), st.integers(1, 300), st.sampled_from([2, 4]), st.sampled_from(["fixed", "periodic"]))
def test_tiles_are_full_and_fit(start: int, count: int, columns: int, kind: str) -> None:
    """Also where a box begins anywhere: columns are loaded from a multiple of a lane's columns on."""
    problem, shape = diffusion((20, 20, 400), ("fixed", "fixed", kind)), Shape3D(3, columns, 2, 8)  # type: ignore[arg-type]
    growth, (lo, hi) = reach(problem, 3), (start if kind == "periodic" else abs(start), abs(start) + count)
    _, spans = across(problem, shape, Box((0, 0, lo), (20, 20, hi)))
    assert spans[0][0] == lo
    assert spans[-1][1] == hi
    for (_, end), (begin, _) in pairwise(spans):
        assert end == begin
        assert begin % 8 == 0
    for begin, end in spans:
        first, last = begin - growth.below[2], end + growth.above[2]
        if kind == "fixed":
            first, last = max(first, 0), min(last, 400)
        assert last - first // columns * columns <= shape.width


def test_few_tiles_are_short_where_the_device_has_room() -> None:
    problem = diffusion((64, 64, 64))
    kernel = PassKernel3D(problem, Shape3D(2, 4, 2, 16))
    (usual,) = kernel.launches(problem.grid.box, 1000)
    (short,) = kernel.shorter(problem.grid.box, 1000, 1000).launches(problem.grid.box, 1000)
    assert len(short.regions) > 2 * len(usual.regions)

"""The tiles of a pass cover its box; what bars the plain kernel costs it a band of rows, not a whole tile."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_examples import radar

from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.blocked2d.tiles import tiles
from peergrid.stencil import Problem

STEPS = 3


def cut_up(problem: Problem, slots: int) -> Tiles:
    return tiles(problem, STEPS, problem.grid.box, PassKernel(problem, Shape(STEPS, 2)).cut, slots)


@settings(max_examples=30, deadline=None)
@given(st.integers(60, 400), st.integers(150, 300), st.integers(1, 40), st.data())
def test_every_cell_has_a_tile_and_sources_stay_away_from_plain_ones(
    rows: int, columns: int, slots: int, data: st.DataObject
) -> None:
    source = data.draw(st.tuples(st.integers(8, rows - 1), st.integers(0, columns - 1)))
    found = cut_up(radar((rows, columns), source=source), slots)
    covered = np.zeros((rows, columns), bool)
    for tile in (*found.interior, *found.boundary):
        covered[tile.lo[0] : tile.hi[0], tile.lo[1] : tile.hi[1]] = True
    assert covered.all()
    reached = [tile for tile in found.interior if all(
        lo - (STEPS - 1) <= at < hi + STEPS - 1 for lo, at, hi in zip(tile.lo, source, tile.hi, strict=True)
    )]  # fmt: skip
    assert not reached


def test_a_source_bars_the_rows_around_it_only() -> None:
    problem = radar((400, 260), source=(200, 130))
    columns = [tile for tile in cut_up(problem, 1).interior if tile.lo[1] <= 130 < tile.hi[1]]
    barred = 400 - 6 - sum(tile.shape[0] for tile in columns)
    assert barred < 40

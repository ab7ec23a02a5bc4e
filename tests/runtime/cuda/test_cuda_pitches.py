"""Fields that kernels find by the same pitches have these in memory, on every device and under every cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from catalogue.problems import radar3d

from peergrid import Options
from peergrid.codegen.cuda.common.pitches import LINE, SHORT_LINE, line_of, pitched_as
from peergrid.grid import Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.wave import Medium, Propagator, Scheme
from peergrid.runtime.cuda.memory.fields import Plan
from peergrid.schedule import layout
from peergrid.stencil import Problem

SHAPE = (40, 44, 130)


def matched() -> Problem:
    """Waves with perfectly matched layers, whose step before shares memory with the last one."""
    waves = Propagator(Medium(SHAPE, 10.0, np.full(SHAPE, 2000.0)), Scheme(4, layer=4, absorber="cpml"))
    points = np.array([[153.0, 162.0, 171.0], [170.0, 170.0, 711.0]])
    return waves.problem(points, np.ones((2, 4)), points)[0]


@pytest.mark.parametrize("split", [(1, 1, 1), (3, 1, 1), (1, 2, 1), (1, 1, 3), (2, 2, 1)])
@pytest.mark.parametrize("make", [matched, lambda: radar3d(SHAPE)])
def test_every_device_has_the_pitches_that_kernels_use(make: Callable[[], Problem], split: Index) -> None:
    problem = make()
    plan = Plan(layout(problem, Partition(problem.grid, split), Options("overlap", depth=1)), 4)
    pitched = dict(pitched_as(problem))
    assert len(set(pitched.values())) < len(pitched)
    for blocks in plan.blocks:
        for name, block in blocks.items():
            assert all(map(int.__ge__, block.room or block.least_room, block.least_room))
            if name in pitched:
                assert block.pitches == blocks[pitched[name]].pitches
                assert block.pitches[1] % line_of(block.field) == 0
            if block.values:
                last = tuple(end - 1 for end in block.box.hi)
                assert block.guard <= block.index(block.box.lo) <= block.index(last) < block.values - block.guard


def test_narrow_fields_have_short_rows() -> None:
    """Of ten columns from 7 on: memory begins with column 4 and ends before column 20."""
    grid = Grid(SHAPE)
    narrow, wide = (grid.field(name, within=grid.box.with_axis(2, 7, end)) for name, end in (("a", 17), ("b", 100)))
    assert (line_of(narrow), line_of(wide)) == (SHORT_LINE, LINE)
    assert line_of(Grid((40, 30)).field("c", within=Grid((40, 30)).box.with_axis(1, 0, 5))) == LINE

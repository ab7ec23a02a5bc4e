"""The order in which halos travel."""

from __future__ import annotations

from itertools import groupby

import pytest

from peergrid import Options
from peergrid.grid import Grid
from peergrid.grid.partition import Partition
from peergrid.schedule import layout
from peergrid.schedule.exchange import ORDERS, Order
from peergrid.stencil import Problem, stencil


@stencil
def both_ways(u, v):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[-1, 0] + v[1, 1]
    v.next[0, 0] = v[0, 0] - u[1, 0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("parts", [(4, 1), (3, 3)])
def test_what_a_device_sends_in_a_stage_stands_together(order: Order, parts: tuple[int, int]) -> None:
    """One kernel can store it then."""
    grid = Grid((40, 40), "periodic")
    problem = Problem.of(both_ways(grid.field("u"), grid.field("v")))
    halos = layout(problem, Partition(problem.grid, parts), Options(depth=2)).halos
    stages = ORDERS[order](halos)
    assert sorted(map(str, halos)) == sorted(str(halo) for stage in stages for halo in stage)
    for stage in stages:
        senders = [source for source, _ in groupby(halo.source for halo in stage)]
        assert len(senders) == len(set(senders))

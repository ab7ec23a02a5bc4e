"""How many steps virtual devices make between exchanges when nobody says."""

from __future__ import annotations

from typing import Any

import pytest

from peergrid.grid import Grid, Index
from peergrid.resolve import default_options
from peergrid.runtime.devices import Devices
from peergrid.stencil import Problem, stencil


def far(ndim: int, reach: int) -> Problem:
    """A stencil that reads so many cells away, along the first axis."""
    ahead: Index = (reach,) + (0,) * (ndim - 1)

    @stencil
    def pulled(u: Any) -> None:
        u.next[(0,) * ndim] = 0.5 * (u[(0,) * ndim] + u[ahead])

    return Problem.of(pulled(Grid((64,) * ndim).field("u")))


@pytest.mark.parametrize(("ndim", "reach", "depth"), [(3, 1, 8), (3, 4, 2), (3, 9, 1), (2, 4, 8), (1, 4, 8)])
def test_far_reads_in_3d_exchange_more_often(ndim: int, reach: int, depth: int) -> None:
    assert default_options(Devices("cpu", (0, 1)), far(ndim, reach)).depth == depth


@pytest.mark.parametrize(("devices", "depth"), [(4, 4), (16, 1), (64, 1)])
def test_thin_slabs_exchange_more_often(devices: int, depth: int) -> None:
    """Most of what a device computes is its own."""
    assert default_options(Devices("cpu", tuple(range(devices))), far(2, 1)).depth == depth


@pytest.mark.parametrize(("reach", "depth"), [(1, 8), (2, 1), (4, 1)])
def test_waves_in_3d_whose_fields_rotate_make_single_steps(reach: int, depth: int) -> None:
    @stencil
    def wave(u: Any) -> None:
        u.next[0, 0, 0] = u[reach, 0, 0] - u.prev[0, 0, 0]

    assert default_options(Devices("cpu", (0, 1)), Problem.of(wave(Grid((64,) * 3).field("u")))).depth == depth

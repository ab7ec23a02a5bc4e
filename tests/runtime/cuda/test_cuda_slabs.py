"""Slabs of a 3D grid whose updates differ: kernels of its own stream each, with the bits of those of one step."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from host_runs import carried_out

from peergrid import Options
from peergrid.bench.problems import noisy
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.stream3d.slabs import slabs
from peergrid.grid import Box, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.fdtd3d import (
    SIDES,
    VACUUM,
    Absorber,
    Domain,
    Drive,
    ElectricDipole,
    Medium,
    Slab,
    build,
    debye,
    lorentz,
)
from peergrid.models.fdtd3d import Receiver as Antenna
from peergrid.models.waveforms import Ricker
from peergrid.predict.launches import Site, launches
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.runtime.cuda.lowering.slabs import SlabsPlan
from peergrid.runtime.cuda.lowering.streaming import StreamingPlan
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, Receiver, Stage, stencil

STREAMS = replace(H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0)
POLES = {"debye": debye(2.0, 1e-11), "lorentz": lorentz(1.0, 5e9, 1e9)}


def soil(axis: int, pole: str, cells: Index = (44, 40, 46)) -> Problem:
    """Radar over a soil that remembers fields, absorbers on all sides, a source, receivers on both sides of its top."""
    middle = cells[axis] // 2 - 1  # no multiple of an access
    ids = np.zeros((6, *(n + 1 for n in cells)), np.uint8)
    ids[(slice(3), *(slice(middle) if k == axis else slice(None) for k in range(3)))] = 1
    media = VACUUM, Medium("soil", 4.0, 0.01, poles=(POLES[pole],))
    places = [tuple(middle + by if k == axis else 20 for k in range(3)) for by in (-2, 1, 3)]
    domain = Domain(
        cells,
        (0.002,) * 3,
        3e-12,
        11,
        media,
        ids,
        absorber=Absorber(tuple((side, Slab(5)) for side in SIDES)),
        sources=(ElectricDipole("z", (20, 20, 20), Drive(Ricker(1.5e9))),),
        receivers=tuple(Antenna(place) for place in places),  # type: ignore[arg-type]
    )
    return noisy(build(domain).problem)


@stencil
def spread(u: Any, v: Any) -> None:
    around = u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1]
    v.next[0, 0, 0] = v[0, 0, 0] + 0.1 * (around - 6 * u[0, 0, 0])


@stencil
def follow(u: Any, v: Any, k: float) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] + k * v[0, 0, 0]


def remember(axis: int) -> Any:
    """An update with a memory of its own and a coefficient that it reads beyond its slab."""
    before, behind = (tuple(by * (k == axis) for k in range(3)) for by in (-1, 1))

    @stencil
    def update(u: Any, v: Any, m: Any, c: Any) -> None:
        u.next[0, 0, 0] = u[0, 0, 0] + (c[before] + c[behind]) * v[0, 0, 0] - m[0, 0, 0]
        m.next[0, 0, 0] = 0.5 * m[0, 0, 0] + 0.1 * u[0, 0, 0]

    return update


def layered(axis: int, cuts: tuple[int, ...] = (15, 28), shape: Index = (44, 40, 46)) -> Problem:
    """Two stages, the second of which has another update in each layer; a receiver at each cut."""
    grid = Grid(shape)
    u, v = grid.field("u"), grid.field("v")
    ends = (0, *cuts, shape[axis])
    boxes = [grid.box.with_axis(axis, lo, hi) for lo, hi in pairwise(ends)]
    m, one = grid.field("m", within=boxes[1]), tuple(int(k == axis) for k in range(3))
    c = grid.field("c", within=boxes[1].grow(one, one))
    updates = [follow(u, v, 0.1 * (1 + number)).within(box) for number, box in enumerate(boxes)]
    updates[1] = remember(axis)(u, v, m, c).within(boxes[1])
    cells = [tuple(cut if k == axis else 20 for k in range(3)) for cut in cuts]
    heard = [Receiver(f"r{number}", "u", cell) for number, cell in enumerate(cells)]
    return noisy(Problem.of([spread(u, v), Stage(tuple(updates))], heard))


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
@pytest.mark.parametrize(
    ("strategy", "split"),
    [("serial", (1, 1, 1)), ("overlap", (1, 1, 1)), ("overlap", (2, 1, 1)), ("graph", (1, 1, 2)), ("peer", (1, 2, 1))],
)
@pytest.mark.parametrize(
    "problem", [soil(0, "debye"), soil(1, "lorentz"), soil(2, "debye"), layered(0), layered(1), layered(2)]
)
def test_same_bits_as_step_by_step(problem: Problem, strategy: StrategyName, split: Index) -> None:
    driver = HostDriver(gpu=STREAMS)
    assert carried_out(problem, split, Options(strategy, depth=1), driver) == expected(problem)
    assert "stream3d" in driver.kernels or split[0] > 1, "slabs of few planes are left to other kernels"


def plan_of(problem: Problem) -> Any:
    found, options = layout(problem, Partition(problem.grid, (1, 1, 1)), Options(depth=1)), Options("serial")
    kernels = Kernels(found, None, STREAMS, (132,), lambda one, other: True)
    (made,) = kernels.plans(one_iteration(found, options)).values()
    return made


def test_each_slab_streams_with_a_plan_of_its_own() -> None:
    made = plan_of(layered(2))
    assert isinstance(made, SlabsPlan)
    assert [(slab.lo[2], slab.hi[2]) for slab, _ in made.parts] == [(0, 15), (15, 28), (28, 46)]
    assert all(isinstance(plan, StreamingPlan) for _, plan in made.parts)
    texts = {plan.kernel.programs[0].source for _, plan in made.parts if isinstance(plan, StreamingPlan)}
    assert len(texts) == 3, "updates differ"
    assert {entry for entry, _ in made.served()} >= {"stream3d"}


def test_a_prediction_counts_the_launches_of_all_slabs() -> None:
    problem = layered(2)
    made, plan = plan_of(problem), layout(problem, Partition(problem.grid, (1, 1, 1)), Options(depth=1))
    works = launches(made, Site(plan, 0, STREAMS), (problem.grid.box,))
    assert sum(work.family == "streaming 3D" for work in works) == 3


def test_where_slabs_are_not_enough_there_are_none() -> None:
    grid = Grid((44, 40, 46))
    u, v = grid.field("u"), grid.field("v")
    inner = Box((10, 10, 10), (34, 30, 36))
    boxed = [follow(u, v, 0.1).within(inner), *(follow(u, v, 0.2).within(box) for box in grid.box - inner)]
    low, high = (grid.box.with_axis(0, *ends) for ends in ((0, 20), (20, 44)))
    apart = [follow(u, v, 0.1).within(low), follow(u, v, 0.2).within(high.with_axis(0, 21, 44))]
    halves = Stage((follow(u, v, 0.1).within(low), follow(u, v, 0.2).within(high)))
    assert slabs(Problem.of([spread(u, v), halves]))
    assert slabs(Problem.of([spread(u, v), Stage(tuple(boxed))])) == (), "they differ along all axes"
    assert slabs(Problem.of([spread(u, v), Stage(tuple(apart))])) == (), "a plane between them has neither"
    assert slabs(Problem.of([halves, spread(u, v)])) == (), "tiles would make cells of the other slab"
    assert slabs(Problem.of([spread(u, v), follow(u, v, 0.1)])) == (), "one update is enough"

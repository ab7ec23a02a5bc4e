"""Waves of two time levels in place: what they were a step before lies where they will be a step later."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from executions import STEPS
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from host_runs import carried_out
from runtime_problems import source_3d

from peergrid import Options
from peergrid.codegen.cuda.choose.one_step3d import one_pass
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.stream3d.rotation import rotation
from peergrid.grid import Boundary, Box, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.wave import Medium, Propagator, Scheme
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.runtime.cuda.lowering.streaming import StreamingPlan
from peergrid.runtime.cuda.memory.fields import Plan
from peergrid.schedule import build, layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, Receiver, Stage, stencil
from peergrid.stencil.cost import minimal_bytes

SHAPE = (40, 18, 37)
STREAMS = replace(H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0)
CASES: list[tuple[StrategyName, Index]] = [
    ("serial", (1, 1, 1)),
    ("threads", (2, 1, 1)),
    ("overlap", (1, 1, 1)),
    ("overlap", (3, 1, 1)),
    ("graph", (1, 2, 1)),
    ("peer", (2, 1, 1)),
]
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


def shot(**more: float) -> Problem:
    """A source and receivers between nodes, as model files have them."""
    values = np.random.default_rng(1).uniform(0, 1, SHAPE)
    waves = Propagator(Medium(SHAPE, 10.0, 2000 + 500 * values, **more), Scheme(4, layer=2))
    points = np.array([[153.0, 62.0, 71.0], [170.0, 70.0, 111.0], [160.0, 70.0, 110.0]])
    problem, _ = waves.problem(points[:2], np.ones((2, 8)), points)
    return problem


def matched(**more: float) -> Problem:
    """The same with perfectly matched layers, whose memories late stages read beside a cell: halos are wider."""
    shape = (72, *SHAPE[1:])
    values = np.random.default_rng(1).uniform(0, 1, shape)
    waves = Propagator(Medium(shape, 10.0, 2000 + 500 * values, **more), Scheme(4, layer=3, absorber="cpml"))
    points = np.array([[153.0, 62.0, 71.0], [170.0, 70.0, 111.0], [160.0, 70.0, 110.0]])
    problem, _ = waves.problem(points[:2], np.ones((2, 8)), points)
    return problem


@stencil
def wave(u: Any, m: Any) -> None:
    around = u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1]
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + m[0, 0, 0] * (around - 6 * u[0, 0, 0])


def written(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """A wave by hand: two sources of a cell in common, receivers there and elsewhere."""
    grid, noise = Grid(SHAPE, boundary), np.random.default_rng(1)
    now, earlier = (noise.uniform(0.1, 0.3, SHAPE) for _ in range(2))
    former, inside = now.copy(), (slice(1, -1),) * 3
    former[inside] = earlier[inside]
    u = grid.field("u", now, prev=former)
    m = grid.field("m", noise.uniform(0.1, 0.3, SHAPE))
    pulse = grid.signal("s", np.linspace(1, 2, 8))
    boxes = Box((19, 8, 9), (21, 10, 12)), Box((20, 9, 11), (23, 11, 13))
    sources = [Stage((source_3d(u, pulse).within(box),)) for box in boxes]
    cells = [(20, 9, 11), (5, 5, 5), (39, 17, 36), (0, 0, 0)]
    return Problem.of([wave(u, m), *sources], [Receiver(str(n), "u", cell) for n, cell in enumerate(cells)])


@pytest.mark.parametrize(("strategy", "split"), CASES)
@pytest.mark.parametrize("make", [shot, written, matched])
def test_same_bits_as_step_by_step(make: Any, strategy: StrategyName, split: Index) -> None:
    problem, driver = make(), HostDriver(gpu=STREAMS)
    assert rotation(problem) is not None
    assert carried_out(problem, split, Options(strategy, depth=1), driver) == expected(problem)
    assert ("stream3d" in driver.kernels) == (split[0] < 3 or make is matched), "thirds of 40 planes are too thin"


def test_two_waves_and_periodic_edges() -> None:
    for problem in (shot(epsilon=0.2, delta=0.1), written(("fixed", "periodic", "reflecting"))):
        assert rotation(problem) is not None
        for split in ((1, 1, 1), (2, 1, 1)):
            driver = HostDriver(gpu=STREAMS)
            assert carried_out(problem, split, Options("overlap", depth=1), driver) == expected(problem)
            assert "stream3d" in driver.kernels


def test_nothing_is_copied_or_allocated_for_the_step_before() -> None:
    problem = shot()
    found = rotation(problem)
    assert found is not None
    assert found.fields == {"u.prev": "u"}
    kernel = one_pass(found.step)
    assert kernel is not None
    (rings,) = kernel.pipelines
    moved = [ring.value.field for ring in rings.loaded] + [final.field for final in rings.levels.finals]
    assert sorted(name for name in moved if problem.fields[name].full) == ["u", "u", "u.prev", "velocity"]
    one, two = (Plan(layout(problem, Partition.over(problem.grid, 1), Options(depth=depth)), STEPS) for depth in (1, 2))
    assert one.rotating
    assert not two.rotating, "several steps compute cells more than once"
    assert minimal_bytes(written()) == 16 * prod(SHAPE)
    assert two.bytes(0) - one.bytes(0) >= 2 * one.blocks[0]["u.prev"].bytes


def test_receivers_are_served_beside_the_stream_and_sources_alone_behind_it() -> None:
    """Where receivers are of fields that early stages write; those of the wave itself are served behind it."""
    for problem, early in ((shot(), True), (written(), False)):
        plan, options = layout(problem, Partition(problem.grid, (1, 1, 1)), Options(depth=1)), Options("serial")
        kernels = Kernels(plan, None, STREAMS, (132,), lambda one, other: True)
        (made,) = kernels.plans(one_iteration(plan, options)).values()
        assert isinstance(made, StreamingPlan)
        (device, boxes), *_ = made.works
        parts = made.kernel.parts_of(boxes, STREAMS, made.setting.recorded[device])
        beside = [plan.setting.problem for plan, cells in made.beside(parts) if cells == parts.after]
        assert [bool(one.receivers) for one in beside] == [True] * early
        ((behind, cells),) = made.behind(parts)
        assert bool(behind.setting.problem.receivers) is not early
        anew = [update.box for stage in problem.stages[-2:] for update in stage.updates]
        anew += [] if early else [Box.cell(receiver.cell) for receiver in problem.receivers]
        wanted = {cell for box in anew for cell in _cells(box)}
        assert sorted(cell for box in cells for cell in _cells(box)) == sorted(wanted), "each once, and no others"


def _cells(box: Box) -> list[Index]:
    return list(product(*map(range, box.lo, box.hi)))


def test_a_run_goes_on_from_what_was_gathered() -> None:
    """From either slot, as checkpoints are restored."""
    problem, options = shot(), Options("overlap", depth=1)
    plan = layout(problem, Partition(problem.grid, (2, 1, 1)), options)
    state: dict[str, Any] = {name: described.global_array() for name, described in problem.fields.items()}
    for first, count in ((0, 3), (3, STEPS - 3)):
        executor = CudaExecutor(plan, STEPS, (0, 1), driver=HostDriver(gpu=STREAMS), submission_threads=8)
        slot = first % 2
        for name, values in state.items():
            executor.load(name, values, slot)
        schedule = build(plan, options, count, slot)
        executor.execute(schedule, 1, first)
        state |= {name: executor.gather(name, schedule.final) for name in problem.state}
        executor.close()
    fields, _ = expected(problem)
    assert {name: state[name].tobytes() for name in problem.state} == fields


@stencil
def between(r: Any, u: Any) -> None:
    r.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.5 * u[0, 1, 0]


def test_fields_keep_memory_of_their_own_where_cells_are_made_twice() -> None:
    """By receivers behind the wave that read beside it; fluxes change in matched layers before waves read them."""
    grid = Grid(SHAPE)
    u, m, r = grid.field("u"), grid.field("m", 0.1), grid.field("r", within=Box((7, 9, 5), (8, 10, 30)))
    heard = between(r, u).within(r.box)
    before, behind = Problem.of([heard, wave(u, m)]), Problem.of([wave(u, m), heard])
    assert rotation(before) is not None
    assert rotation(behind) is None
    assert carried_out(behind, (2, 1, 1), Options("overlap", depth=1), HostDriver(gpu=STREAMS)) == expected(behind)
    waves = Propagator(
        Medium(SHAPE, 10.0, np.full(SHAPE, 2000.0), density=np.full(SHAPE, 1.5)), Scheme(4, layer=2, absorber="cpml")
    )
    point = np.array([[153.0, 62.0, 71.0]])
    assert rotation(waves.problem(point, np.ones((1, 8)), point)[0]) is None

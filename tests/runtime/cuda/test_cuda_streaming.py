"""Passes of one step over 3D grids by kernels that stream, with kernels of one step for sources, layers, receivers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from host_runs import carried_out
from layer_problems import absorbing
from runtime_problems import damped_3d, heat_3d, source_3d

from peergrid import Options
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.errors import CheckFailed
from peergrid.grid import Boundary, Box, Field, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.wave import Medium, Propagator, Scheme
from peergrid.models.wave.scheme import TimeOrder
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import build, layout
from peergrid.schedule.ops import Copy, WrappedCompute
from peergrid.schedule.proved import require_right
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, Receiver, Stage, stencil

SHAPE, LAYERS = (48, 22, 45), 2
GPU = replace(H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@stencil
def wave(u: Any, v: Any, m: Any) -> None:
    """The next value over the former one."""
    total = -6.0 * u[0, 0, 0]
    for k in (1, 2):
        total = total + (u[k, 0, 0] + u[-k, 0, 0] + u[0, k, 0] + u[0, -k, 0] + u[0, 0, k] + u[0, 0, -k]) / k
    v.next[0, 0, 0] = 2 * u[0, 0, 0] - v[0, 0, 0] + m[0, 0, 0] * total


@stencil
def flow(p: Any, vz: Any, vy: Any, vx: Any) -> None:
    vz.next[0, 0, 0] = vz[0, 0, 0] - 0.2 * (p[1, 0, 0] - p[0, 0, 0])
    vy.next[0, 0, 0] = vy[0, 0, 0] - 0.2 * (p[0, 1, 0] - p[0, 0, 0])
    vx.next[0, 0, 0] = vx[0, 0, 0] - 0.2 * (p[0, 0, 1] - p[0, 0, 0])


@stencil
def pressure(p: Any, vz: Any, vy: Any, vx: Any) -> None:
    p.next[0, 0, 0] = p[0, 0, 0] - 0.3 * (
        (vz[0, 0, 0] - vz[-1, 0, 0]) + (vy[0, 0, 0] - vy[0, -1, 0]) + (vx[0, 0, 0] - vx[0, 0, -1])
    )


def random(grid: Grid, name: str, seed: int) -> Field:
    return grid.field(name, np.random.default_rng(seed).uniform(0.1, 0.3, grid.shape))


def waves(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """Two time steps in one, with a damping layer and a source in between, heard at three cells."""
    grid = Grid(SHAPE, boundary)
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    d = grid.profile("d", 0, np.linspace(0.2, 0.9, SHAPE[0]))
    layer = grid.box.with_axis(0, 0, LAYERS)
    stages = [
        wave(u, v, m),
        Stage((damped_3d(v, d).within(layer),)),
        source_3d(v, grid.signal("s", np.linspace(1, 2, 8))).within(Box.cell((24, 11, 20))),
        wave(v, u, m),
    ]
    cells = [("u", (24, 11, 20)), ("v", (24, 12, 22)), ("u", (1, 5, 7)), ("m", (30, 3, 40))]
    return Problem.of(stages, [Receiver(str(n), name, cell) for n, (name, cell) in enumerate(cells)])


def sound(boundary: Boundary | tuple[Boundary, ...] = "fixed", shape: Index = SHAPE) -> Problem:
    grid = Grid(shape, boundary)
    p, vz, vy, vx = (random(grid, name, seed) for seed, name in enumerate(("p", "vz", "vy", "vx")))
    return Problem.of([flow(p, vz, vy, vx), pressure(p, vz, vy, vx)])


@stencil
def reaction(u: Any, v: Any) -> None:
    """Each field diffuses; a quotient is taken of both, which are 0 beside the grid."""
    for f, other in ((u, v), (v, u)):
        near = f[1, 0, 0] + f[-1, 0, 0] + f[0, 1, 0] + f[0, -1, 0] + f[0, 0, 1] + f[0, 0, -1]
        f.next[0, 0, 0] = f[0, 0, 0] + 0.1 * (near - 6 * f[0, 0, 0]) + 0.01 * f[0, 0, 0] / (f[0, 0, 0] + other[0, 0, 0])


@stencil
def mean(u: Any, v: Any) -> None:
    """Weights for 27 cells of one field, and those of a plane of the other."""
    for f, planes in ((u, (-1, 0, 1)), (v, (0,))):
        cells = [f[z, y, x] * (0.04 - 0.01 * abs(x)) for z in planes for y in (-1, 0, 1) for x in (-1, 0, 1)]
        f.next[0, 0, 0] = sum(cells[1:], cells[0])


@stencil
def distant(u: Any, d: Any) -> None:
    """Quotients of values up to two cells away along rows and columns, and four across planes."""
    sides = (u[4, 0, 0], u[-4, 0, 0], u[0, 2, 0], u[0, -1, 0], u[0, 0, 2], u[0, 0, -2], u[2, 0, 0], u[0, 0, 1])
    u.next[0, 0, 0] = 0.25 * sum(sides[1:], sides[0]) / (d[0, 0, 0] + d[0, 0, 1])


@stencil
def mean_of_one(u: Any) -> None:
    cells = [u[z, y, x] * (0.04 - 0.01 * abs(x)) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    u.next[0, 0, 0] = sum(cells[1:], cells[0])


def of_one(step: Any, shape: Index) -> Problem:
    return Problem.of(step(random(Grid(shape), "u", 1)))


def of_two(step: Any, shape: Index = SHAPE, boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """An update of two fields or of one with a coefficient."""
    grid = Grid(shape, boundary)
    return Problem.of(step(random(grid, "u", 1), random(grid, "v", 2)))


@stencil
def between(r: Any, u: Any) -> None:
    r.next[0, 0, 0] = 0.25 * u[0, 0, 0] + 0.25 * u[0, 0, 1] + 0.5 * u[0, 1, 0]


def listened() -> Problem:
    """A wave whose values between nodes are looked up by stages of few cells, before it and after it."""
    grid = Grid(SHAPE, "fixed")
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    line = Box((7, 9, 5), (8, 10, 40))
    r, s = (grid.field(name, within=line) for name in "rs")
    stages = [between(r, u).within(line), wave(u, v, m), wave(v, u, m), between(s, u).within(line)]
    return Problem.of(stages, [Receiver("0", "r", (7, 9, 12)), Receiver("1", "s", (7, 9, 12))])


@stencil
def near(u: Any, v: Any, m: Any) -> None:
    around = u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, -1, 0] + u[0, 0, 1] + u[0, 0, -1]
    v.next[0, 0, 0] = 0.5 * v[0, 0, 0] + m[0, 0, 0] * around


def narrower(first: Any = near, last: Any = wave) -> Problem:
    """A step whose two updates of a field read so far that one of them leaves more cells at the edges as they are."""
    grid = Grid(SHAPE, "fixed")
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    return Problem.of([first(u, v, m), near(v, u, m), last(u, v, m)])


def changed_behind(layer: Box) -> Problem:
    """Two launches; what the first one leaves beyond its cells for the second is damped in a layer behind both."""
    grid = Grid(SHAPE, "fixed")
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    d = grid.profile("d", 0, np.linspace(0.2, 0.9, SHAPE[0]))
    return Problem.of([wave(u, v, m), wave(v, u, m), Stage((damped_3d(v, d).within(layer),))])


def driven_before() -> Problem:
    """A source before two launches, which the first one reads and the second one writes over."""
    grid = Grid(SHAPE, "fixed")
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    source = source_3d(u, grid.signal("s", np.linspace(1, 2, 8))).within(Box.cell((24, 7, 20)))
    return Problem.of([Stage((source,)), wave(u, v, m), wave(v, u, m)])


def driven_between(box: Box) -> Problem:
    """A source between two stages of one launch, the second of which reads beside a cell."""
    grid = Grid(SHAPE, "fixed")
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    source = source_3d(v, grid.signal("s", np.linspace(1, 2, 8))).within(box)
    return Problem.of([near(u, v, m), Stage((source,)), near(v, u, m)])


def surrounded() -> Problem:
    """Two stages with absorbers on all sides, in the stage of the usual update."""
    return absorbing(SHAPE)


@pytest.mark.parametrize(
    ("strategy", "split"),
    [("serial", (1, 1, 1)), ("threads", (2, 1, 1)), ("overlap", (1, 1, 1)), ("graph", (2, 1, 1)), ("peer", (2, 1, 1))],
)
@pytest.mark.parametrize("make", [waves, sound, listened, surrounded])
def test_same_bits_as_step_by_step(make: Any, split: Index, strategy: StrategyName) -> None:
    problem, driver = make(), HostDriver(gpu=GPU)
    assert carried_out(problem, split, Options(strategy, depth=1), driver) == expected(problem)
    assert "stream3d" in driver.kernels


@pytest.mark.parametrize("boundary", ["fixed", ("periodic", "fixed", "reflecting")])
@pytest.mark.parametrize(
    ("strategy", "split"), [("serial", (1, 1, 1)), ("overlap", (2, 1, 1)), ("peer", (1, 2, 1)), ("graph", (1, 1, 2))]
)
@pytest.mark.parametrize("step", [reaction, mean, distant])
def test_same_bits_in_the_shapes_for_two_fields(step: Any, split: Index, strategy: StrategyName, boundary: Any) -> None:
    """Tiles that a grid does not fill, so that some threads have no cells."""
    problem, driver = of_two(step, (60, 30, 75), boundary), HostDriver(gpu=GPU)
    assert carried_out(problem, split, Options(strategy, depth=1), driver) == expected(problem)
    assert "stream3d" in driver.kernels


def test_tilted_waves_with_layers_sources_and_receivers_stream() -> None:
    shape = (36, 26, 33)
    angles = np.random.default_rng(1).uniform(0, 1, (2, *shape))
    medium = Medium(shape, 10.0, 2000 + 500 * angles[0], None, 0.2 * angles[1], 0.1 * angles[1], *angles)
    waves = Propagator(medium, Scheme(layer=2))
    points = np.array([[153.0, 62.0, 71.0], [170.0, 70.0, 111.0]])
    problem, _ = waves.problem(points[:1], np.ones((1, 8)), points)
    driver = HostDriver(gpu=GPU)
    assert carried_out(problem, (1, 1, 1), Options("overlap", depth=1), driver) == expected(problem)
    assert "stream3d" in driver.kernels


@pytest.mark.parametrize(("more", "time_order"), [({"epsilon": 0.2, "delta": 0.1}, 2), ({}, 4)])
def test_waves_with_matched_layers_stream_between_them(more: Mapping[str, float], time_order: TimeOrder) -> None:
    shape, values = (36, 26, 33), np.random.default_rng(1).uniform(0, 1, (36, 26, 33))
    scheme = Scheme(order=2, layer=2, absorber="cpml", time_order=time_order)
    waves = Propagator(Medium(shape, 10.0, 2000 + 500 * values, **more), scheme)
    points = np.array([[153.0, 62.0, 71.0], [170.0, 70.0, 111.0]])
    problem, _ = waves.problem(points[:1], np.ones((1, 8)), points)
    driver = HostDriver(gpu=GPU)
    assert carried_out(problem, (1, 1, 1), Options("overlap", depth=1), driver) == expected(problem)
    assert "stream3d" in driver.kernels


@pytest.mark.parametrize("boundary", ["reflecting", "periodic", ("fixed", "periodic", "reflecting")])
@pytest.mark.parametrize("make", [waves, sound])
def test_boundaries(make: Any, boundary: Any) -> None:
    problem = make(boundary) if make is sound or boundary != "periodic" else sound(("periodic", "fixed", "periodic"))
    driver = HostDriver(gpu=GPU)
    assert carried_out(problem, (1, 1, 1), Options("overlap", depth=1), driver) == expected(problem)
    assert "stream3d" in driver.kernels


@pytest.mark.parametrize("strategy", ["serial", "overlap", "graph"])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("shape", [(48, 22, 44), SHAPE])
def test_nothing_is_copied_across_edges_that_kernels_wrap(shape: Index, depth: int, strategy: StrategyName) -> None:
    problem, driver = sound(("periodic", "fixed", "periodic"), shape), HostDriver(gpu=GPU)
    assert carried_out(problem, (1, 1, 1), Options(strategy, depth=depth), driver) == expected(problem)
    assert bool(driver.kernels & {"store_4"}) == (shape[2] % 4 != 0)


@stencil
def far(u: Any) -> None:
    u.next[0, 0, 0] = 0.5 * u[0, 0, 0] + 0.1 * (u[2, 0, 0] + u[-2, 0, 0] + u[0, 0, 2] + u[0, 0, -2])


def test_schedules_of_a_layout_wrap_all_or_none() -> None:
    """Three steps read more cells across an edge of the shortest axis than it has; one and two steps do not."""
    problem, options = Problem.of(far(random(Grid((48, 22, 4), "periodic"), "u", 1))), Options("serial", depth=3)
    plan = layout(problem, Partition(problem.grid, (1, 1, 1)), options)
    with closing(CudaExecutor(plan, 3, (0,), driver=HostDriver(gpu=GPU))) as executor:
        made = [executor.carried_out(build(plan, options, steps, 0)).ops for steps in (1, 2, 3)]
    assert len({any(isinstance(op, WrappedCompute) for op in ops) for ops in made}) == 1


@stencil
def filled(u: Any) -> None:
    u.next[0, 0, 0] = 1.0


@pytest.mark.parametrize("depth", [1, 3])
def test_updates_that_read_nothing(depth: int) -> None:
    problem = Problem.of(filled(random(Grid((48, 22, 44), "periodic"), "u", 1)))
    answer = carried_out(problem, (1, 1, 1), Options("overlap", depth=depth, block=1), HostDriver(gpu=GPU))
    assert answer == expected(problem)


@pytest.mark.parametrize(("depth", "block"), [(3, 3), (4, 2)])
@pytest.mark.parametrize("split", [(2, 1, 1), (1, 1, 3)])
def test_several_steps_of_parts_of_a_periodic_grid(split: Index, depth: int, block: int) -> None:
    problem, driver = sound("periodic", (48, 24, 44)), HostDriver(seed=3, gpu=GPU)
    assert carried_out(problem, split, Options("overlap", depth=depth, block=block), driver) == expected(problem)


def heat(boundary: Boundary | tuple[Boundary, ...], shape: Index) -> Problem:
    return Problem.of(heat_3d(random(Grid(shape, boundary, "float32"), "u", 1), 0.1))


def two_waves(boundary: Boundary | tuple[Boundary, ...], shape: Index) -> Problem:
    """Two time steps in one."""
    grid = Grid(shape, boundary, "float32")
    u, v, m = (random(grid, name, seed) for seed, name in enumerate("uvm"))
    return Problem.of([wave(u, v, m), wave(v, u, m)])


@pytest.mark.parametrize("split", [(1, 1, 1), (2, 2, 1)])
@pytest.mark.parametrize("boundary", ["fixed", "periodic"])
@pytest.mark.parametrize(
    ("make", "depth"), [*((make, depth) for make in (heat, sound) for depth in (2, 3, 4)), (two_waves, 2)]
)
def test_several_steps_by_tensor_copies(make: Any, boundary: Any, split: Index, depth: int) -> None:
    problem, driver = make(boundary=boundary, shape=(40, 32, 44)), HostDriver(seed=depth, gpu=GPU)
    options = Options("overlap", depth=depth, block=depth)
    assert carried_out(problem, split, options, driver) == expected(problem)
    assert any("const __grid_constant__ Tensors" in text for text in driver.texts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("split", [(1, 2, 1), (1, 1, 3)])
def test_cuts_along_any_axis(split: Index, seed: int) -> None:
    """Also close to a source in the middle of a step, which the streams of two boxes pass in any order."""
    problem = waves()
    answer = carried_out(problem, split, Options("overlap", depth=1), HostDriver(seed=seed, gpu=GPU))
    assert answer == expected(problem)


@pytest.mark.parametrize(("first", "last"), [(near, wave), (wave, near)])
def test_updates_of_a_field_that_write_other_cells(first: Any, last: Any) -> None:
    problem = narrower(first, last)
    assert carried_out(problem, (1, 1, 1), Options("serial", depth=1), HostDriver(gpu=GPU)) == expected(problem)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("layer", [Box((0, 0, 0), (4, 22, 45)), Box.cell((24, 7, 20))])
def test_fields_that_change_behind_the_launches_that_hand_them_on(layer: Box, seed: int) -> None:
    """In a layer beside the stream, and in a cell close to the edge of two boxes."""
    problem, driver = changed_behind(layer), HostDriver(seed=seed, gpu=GPU)
    assert carried_out(problem, (1, 2, 1), Options("overlap", depth=1), driver) == expected(problem)


@pytest.mark.parametrize("seed", range(6))
def test_a_source_before_two_launches_close_to_the_edge_of_two_boxes(seed: int) -> None:
    problem, driver = driven_before(), HostDriver(seed=seed, gpu=GPU)
    assert carried_out(problem, (1, 2, 1), Options("overlap", depth=1), driver) == expected(problem)


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize(
    ("split", "box"), [((1, 2, 1), Box((24, 9, 20), (25, 14, 24))), ((2, 1, 1), Box((22, 11, 20), (27, 12, 21)))]
)
def test_a_source_between_two_stages_of_a_launch_close_to_the_edge_of_two_boxes(
    split: Index, box: Box, seed: int
) -> None:
    problem, driver = driven_between(box), HostDriver(seed=seed, gpu=GPU)
    assert carried_out(problem, split, Options("overlap", depth=1), driver) == expected(problem)


@pytest.mark.parametrize("strategy", ["serial", "overlap", "graph"])
@pytest.mark.parametrize("split", [(1, 1, 1), (2, 1, 1)])
def test_runs_that_end_in_the_other_slot_are_proved_as_they_are_carried_out(
    split: Index, strategy: StrategyName
) -> None:
    """Ghost cells at edges that kernels wrap have no values, neither for what follows."""
    problem, options = sound("periodic", (48, 22, 44)), Options(strategy, depth=1)
    plan = layout(problem, Partition(problem.grid, split), options)
    with closing(CudaExecutor(plan, 3, tuple(range(plan.devices)), driver=HostDriver(gpu=GPU))) as executor:
        for steps, first in ((1, 0), (2, 1), (3, 1)):
            made = executor.carried_out(build(plan, options, steps, first))
            assert any(isinstance(op, WrappedCompute) for op in made.ops) == (strategy == "serial" or plan.devices == 1)
            require_right(plan, made)
            unread = [op for op in made.ops if not isinstance(op, Copy)]
            if plan.devices > 1:
                with pytest.raises(CheckFailed, match="Stale read"):
                    require_right(plan, replace(made, ops=tuple(unread)))

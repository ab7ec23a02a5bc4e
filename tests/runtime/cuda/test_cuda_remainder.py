"""Passes of several steps over 3D grids with absorbing layers, made step by step through memory of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from executions import STEPS
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from host_runs import carried_out
from runtime_problems import damped_3d, heat_3d, source_3d

from peergrid import Options
from peergrid.codegen.cuda.choose.shape3d import pass3d
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.errors import DoesNotFit
from peergrid.grid import Boundary, Box, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.models.wave import Medium, Propagator, Scheme
from peergrid.runtime.cuda.memory.fields import Plan, has_room
from peergrid.schedule import layout
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, Receiver, Stage, stencil

SHAPE, LAYERS = (18, 16, 40), 2
GPU = replace(H200, narrow_cells=1)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@stencil
def flow(p: Any, vz: Any, vy: Any, vx: Any, c: float) -> None:
    vz.next[0, 0, 0] = vz[0, 0, 0] - c * (p[1, 0, 0] - p[0, 0, 0])
    vy.next[0, 0, 0] = vy[0, 0, 0] - c * (p[0, 1, 0] - p[0, 0, 0])
    vx.next[0, 0, 0] = vx[0, 0, 0] - c * (p[0, 0, 1] - p[0, 0, 0])


@stencil
def pressure(p: Any, vz: Any, vy: Any, vx: Any, k: Any) -> None:
    p.next[0, 0, 0] = p[0, 0, 0] - k[0, 0, 0] * (
        (vz[0, 0, 0] - vz[-1, 0, 0]) + (vy[0, 0, 0] - vy[0, -1, 0]) + (vx[0, 0, 0] - vx[0, 0, -1])
    )


@stencil
def absorbed(p: Any, vz: Any, psi: Any, b: Any) -> None:
    psi.next[0, 0, 0] = b[0, 0, 0] * psi[0, 0, 0] + (vz[0, 0, 0] - vz[-1, 0, 0])
    p.next[0, 0, 0] = p[0, 0, 0] - 0.1 * psi[0, 0, 0]


def sound(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """Sound with layers of memory at both ends of axes 0 and 2, a source, receivers inside and in the layers."""
    grid = Grid(SHAPE, boundary)
    noise = np.random.default_rng(3)
    p, vz, vy, vx = (grid.field(name, noise.random(SHAPE)) for name in ("p", "vz", "vy", "vx"))
    k = grid.field("k", noise.uniform(0.1, 0.3, SHAPE))
    b = grid.profile("b", 0, np.linspace(0.2, 0.9, SHAPE[0]))
    inside = grid.box.with_axis(0, LAYERS, SHAPE[0] - LAYERS).with_axis(2, LAYERS, SHAPE[2] - LAYERS)
    plain = pressure(p, vz, vy, vx, k).within(inside)
    layers = [
        absorbed(p, vz, grid.field(f"psi{n}", within=box), b).within(box) for n, box in enumerate(grid.box - inside)
    ]
    pulse = grid.signal("s", np.linspace(1, 2, 8))
    stages = [flow(p, vz, vy, vx, 0.2), Stage((plain, *layers)), source_3d(p, pulse).within(Box.cell((9, 8, 21)))]
    places = [
        ("p", (9, 8, 21)),
        ("vx", (0, 0, 0)),
        ("p", (17, 15, 39)),
        ("vy", (6, 5, 11)),
        ("k", (8, 7, 6)),
        ("b", (5, 3, 7)),
    ]
    return Problem.of(stages, [Receiver(str(n), name, cell) for n, (name, cell) in enumerate(places)])


@pytest.mark.parametrize("strategy", ["serial", "threads", "overlap", "graph", "peer"])
@pytest.mark.parametrize(("split", "depth"), [((1, 1, 1), 3), ((2, 1, 1), 2)])
def test_same_bits_as_step_by_step(split: Index, depth: int, strategy: StrategyName) -> None:
    problem, driver = sound(), HostDriver(gpu=GPU)
    assert carried_out(problem, split, Options(strategy, depth=depth), driver) == expected(problem)
    assert any("const __grid_constant__ Tensors" in text for text in driver.texts)
    assert {kernel.split("_")[0] for kernel in driver.kernels} >= {"rows", "record"}


@pytest.mark.parametrize("boundary", ["reflecting", ("fixed", "periodic", "reflecting")])
def test_boundaries(boundary: Any) -> None:
    problem = sound(boundary)
    assert carried_out(problem, (1, 1, 1), Options("overlap", depth=2), HostDriver(gpu=GPU)) == expected(problem)


@pytest.mark.parametrize("seed", [1, 2])
def test_large_regions_beside_small_ones(seed: int) -> None:
    """In streams of their own: what a step leaves in between waits for none but its readers."""
    gpu = replace(GPU, wide_cube=1000, wide_columns=20, concurrent_cells=1)
    problem = sound()
    assert carried_out(problem, (1, 2, 1), Options("overlap", depth=3), HostDriver(seed=seed, gpu=gpu)) == expected(
        problem
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("depth", [4, 8])
def test_boundary_and_interior_share_what_four_steps_leave_in_between(depth: int, seed: int) -> None:
    """Both at once, in any order: no block between the steps holds another step's values while one reads it."""
    grid = Grid((44, 14, 40))
    u = grid.field("u", np.random.default_rng(3).random(grid.shape))
    d = grid.profile("d", 1, np.linspace(0.2, 0.9, 14))
    problem = Problem.of([heat_3d(u, 0.1), Stage((damped_3d(u, d).within(grid.box.with_axis(1, 0, LAYERS)),))])
    options = Options("overlap", depth=depth, block=4)
    assert carried_out(problem, (2, 1, 1), options, HostDriver(seed=seed, gpu=GPU)) == expected(problem)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_boundary_and_interior_share_scratch_of_the_same_step_alone(seed: int) -> None:
    """Two kernels write the field in a step, and what is between them is another's in the next step."""
    grid = Grid((44, 14, 40))
    u = grid.field("u", np.random.default_rng(3).random(grid.shape))
    d = grid.profile("d", 1, np.linspace(0.2, 0.9, 14))
    layer = Stage((damped_3d(u, d).within(grid.box.with_axis(1, 0, LAYERS)),))
    problem = Problem.of([heat_3d(u, 0.1), heat_3d(u, 0.05), layer])
    options, driver = Options("overlap", depth=2), HostDriver(seed=seed, gpu=GPU)
    assert carried_out(problem, (2, 1, 1), options, driver) == expected(problem)
    assert "stream3d" in driver.kernels


@pytest.mark.parametrize("strategy", ["serial", "overlap"])
def test_receivers_between_nodes_near_a_cut(strategy: StrategyName) -> None:
    """They read farther than the wave itself: steps in between make no cells whose reads no memory holds."""
    shape, values = (60, 20, 20), np.random.default_rng(1).uniform(0, 1, (60, 20, 20))
    waves = Propagator(Medium(shape, 10.0, 2000 + 500 * values), Scheme(2, layer=2))
    point = np.array([[283.0, 92.0, 91.0]])
    problem, _ = waves.problem(point, np.ones((1, 8)), point)
    driver = HostDriver(gpu=GPU)
    assert carried_out(problem, (2, 1, 1), Options(strategy, depth=2), driver) == expected(problem)
    assert "stream3d" in driver.kernels


def test_tiles_are_lower_where_a_gpu_gives_less_shared_memory() -> None:
    """T4s give a thread block 64 KiB; this grid is so small that tiles shrink at 48."""
    problem, driver = sound(), HostDriver(gpu=GPU.with_block_shared(48 << 10))
    assert pass3d(problem, 3, GPU) != pass3d(problem, 3, GPU.with_block_shared(48 << 10))
    assert carried_out(problem, (1, 1, 1), Options("overlap", depth=3), driver) == expected(problem)
    assert 0 < driver.asked <= 48 << 10


def test_memory_in_between_is_counted() -> None:
    """Two more blocks of the state for three steps, and a sentence where they do not fit."""
    problem = sound()
    kernel = pass3d(problem, 3)
    assert kernel is not None
    assert kernel.leaves_remainder
    driver = HostDriver(gpu=GPU)
    carried_out(problem, (1, 1, 1), Options("overlap", depth=1), driver)
    state = sum(problem.fields[name].box.size for name in problem.state) * problem.itemsize
    with_remainder = HostDriver(gpu=GPU)
    carried_out(problem, (1, 1, 1), Options("overlap", depth=3), with_remainder)
    assert with_remainder.peak > driver.peak + 2 * state
    options = Options("overlap", depth=3)
    plan = Plan(layout(problem, Partition.over(problem.grid, 1), options), STEPS)
    assert has_room(plan, (0,), HostDriver(gpu=GPU))
    assert not has_room(plan, (0,), HostDriver(free=(64 << 20) + driver.peak))
    with pytest.raises(DoesNotFit, match="GiB free"):
        carried_out(problem, (1, 1, 1), Options("overlap", depth=3), HostDriver(free=(64 << 20) + driver.peak))

"""Boundary region and interior in one launch, whose first tiles a queue awaits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from executions import STEPS, carry_through, load
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver
from runtime_problems import damped_3d, source_3d

from peergrid import Options
from peergrid.codegen.cuda.gpu_model import H200, Streams
from peergrid.codegen.cuda.stream3d.tiles import first
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.errors import DeviceFault
from peergrid.grid import Boundary, Box, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.lowering.lower import Lowering
from peergrid.runtime.cuda.lowering.merged import implied
from peergrid.runtime.cuda.lowering.signals import ADDRESS, WRITE
from peergrid.runtime.cuda.lowering.streaming import awaited_word
from peergrid.schedule import build, layout
from peergrid.schedule.ops import Compute, Flag, Record, Wait
from peergrid.stencil import Problem, Receiver, Stage, stencil

SHAPE = (72, 44, 70)
SMALL = (StreamShape(32, 8, 1, 1),)
GPU = replace(
    H200, one_step_rates=(1e-9, 1e-9), streamed_share_3d=0, shared=1, streams=Streams(SMALL, SMALL, SMALL, SMALL)
)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


@stencil
def wave(u: Any, m: Any) -> None:
    around = -6.0 * u[0, 0, 0]
    for k in (1, 2):
        around = around + (u[k, 0, 0] + u[-k, 0, 0] + u[0, k, 0] + u[0, -k, 0] + u[0, 0, k] + u[0, 0, -k]) / k
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + m[0, 0, 0] * around


@stencil
def turning(u: Any, v: Any, m: Any) -> None:
    """The next value over the former one."""
    around = sum(u[k, 0, 0] + u[-k, 0, 0] + u[0, k, 0] + u[0, -k, 0] + u[0, 0, k] + u[0, 0, -k] for k in (1, 2))
    v.next[0, 0, 0] = 2 * u[0, 0, 0] - v[0, 0, 0] + m[0, 0, 0] * (around - 12 * u[0, 0, 0])


@stencil
def slope(g: Any, u: Any) -> None:
    g.next[0, 0, 0] = 0.3 * (u[1, 0, 0] - u[-1, 0, 0]) + 0.1 * (u[0, 2, 0] - u[0, -2, 0]) + 0.2 * u[0, 0, 2]


@stencil
def tilted(u: Any, g: Any, m: Any) -> None:
    along = g[2, 0, 0] - g[-2, 0, 0] + g[0, 1, 0] - g[0, -1, 0] + g[0, 0, 2] - g[0, 0, -1]
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + m[0, 0, 0] * along


def fields(boundary: Boundary | tuple[Boundary, ...]) -> tuple[Grid, Any, Any]:
    grid, noise = Grid(SHAPE, boundary), np.random.default_rng(1)
    now = noise.uniform(0.1, 0.3, SHAPE)
    return grid, grid.field("u", now, prev=now), grid.field("m", noise.uniform(0.1, 0.3, SHAPE))


def plain(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    _, u, m = fields(boundary)
    return Problem.of(wave(u, m))


def shot(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """A source and a receiver, the cells of which are made anew behind the stream."""
    grid, u, m = fields(boundary)
    source = source_3d(u, grid.signal("s", np.linspace(1, 2, 8))).within(Box.cell((20, 9, 11)))
    return Problem.of([wave(u, m), Stage((source,))], [Receiver("0", "u", (50, 30, 40))])


@stencil
def between(g: Any, u: Any) -> None:
    """A value between nodes."""
    g.next[0, 0, 0] = 0.6 * u[0, 0, 0] + 0.3 * u[1, 0, 0] + 0.1 * u[2, 0, 0]


def near(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """A source on all sides of where devices meet, and receivers between nodes there: neither holds up a copy."""
    grid, u, m = fields(boundary)
    middle = Box((33, 20, 32), (39, 25, 38))
    g = grid.field("g", 0.0, within=middle)
    source = source_3d(u, grid.signal("s", np.linspace(1, 2, 8))).within(middle)
    heard = [Receiver(str(n), "g", (34 + n, 22, 35)) for n in range(4)]
    return Problem.of([between(g, u).within(middle), wave(u, m), Stage((source,))], heard)


@stencil
def echoed(g: Any, u: Any) -> None:
    g.next[0, 0, 0] = 0.5 * g[1, 0, 0] + 0.25 * g[0, -1, 0] + 0.1 * u[2, 0, 0]


def echo(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """An early stage that reads its own field beside the cell: halos of this are sent, too."""
    problem = near(boundary)
    g, u = problem.fields["g"], problem.fields["u"]
    early = Stage((echoed(g, u).within(g.box.grow((-1,) * 3, (-1,) * 3)),))
    return replace(problem, stages=(early, *problem.stages[1:]))


def mixed(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """Receivers at nodes, too, so that all are served behind the stream, those between nodes included."""
    problem = near(boundary)
    return replace(problem, receivers=(*problem.receivers, Receiver("node", "u", (36, 21, 34))))


def several(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """Two launches a step, of which the second one is awaited."""
    grid, u, m = fields(boundary)
    g = grid.field("g", 0.0)
    return Problem.of([slope(g, u), tilted(u, g, m)])


def turns(boundary: Boundary | tuple[Boundary, ...] = "fixed") -> Problem:
    """Two time steps, after which the fields have changed places."""
    grid, noise = Grid(SHAPE, boundary), np.random.default_rng(2)
    u, v, m = (grid.field(name, noise.uniform(0.1, 0.3, SHAPE)) for name in "uvm")
    return Problem.of([turning(u, v, m), turning(v, u, m)])


def driven() -> Problem:
    """A source between the two launches of a step, near which two streams of a device must not run at once."""
    grid, u, m = fields("fixed")
    g = grid.field("g", 0.0)
    source = source_3d(g, grid.signal("s", np.linspace(1, 2, 8))).within(Box.cell((20, 18, 30)))
    return Problem.of([slope(g, u), Stage((source,)), tilted(u, g, m)])


def layered() -> Problem:
    """Layers at both ends of an axis, made beside the stream."""
    grid, u, m = fields("fixed")
    d = grid.profile("d", 1, np.linspace(0.8, 0.9, SHAPE[1]))
    sides = (grid.box.with_axis(1, 0, 3), grid.box.with_axis(1, SHAPE[1] - 3, SHAPE[1]))
    return Problem.of([wave(u, m), Stage(tuple(damped_3d(u, d).within(side) for side in sides))])


def executor_of(
    problem: Problem, split: Index, options: Options, driver: HostDriver, timeout: float = 5.0
) -> CudaExecutor:
    plan = layout(problem, Partition(problem.grid, split), options)
    devices = tuple(range(plan.devices))
    return CudaExecutor(plan, STEPS, devices, driver=driver, submission_threads=8, timeout=timeout)


OVERLAP = Options("overlap", depth=1, block=1)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("split", [(2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1)])
@pytest.mark.parametrize("make", [plain, shot, near, mixed, echo, several, turns])
def test_same_bits_as_step_by_step(make: Any, split: Index, seed: int) -> None:
    problem, driver = make(), HostDriver(gpu=GPU, seed=seed, blocks=8 if make is several else 6)
    with closing(executor_of(problem, split, OVERLAP, driver)) as executor:
        schedule = build(executor.layout, OVERLAP, 2)
        merged = kernels_of(executor._execution).merged(schedule)
        assert sorted({one.device for one in merged}) == list(range(executor.layout.devices))
        assert carry_through(executor, OVERLAP) == expected(problem)


@pytest.mark.parametrize("make", [near, mixed, echo])
@pytest.mark.parametrize("seed", range(10, 60, 4))
def test_ghost_cells_stay_until_receivers_near_the_cut_have_read_them(seed: int, make: Any) -> None:
    """These are interpolated beside the stream, and may begin late."""
    problem = make()
    with closing(executor_of(problem, (2, 1, 1), OVERLAP, HostDriver(gpu=GPU, seed=seed, blocks=6))) as executor:
        assert carry_through(executor, OVERLAP) == expected(problem)


def test_large_regions_near_the_cut_have_their_kernels() -> None:
    """Those beside the stream are made whole, those behind it in two parts, of which one may be small."""
    gpu, problem = replace(GPU, wide_cells=80, wide_columns=4), near()
    with closing(executor_of(problem, (2, 1, 1), OVERLAP, HostDriver(gpu=gpu, blocks=6))) as executor:
        assert kernels_of(executor._execution).merged(build(executor.layout, OVERLAP, 2))
        assert carry_through(executor, OVERLAP) == expected(problem)


def test_none_are_merged_if_others_forbid_that_anyone_streams() -> None:
    problem = driven()
    with closing(executor_of(problem, (1, 2, 1), OVERLAP, HostDriver(gpu=GPU, blocks=8))) as executor:
        assert not kernels_of(executor._execution).merged(build(executor.layout, OVERLAP, 2))
        assert carry_through(executor, OVERLAP) == expected(problem)


@pytest.mark.parametrize(("split", "merged"), [((2, 1, 1), []), ((1, 2, 1), [0, 1])])
def test_kernels_beside_the_stream_hold_up_no_copy(split: Index, merged: list[int]) -> None:
    """They find room when most of its tiles have ended: a boundary region with such cells has its own launches."""
    problem = layered()
    with closing(executor_of(problem, split, OVERLAP, HostDriver(gpu=GPU, blocks=6))) as executor:
        found = kernels_of(executor._execution).merged(build(executor.layout, OVERLAP, 2))
        assert sorted({one.device for one in found}) == merged
        assert carry_through(executor, OVERLAP) == expected(problem)


def test_only_waits_of_the_two_queues_for_each_other_are_implied() -> None:
    with closing(executor_of(plain(), (2, 1, 1), OVERLAP, HostDriver(gpu=GPU, blocks=6))) as executor:
        schedule = build(executor.layout, OVERLAP, 2)
        merged = kernels_of(executor._execution).merged(schedule)
    left = [op for n, op in enumerate(schedule.ops) if n not in implied(schedule, merged)]
    waits = [op for op in left if isinstance(op, Wait)]
    assert {op.event.name for op in waits} == {"sent"}
    assert {op.event for op in left if isinstance(op, Record)} == {op.event for op in waits}
    assert [op for op in left if isinstance(op, Compute)] == [op for op in schedule.ops if isinstance(op, Compute)]


def test_a_queue_waits_for_a_source_that_follows_the_tiles_of_the_other() -> None:
    with closing(executor_of(near(), (2, 1, 1), OVERLAP, HostDriver(gpu=GPU, blocks=6))) as executor:
        schedule = build(executor.layout, OVERLAP, 2)
        lowering = Lowering(executor._execution, schedule, captured=False)
    left = {
        op.event.name for n, op in enumerate(schedule.ops) if n not in lowering.passed_over and isinstance(op, Wait)
    }
    assert left == {"sent", "boundary"}


def test_a_wait_for_something_else_is_not_implied() -> None:
    problem = plain(("fixed", "periodic", "fixed"))
    with closing(executor_of(problem, (2, 1, 1), OVERLAP, HostDriver(gpu=GPU, blocks=8))) as executor:
        schedule = build(executor.layout, OVERLAP, 2)
        merged = kernels_of(executor._execution).merged(schedule)
        assert merged
        left = [op for n, op in enumerate(schedule.ops) if n not in implied(schedule, merged)]
        assert {op.event.name for op in left if isinstance(op, Wait)} >= {"sent", "arrived"}
        assert carry_through(executor, OVERLAP) == expected(problem)


@pytest.mark.parametrize(("options", "more"), [(replace(OVERLAP, strategy="graph"), {}), (OVERLAP, {"words": False})])
def test_two_launches_in_graphs_and_where_queues_await_no_words(
    options: Options, more: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peergrid.runtime.cuda.lowering.lower.await_set", None)
    driver = HostDriver(gpu=GPU, blocks=6, **more)
    with closing(executor_of(plain(), (2, 1, 1), options, driver)) as executor:
        assert carry_through(executor, options) == expected(plain())


def test_a_signal_to_another_gpu_that_goes_astray_is_named() -> None:
    """The queues that wait for tiles go on, so that all that was taken is given back."""
    driver = HostDriver(gpu=GPU, blocks=6)
    executor = executor_of(plain(), (2, 1, 1), OVERLAP, driver, timeout=0.5)
    load(executor)
    schedule = build(executor.layout, OVERLAP, STEPS)
    commands, own = executor._lower(schedule).buffers[0], awaited_word(executor._execution, 0)
    words = [row for kept in commands.keep if isinstance(kept, np.ndarray) and kept.ndim == 2 for row in kept]
    assert any(row[ADDRESS] == own for row in words)
    sent = {executor._execution.semaphores.address(flag) for flag in executor._lower(schedule).edges}
    lost = next(row[ADDRESS] for row in words if row[0] == WRITE and row[ADDRESS] in sent)
    for row in [row for row in words if row[0] == WRITE and row[ADDRESS] == lost]:
        row[ADDRESS] = executor._execution.flag(Flag(1, "nobody's"))
    with pytest.raises(DeviceFault, match=r"^'SignalWait flag [01]:records of [01]:sent.*came 0 times"):
        executor.execute(schedule, 1, 0)
    executor.close()
    assert not driver.live


def test_tiles_of_the_boundary_region_come_first() -> None:
    made = tuple(Box((z, 0, 0), (z + 4, 8, 8)) for z in range(0, 16, 4))
    assert first(made, [Box((7, 0, 0), (9, 4, 4))]) == ((made[1], made[2], made[0], made[3]), 2)
    assert first(made, []) == (made, 0)

"""What only a GPU can show: same bits on the hardware, faults named in time, and everything given back."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import test_cuda_streaming as streamed
from executions import carry_through, step_by_step
from layer_problems import absorbing_vacuum
from runtime_problems import PROBLEMS, heat_3d, yee_with_absorber

from peergrid import Options, Simulation
from peergrid.bench.problems import noisy
from peergrid.codegen.cuda.choose.one_step3d import one_pass
from peergrid.codegen.cuda.gpu_model import H200, GpuModel, Streams
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.errors import DeviceFault, DoesNotFit
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.devices import gpu_count
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.ops import SignalOp
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import Problem

GPUS = gpu_count()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not GPUS, reason="no CUDA device here")]
STEPS = 11
DEVICES = ["cuda:0", "cuda:0,0", "cuda:0,0,0", *(["cuda:0,1"] if GPUS > 1 else [])]


@cache
def expected(name: str) -> str:
    with Simulation(PROBLEMS[name](), STEPS, devices="cpu:1", options=Options("serial"), kernel="reference") as run:
        run.run(STEPS)
        return run.sha256()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_bits(strategy: StrategyName, devices: str) -> None:
    for name in PROBLEMS:
        with Simulation(PROBLEMS[name](), STEPS, devices=devices, options=Options(strategy)) as run:
            run.run(4)
            run.run(STEPS - 4)
            assert run.sha256() == expected(name), name


class Streaming(CudaDriver):
    """Has small 3D boxes streamed, too, in certain shapes; rate: that of kernels of one step over those that stream."""

    def __init__(self, streams: Streams = H200.streams, rate: float = 1e-9) -> None:
        super().__init__()
        self._streams, self._rate = streams, rate

    def model(self, ordinal: int) -> GpuModel:
        usual = super().model(ordinal)
        return replace(usual, one_step_rates=(self._rate,) * 2, streamed_share_3d=0, streams=self._streams)


@pytest.mark.parametrize("ordinals", [(0,), (0, 0), *([(0, 1)] if GPUS > 1 else [])])
@pytest.mark.parametrize("strategy", ["overlap", "threads", "graph"])
@pytest.mark.parametrize("make", [streamed.waves, streamed.sound])
def test_streaming_3d(make: Callable[[], Problem], strategy: StrategyName, ordinals: tuple[int, ...]) -> None:
    problem, options = make(), Options(strategy)
    plan = layout(problem, Partition(problem.grid, (len(ordinals), 1, 1)), options)
    executor = CudaExecutor(plan, STEPS, ordinals, driver=Streaming())
    try:
        assert carry_through(executor, options) == step_by_step(problem)
    finally:
        executor.close()


@pytest.mark.parametrize("size", [160, 176, 192, 224, 256])
def test_layers_at_the_ends_of_rows_beside_kernels_of_one_step(size: int) -> None:
    """These read cells that the stream makes at the same time."""
    problem, options, found = noisy(absorbing_vacuum((size,) * 3)), Options("overlap", 1, 1), []
    plan = layout(problem, Partition(problem.grid, (1, 1, 1)), options)
    for rate in (1e-9, 1e9):
        with closing(CudaExecutor(plan, STEPS, (0,), driver=Streaming(rate=rate))) as executor:
            found.append(carry_through(executor, options))
    assert found[0] == found[1]


MADE: dict[str, tuple[Callable[[Index], Problem], ...]] = {
    "far": (partial(streamed.of_two, streamed.distant),),
    "many": (partial(streamed.of_two, streamed.mean), partial(streamed.of_one, streamed.mean_of_one)),
    "few": (partial(streamed.of_two, streamed.reaction), partial(streamed.of_one, partial(heat_3d, k=0.1))),
    "several": (lambda shape: streamed.sound(shape=shape),),
}
"""Problems for which the lists of shapes are, those of more fields first."""


def streaming(kind: str, shape: StreamShape) -> tuple[Problem, Streams]:
    """The first of these problems for which there is a kernel in a shape, as if that were the only one of its list."""
    streams = replace(H200.streams, **{kind: (shape,)})
    problems = (make((40, 70, 300)) for make in MADE[kind])
    return next(problem for problem in problems if one_pass(problem, replace(H200, streams=streams))), streams


@pytest.mark.parametrize(
    ("kind", "shape"), [(kind, shape) for kind in MADE for shape in getattr(H200.streams, kind) if shape.lead]
)
def test_shapes_of_tiles(kind: str, shape: StreamShape) -> None:
    """On GPUs without tensor copies kernels of one step take the place of some."""
    (problem, streams), options = streaming(kind, shape), Options("overlap")
    plan = layout(problem, Partition(problem.grid, (1, 1, 1)), options)
    executor = CudaExecutor(plan, STEPS, (0,), driver=Streaming(streams))
    try:
        assert carry_through(executor, options) == step_by_step(problem)
    finally:
        executor.close()


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_steps_per_pass(strategy: StrategyName, devices: str) -> None:
    """Every length of a pass, with boundary tiles alone and with plain ones."""
    for name in ("heat_fixed", "heat_periodic", "heat_reflecting", "one_sided", "yee"):
        with Simulation(PROBLEMS[name](), STEPS, devices=devices, options=Options(strategy, depth=4)) as run:
            run.run(STEPS)
            assert run.sha256() == expected(name), name
    problem, steps = yee_with_absorber((400, 700)), 27
    digests = []
    for where, options in (("cpu:1", Options("serial")), (devices, Options(strategy, depth=8))):
        with Simulation(problem, steps, devices=where, options=options) as run:
            run.run(20)
            run.run(steps - 20)
            digests.append((run.sha256(), {name: trace.tobytes() for name, trace in run.traces().items()}))
    assert digests[0] == digests[1]


@pytest.mark.parametrize("route", ["copy", "store", "host"])
def test_every_route(route: str) -> None:
    for name in ("yee", "heat_cube", "radius_four"):
        options = Options("overlap", depth=2, block=1, route=route)
        with Simulation(PROBLEMS[name](), STEPS, devices=DEVICES[-1], options=options) as run:
            run.run(STEPS)
            assert run.sha256() == expected(name), name


def test_a_dropped_signal_is_named_in_time_and_the_next_run_works() -> None:
    problem = PROBLEMS["heat_fixed"]()
    options = Options("peer")
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    whole = one_iteration(plan, options)
    dropped = next(op.flag for op in whole.ops if isinstance(op, SignalOp))
    broken = replace(whole, ops=tuple(op for op in whole.ops if not isinstance(op, SignalOp) or op.flag != dropped))
    executor = CudaExecutor(plan, STEPS, (0, 0), timeout=2)
    started = time.perf_counter()
    with pytest.raises(
        DeviceFault, match=r"'SignalWait flag 1:halo from 0 = 1 in 1:boundary' waited too long.*stood at 0"
    ):
        executor.execute(broken, 1, 0)
    assert time.perf_counter() - started < 10
    executor.close()
    with Simulation(problem, STEPS, devices="cuda:0,0", options=options) as run:
        run.run(STEPS)
        assert run.sha256() == expected("heat_fixed")


@pytest.mark.usefixtures("alone")
def test_memory_is_given_back() -> None:
    """A run leaves as much free memory as it found; those before it have loaded what stays for the next."""
    driver = CudaDriver()
    driver.make_current(driver.retain(0))

    def lost() -> int:
        before = driver.memory()[0]
        with Simulation(PROBLEMS["yee"](), STEPS, devices="cuda:0", options=Options("graph")) as run:
            run.run(STEPS)
        return before - driver.memory()[0]

    assert min(lost() for _ in range(4)) < 1 << 20  # what is lost every time is lost the last time, too
    driver.release(0)


def test_a_grid_that_does_not_fit_is_refused() -> None:
    from peergrid import Grid, Problem, stencil

    @stencil
    def copy(u):
        u.next[0, 0] = u[0, 0]

    grid = Grid((1 << 20, 1 << 18))
    problem = Problem.of(copy(grid.field("u", np.float32(0))))
    plan = layout(problem, Partition.over(grid, 1), Options("async"))
    with pytest.raises(DoesNotFit, match="cells would fit"):
        CudaExecutor(plan, 1, (0,))

"""Reductions by generated CUDA C++: the bits of NumPy, whatever the devices, the strategy and the depth."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from reduction_problems import STEPS, problem

from peergrid import Options, Problem, Simulation, UsageError, source_of
from peergrid.codegen import nvrtc
from peergrid.codegen.cuda.reduce import reduce_program
from peergrid.grid import Boundary
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import build, layout, one_iteration
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil.reduction import NORM

on_the_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")

SHAPES = ((5000,), (70, 1300), (20, 9, 300))
CUTS = {5000: (0, 1000, 1100, 3700, 5000), 70: (0, 11, 40, 41, 70), 20: (0, 3, 8, 9, 20)}


def run(problem: Problem, devices: int, options: Options) -> dict[str, bytes]:
    """What all reductions find, in whole iterations and remaining steps."""
    first = problem.grid.shape[0]
    cuts = (0, first) if devices == 1 else (*CUTS[first][:devices], first)
    plan = layout(problem, Partition.slabs(problem.grid, cuts), options)
    executor = CudaExecutor(plan, STEPS, tuple(range(devices)), driver=HostDriver(seed=3), timeout=60)
    load(executor)
    whole = one_iteration(plan, options)
    times, rest = divmod(STEPS, whole.steps)
    executor.execute(whole, times, 0)
    if rest:
        executor.execute(build(plan, options, rest, start=times * whole.steps), 1, times * whole.steps)
    found = {name: series.values.tobytes() for name, series in executor.reductions(STEPS).items()}
    executor.close()
    return found


@cache
def expected(shape: tuple[int, ...], edges: Boundary, dtype: str) -> dict[str, bytes]:
    """By plain NumPy."""
    with Simulation(problem(shape, edges, dtype), STEPS, devices="cpu:1", kernel="reference") as simulation:
        simulation.run(STEPS)
        return {name: series.values.tobytes() for name, series in simulation.reductions().items()}


@on_the_host
@pytest.mark.parametrize(("number", "strategy"), [*enumerate(STRATEGIES)])
@pytest.mark.parametrize(("place", "shape"), [*enumerate(SHAPES)])
def test_same_bits(shape: tuple[int, ...], place: int, strategy: StrategyName, number: int) -> None:
    edges: Boundary = ("fixed", "reflecting", "periodic")[(number + place) % 3]
    dtype = ("float32", "float64")[number % 2]
    devices = 1 + (number + place) % 4
    found = run(problem(shape, edges, dtype), devices, Options(strategy, depth=1 + number % 3))
    assert found == expected(shape, edges, dtype)


@on_the_host
@pytest.mark.parametrize("shape", [(2500,), (20, 9, 30)])
def test_norms_of_other_grids_than_2d_are_reductions(shape: tuple[int, ...]) -> None:
    plain = problem(shape, "fixed", "float32")
    with Simulation(plain, STEPS, devices="cpu:3", norm="u") as simulation:
        simulation.run(STEPS)
        expected = simulation.norms().tobytes()
    one = replace(plain, reductions=()).with_norm("u")
    plan = layout(one, Partition.slabs(one.grid, (0, 7, shape[0])), Options())
    executor = CudaExecutor(plan, STEPS, (0, 1), driver=HostDriver(seed=1), timeout=60)
    load(executor)
    executor.execute(build(plan, Options(), STEPS), 1, 0)
    assert executor.reductions(STEPS)[NORM].values.tobytes() == expected
    executor.close()


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_compile_without_spilling(shape: tuple[int, ...]) -> None:
    one = problem(shape, "reflecting", "float32")
    for reduced, architecture in product(one.reductions[:2], ("sm_80", "sm_90", "sm_100")):
        (found,) = nvrtc.resources(reduce_program(one, reduced.name).source, architecture).values()
        assert found.spills == 0, (reduced.name, architecture, found)


def test_the_source_shows_them_with_the_users_names() -> None:
    text = source_of(problem((20, 9, 300), "reflecting", "float32"), "cuda")
    assert "// energy: sum of c_at_0_0_0, u_at_0_0_0" in text
    assert "// change: l2 of u_at_0_0_0, u_prev_at_0_0_0" in text


@on_the_host
def test_other_splits_than_slabs_are_refused() -> None:
    one = problem((70, 1300), "fixed", "float32")
    plan = layout(one, Partition(one.grid, (1, 2)), Options())
    with pytest.raises(UsageError) as refused:
        CudaExecutor(plan, STEPS, (0, 1), driver=HostDriver())
    assert str(refused.value) == "On GPUs reductions need a split along the first axis only, got (1, 2)."

"""The norm of every step under every strategy, on any number of devices, at any depth: the same bits."""

from __future__ import annotations

from functools import cache

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from runtime_problems import random_heat, yee_with_absorber

from peergrid import Options, Problem, Simulation
from peergrid.codegen.norm import NORM_ALIGN
from peergrid.grid import Boundary, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import build, layout, period
from peergrid.schedule.strategies import STRATEGIES, StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STEPS = 11
SHAPE = (110, 140)
CUTS: dict[int, Index] = {1: (0, 110), 2: (0, 48, 110), 3: (0, 48, 72, 110), 4: (0, 24, 48, 72, 110)}
Boundaries = tuple[Boundary, Boundary]
FIXED: Boundaries = ("fixed", "fixed")


def run(problem: Problem, devices: int, options: Options, seed: int = 1, norm: str = "u") -> tuple[bytes, bytes]:
    """The last state and the norms of all steps, in whole turns and a rest."""
    plan = layout(problem, Partition.slabs(problem.grid, CUTS[devices]), options, NORM_ALIGN)
    driver = HostDriver(seed=seed)
    executor = CudaExecutor(plan, STEPS, tuple(range(devices)), driver=driver, patience=60, norm=norm)
    load(executor)
    whole = period(plan, options)
    times, rest = divmod(STEPS, whole.steps)
    executor.execute(whole, times, 0)
    if rest:
        whole = build(plan, options, rest)
        executor.execute(whole, 1, STEPS - rest)
    found = executor.gather(norm, whole.final).tobytes(), executor.norms(STEPS).tobytes()
    executor.close()
    return found


@cache
def expected(boundary: Boundaries) -> tuple[bytes, bytes]:
    """One device, one step per pass; virtual devices find the same."""
    problem = random_heat(SHAPE, boundary)
    found = run(problem, 1, Options("serial"))
    assert found == on_virtual_devices(problem, "u")
    return found


def on_virtual_devices(problem: Problem, norm: str) -> tuple[bytes, bytes]:
    with Simulation(problem, STEPS, devices="cpu:3", norm=norm) as simulation:
        simulation.run(STEPS)
        return simulation.gather(norm).tobytes(), simulation.norms().tobytes()


@pytest.mark.parametrize(("place", "depth"), [*enumerate([1, 4, 8])])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_bits(strategy: StrategyName, depth: int, place: int) -> None:
    devices = 1 + (list(STRATEGIES).index(strategy) + place) % 4
    assert run(random_heat(SHAPE), devices, Options(strategy, depth=depth)) == expected(FIXED)


@pytest.mark.parametrize(("strategy", "rows"), [("overlap", "periodic"), ("graph", "reflecting"), ("peer", "periodic")])
def test_same_bits_where_rims_have_columns(strategy: StrategyName, rows: Boundary) -> None:
    boundary: Boundaries = (rows, "periodic")
    for seed in range(2):
        assert run(random_heat(SHAPE, boundary), 3, Options(strategy, depth=4), seed) == expected(boundary)


@pytest.mark.parametrize(("depth", "block", "columns"), [(2, 1, "fixed"), (8, 3, "periodic")])
@pytest.mark.parametrize("strategy", ["async", "overlap", "peer"])
def test_same_bits_with_several_passes_between_exchanges(
    strategy: StrategyName, depth: int, block: int, columns: Boundary
) -> None:
    boundary: Boundaries = ("periodic", columns)
    assert run(random_heat(SHAPE, boundary), 3, Options(strategy, depth=depth, block=block)) == expected(boundary)


@pytest.mark.parametrize(("depth", "block"), [(1, 1), (4, 1), (4, 2)])
@pytest.mark.parametrize("strategy", ["async", "overlap", "graph", "peer"])
def test_same_bits_of_several_stages(strategy: StrategyName, depth: int, block: int) -> None:
    """What is made beyond a device's own cells keeps the order of the stages."""
    problem = yee_with_absorber(SHAPE)
    expected = on_virtual_devices(problem, "ez")
    for seed in range(3):
        assert run(problem, 3, Options(strategy, depth=depth, block=block), seed, "ez") == expected

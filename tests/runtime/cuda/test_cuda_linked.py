"""The `peer` strategy as kernels that exchange their rims themselves, on a driver that runs on the host."""

from __future__ import annotations

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from runtime_problems import random_heat, yee_with_absorber

from peergrid import Options
from peergrid.grid import Boundary
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.inorder import InOrderExecutor
from peergrid.schedule import build, layout, period
from peergrid.stencil import Problem

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
DEPTH, STEPS = 3, 15  # two turns of two passes, and a shorter one


def run(problem: Problem, ordinals: tuple[int, ...], driver: HostDriver | None, norm: str | None = None) -> list[bytes]:
    """Fields and traces after all steps, by linked kernels in whole turns and a rest that is done by queues."""
    options = Options("peer" if driver else "serial", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (len(ordinals), 1)), options)
    executor = CudaExecutor(plan, STEPS, ordinals, driver=driver, norm=norm) if driver else InOrderExecutor(plan, STEPS)
    load(executor)
    whole = period(plan, options)
    times, rest = divmod(STEPS - 1, whole.steps)
    executor.execute(whole, times - 1, 0)
    executor.execute(whole, 1, (times - 1) * whole.steps)
    tail = build(plan, options, rest + 1, whole.final)
    executor.execute(tail, 1, times * whole.steps)
    found = [executor.gather(name, tail.final).tobytes() for name in problem.state] + [executor.traces().tobytes()]
    if isinstance(executor, CudaExecutor):
        found += [executor.norms(STEPS).tobytes()] if norm else []
        executor.close()
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("boundary", [("fixed", "fixed"), ("periodic", "fixed"), ("reflecting", "reflecting")])
@pytest.mark.parametrize("devices", [2, 3])
def test_bits(devices: int, boundary: tuple[Boundary, Boundary], seed: int) -> None:
    problem, driver = random_heat((90, 200), boundary), HostDriver(seed=seed)
    assert run(problem, tuple(range(devices)), driver) == run(problem, (0,), None)
    beside = {"fixed": {"edge2d_peer", "layer2d_peer"}, "periodic": {"layer2d_peer"}, "reflecting": {"edge2d_peer"}}
    assert {"stream2d_peer"} | beside[boundary[0]] <= driver.kernels
    assert not driver.live


def test_bits_of_several_stages_with_absorber_and_receivers() -> None:
    problem, driver = yee_with_absorber((150, 330)), HostDriver()
    assert run(problem, (0, 1), driver) == run(problem, (0,), None)
    assert {"stream2d_peer", "edge2d_peer"} <= driver.kernels


@pytest.mark.parametrize(("resident", "told"), [(3, True), (1000, False)])
def test_one_gpu_twice_where_waiting_tiles_leave_room(resident: int, told: bool) -> None:
    problem, driver = random_heat((90, 200), ("fixed", "fixed")), HostDriver(gpus=1)
    driver.resident = lambda *_: resident  # type: ignore[method-assign]
    options = Options("peer", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    executor = CudaExecutor(plan, STEPS, (0, 0), driver=driver)
    load(executor)
    schedule = build(plan, options, STEPS)
    executor.execute(schedule, 1, 0)
    assert executor.gather("u", schedule.final).tobytes() == run(problem, (0,), None)[0]
    assert any("GPU 0 stands for several devices" in note for note in executor.notes) == told
    executor.close()


def test_devices_that_do_not_reach_each_other_are_served_by_queues() -> None:
    problem, driver = random_heat((90, 200), ("fixed", "fixed")), HostDriver(links=False)
    assert run(problem, (0, 1), driver) == run(problem, (0,), None)
    assert "edge2d_peer" not in driver.kernels

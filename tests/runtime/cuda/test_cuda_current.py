"""The CUDA context that is current for a thread is its caller's, before and after every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver

from peergrid import Options, Problem, Simulation
from peergrid.errors import DoesNotFit, UsageError
from peergrid.grid import Grid
from peergrid.images.gpus import on_gpus
from peergrid.runtime.cuda import executor
from peergrid.runtime.cuda.bandwidth import copy_bandwidth
from peergrid.runtime.cuda.calls import launch_seconds
from peergrid.runtime.cuda.memory.room import check_least
from peergrid.runtime.devices import Devices
from peergrid.runtime.own_kernel import Place
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.sparse import CsrMatrix, Products, RangeProducts
from peergrid.stencil import Receiver, stencil

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
OTHER = 1007  # a context that no run here makes current
CONTEXTS = (0, OTHER)
Call = Callable[[], Any]


@stencil
def diffuse(u: Any) -> None:
    u.next[0, 0] = u[0, 0] + 0.1 * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1] - 4 * u[0, 0])


def problem() -> Problem:
    grid = Grid((64, 40))
    u = grid.field("u", np.random.default_rng(1).random(grid.shape))
    return Problem.of(diffuse(u), [Receiver("r", "u", (5, 6))])


def devices(count: int) -> Devices:
    return Devices("cuda", tuple(range(count)))


def kept(driver: HostDriver, context: int, call: Call) -> Any:
    """What a call returns, around which the caller's context is current."""
    driver.make_current(context)
    found = call()
    assert driver.current() == context
    return found


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_leaves_it_as_it_was(
    monkeypatch: pytest.MonkeyPatch, strategy: StrategyName, count: int, context: int
) -> None:
    driver, options = HostDriver(), Options(strategy)
    monkeypatch.setattr(executor, "CudaDriver", lambda: driver)
    made = problem()
    run = kept(driver, context, lambda: Simulation(made, 9, devices=devices(count), options=options, norm="u"))
    calls: list[Call] = [lambda: run.run(5), lambda: run.gather("u"), run.traces, run.norms, run.reductions, run.check]
    calls += [lambda: run.set("u", 0.5), lambda: run.trace(1), lambda: run.views("u"), run.state, run.close]
    for call in calls:
        kept(driver, context, call)
    assert not driver.live


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_run_that_is_refused_leaves_it_as_it_was(monkeypatch: pytest.MonkeyPatch, context: int) -> None:
    driver = HostDriver(free=1 << 20)
    monkeypatch.setattr(executor, "CudaDriver", lambda: driver)
    driver.make_current(context)
    with pytest.raises(DoesNotFit):
        Simulation(problem(), 9, devices=devices(2), options=Options("overlap"))
    assert driver.current() == context
    with pytest.raises(UsageError, match="does not reach"):
        RangeProducts(CsrMatrix.of(np.eye(40)), np.ones(40), Place(devices(2), driver=HostDriver(links=False)))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", [Products, RangeProducts])
def test_products_leave_it_as_it_was(kind: Any, count: int, context: int) -> None:
    driver, vector = HostDriver(), np.arange(1.0, 41.0)
    matrix = CsrMatrix.of(np.diag(vector))
    run = kept(driver, context, lambda: kind(matrix, vector, Place(devices(count), driver=driver)))
    for call in (lambda: run.advance(3), run.vector, lambda: run.set(vector), run.close):
        kept(driver, context, call)


@pytest.mark.parametrize("context", CONTEXTS)
def test_what_is_asked_of_gpus_leaves_it_as_it_was(context: int) -> None:
    driver, values = HostDriver(), np.arange(256, dtype=np.uint8)
    kept(driver, context, lambda: copy_bandwidth(1, 1, driver))
    kept(driver, context, lambda: launch_seconds((0, 1), driver))
    kept(driver, context, lambda: check_least((0, 1), 1 << 20, 1000, driver))
    kept(driver, context, lambda: on_gpus(values.reshape(16, 16), values, (0, 1), driver=driver))

"""What the driver answers when something is wrong, on a driver that runs on the host: each fault has a sentence."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int, c_void_p, cast

import numpy as np
import pytest
from executions import STEPS, expected, found, load
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

from peergrid import Options
from peergrid.errors import DeviceFault, PeergridError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.signals import ADDRESS, WRITE
from peergrid.runtime.cuda.memory.peers import PROBE_WORDS
from peergrid.schedule import Schedule, build, layout
from peergrid.schedule.ops import Flag, Route
from peergrid.schedule.strategies import StrategyName

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")


def executor_and_schedule(
    strategy: StrategyName, driver: HostDriver, route: Route | None = None
) -> tuple[CudaExecutor, Schedule]:
    problem, options = PROBLEMS["heat_fixed"](), Options(strategy, route=route)
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    executor = CudaExecutor(plan, STEPS, (0, 1), driver=driver, timeout=0.5)
    load(executor)
    return executor, build(plan, options, STEPS)


class Refusing(HostDriver):
    """Grants no access between GPUs, though it says that they reach each other."""

    def enable_peer(self, context: int, peer: int) -> None:
        raise error(711, "cuCtxEnablePeerAccess")


class Garbling(HostDriver):
    """What tests whether peers receive what is sent arrives with one bit changed."""

    def download(self, values: np.ndarray, pointer: int) -> None:  # type: ignore[type-arg]
        super().download(values, pointer)
        if values.dtype == np.int64 and values.size == PROBE_WORDS:
            values[77] ^= 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Refusing, "GPU 0 was refused access to GPU 1: cuCtxEnablePeerAccess failed with CUDA_ERROR_TOO_MANY_PEERS"),
        (Garbling, "copies from GPU 0 to GPU 1 arrive changed: halos go through host memory"),
    ],
)
def test_peers_that_cannot_be_relied_on_are_passed_over(make: Callable[[], HostDriver], said: str) -> None:
    driver = make()
    executor, schedule = executor_and_schedule("overlap", driver)
    executor.execute(schedule, 1, 0)
    assert found(executor, schedule.final) == expected("heat_fixed")
    assert any(note.startswith(said) for note in executor.notes)
    assert any("needs peer access" in note for note in executor.notes)
    executor.close()
    assert not driver.live


@pytest.mark.parametrize("strategy", ["async", "overlap", "graph"])
def test_a_word_that_goes_astray_is_named(strategy: StrategyName) -> None:
    """Whoever waits for it is let go, so that all that was taken is given back."""
    driver = HostDriver()
    executor, schedule = executor_and_schedule(strategy, driver)
    commands = executor._lower(schedule).buffers[0]
    words = [row for kept in commands.keep if isinstance(kept, np.ndarray) and kept.ndim == 2 for row in kept]
    writes = [row for row in words if row[0] == WRITE]
    for row in [row for row in writes if row[ADDRESS] == writes[0][ADDRESS]]:
        row[ADDRESS] = executor._execution.flag(Flag(1, "nobody's"))
    flag = "flag [01]:records of [01]:sent .*'"
    said = rf"^'SignalWait {flag} waited too long: 'SignalOp {flag} on device [01] came 0 times"
    with pytest.raises(DeviceFault, match=said):
        executor.execute(schedule, 1, 0)
    executor.close()
    assert not driver.live


@pytest.mark.parametrize(
    ("strategy", "call", "code", "said"),
    [
        (
            "async",
            "cuLaunchKernel",
            700,
            r"^'Compute \[(0,12|12,23)\).*' \(row 0, iteration 0\) failed with CUDA_ERROR_ILLEGAL_ADDR",
        ),
        (
            "async, copy",
            "cuMemcpyAsync",
            1,
            r"^'Copy 'u' [01]:.*' .* failed with CUDA_ERROR_INVALID_VALUE \(bad request\)",
        ),
        ("threads, copy", "cuMemcpyAsync", 1, r"^'Copy 'u' [01]:.*' .* failed with CUDA_ERROR_INVALID_VALUE"),
        (
            "async",
            "cuStreamQuery",
            719,
            r"^The work of queue [01]:main failed with CUDA_ERROR_LAUNCH_FAILED \(launch fail",
        ),
        (
            "async",
            "cuStreamQuery",
            600,
            r"^'SignalWait flag ([01]):records of [01]:sent = .* in \1:main' waited too long: 'SignalOp flag \1:re",
        ),
        ("async, events", "cuStreamQuery", 600, r"^Queue [01]:main did not finish within 1 s of the last progress"),
        (
            "serial",
            "cuStreamQuery",
            600,
            r"^Nothing moved for 1 s: 'Sync host 0 with .*' .* is still waiting for its dev",
        ),
    ],
)
def test_what_failed_is_named(strategy: str, call: str, code: int, said: str) -> None:
    name, _, detail = strategy.partition(", ")
    driver = HostDriver(words=detail != "events")
    executor, schedule = executor_and_schedule(name, driver, "copy" if detail == "copy" else None)  # type: ignore[arg-type]
    answer = CFUNCTYPE(c_int)(lambda: code)
    executor._execution.devices._entries[call] = int(cast(answer, c_void_p).value or 0)
    with pytest.raises(PeergridError, match=said) as raised:
        executor.execute(schedule, 1, 0)
    assert isinstance(raised.value, DeviceFault)
    with pytest.raises(DeviceFault, match="failed earlier"):
        executor.execute(schedule, 1, 0)
    executor.close()
    assert not driver.live

"""GPUs retained between runs: their contexts are made once, nothing else stays, and all are given back."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import PROBLEMS

import peergrid
from peergrid import DeviceFault, Options, Simulation, UsageError
from peergrid.runtime import devices as specification
from peergrid.runtime.cuda import executor
from peergrid.runtime.cuda.device import driver as real
from peergrid.runtime.devices import Devices

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
BOTH = Devices("cuda", (0, 1))
STEPS = 6


class Watched(HostDriver):
    """made: how often each GPU's context came into being; refused: a GPU that cannot be used."""

    refused: int | None = None

    def __init__(self) -> None:
        super().__init__(gpus=2)
        self.made = Counter[int]()

    def retain(self, ordinal: int) -> int:
        if ordinal == self.refused:
            raise DeviceFault("The GPU is lost.")
        self.made[ordinal] += not self._contexts[ordinal]
        return super().retain(ordinal)

    def release(self, ordinal: int) -> None:
        assert self._contexts[ordinal] > 0
        super().release(ordinal)

    @property
    def contexts(self) -> list[int]:
        """The GPUs that have one; nothing else is live."""
        assert {kind for kind, _ in self.live} <= {"context"}
        return sorted(ordinal for _, ordinal in self.live)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Watched:
    made = Watched()
    for module in (executor, real):
        monkeypatch.setattr(module, "CudaDriver", lambda: made)
    monkeypatch.setattr(specification, "gpu_count", made.device_count)
    return made


def run(devices: str | Devices = BOTH) -> str:
    return peergrid.run(PROBLEMS["heat_fixed"](), STEPS, devices=devices, options=Options("overlap", depth=2)).sha256


def test_runs_without_a_hold_make_contexts_anew(driver: Watched) -> None:
    assert run() == run()
    assert driver.made == {0: 2, 1: 2}
    assert driver.contexts == []


def test_two_runs_share_held_contexts(driver: Watched) -> None:
    with peergrid.hold("cuda:0,1") as devices:
        assert devices == BOTH
        assert driver.contexts == [0, 1]
        found = []
        for _ in range(2):
            found.append(run(devices))
            assert driver.contexts == [0, 1]
    assert driver.made == {0: 1, 1: 1}
    assert driver.contexts == []
    assert {*found} == {peergrid.run(PROBLEMS["heat_fixed"](), STEPS, devices="cpu:1").sha256}


@pytest.mark.parametrize("spec", ["auto", "cuda", "cuda:1,0,1,0", BOTH])
def test_each_gpu_is_held_once(spec: str | Devices, driver: Watched) -> None:
    with peergrid.hold(spec):
        assert driver._contexts == {0: 1, 1: 1}
    assert driver.contexts == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_a_hold(error: type[BaseException], driver: Watched) -> None:
    def failing() -> None:
        run()
        raise error

    with pytest.raises(error), peergrid.hold(BOTH):
        failing()
    assert driver.contexts == []


def test_a_run_that_fails_leaves_the_hold_to_others(
    driver: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: HostDriver, pointer: int, values: Any) -> None:
        raise DeviceFault("The copy failed.")

    with peergrid.hold(BOTH):
        with monkeypatch.context() as broken:
            broken.setattr(HostDriver, "upload", fail)
            with pytest.raises(DeviceFault, match="copy failed"):
                Simulation(PROBLEMS["heat_fixed"](), STEPS, devices=BOTH, options=Options(), cache=tmp_path)
        assert driver.contexts == [0, 1]
        run()
    assert driver.made == {0: 1, 1: 1}
    assert driver.contexts == []


def test_holds_may_be_nested(driver: Watched) -> None:
    with peergrid.hold("cuda:1"):
        with peergrid.hold(BOTH):
            run()
            assert driver.contexts == [0, 1]
        assert driver.contexts == [1]
        run()
        assert driver.contexts == [1]
    assert driver.made == {0: 2, 1: 1}
    assert driver.contexts == []


def test_holds_end_in_any_order(driver: Watched) -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(peergrid.hold(BOTH))
    second.enter_context(peergrid.hold(BOTH))
    run()
    first.close()
    assert driver.contexts == [0, 1]
    run()
    second.close()
    assert driver.made == {0: 1, 1: 1}
    assert driver.contexts == []


def test_a_run_outlives_the_hold(driver: Watched, tmp_path: Path) -> None:
    problem = PROBLEMS["heat_fixed"]()
    with peergrid.hold(BOTH):
        simulation = Simulation(problem, STEPS, devices=BOTH, options=Options(), cache=tmp_path)
    with simulation:
        simulation.run(STEPS)
        assert simulation.sha256() == peergrid.run(problem, STEPS, devices="cpu:1").sha256
    assert driver.contexts == []


def test_threads_hold_the_same_gpus(driver: Watched) -> None:
    """The one that began later goes on after the first has ended."""
    begun, end = threading.Event(), threading.Event()

    def other() -> None:
        with peergrid.hold(BOTH):
            begun.set()
            assert end.wait(60)

    with ThreadPoolExecutor(1) as pool:
        try:
            with peergrid.hold(BOTH):
                held = pool.submit(other)
                assert begun.wait(60)
                run()
            assert driver.contexts == [0, 1]
            run()
        finally:
            end.set()
        held.result()
    assert driver.made == {0: 1, 1: 1}
    assert driver.contexts == []


def test_a_hold_leaves_the_current_context_alone(driver: Watched) -> None:
    with peergrid.hold("cuda:0"):
        driver.make_current(1000)
        with peergrid.hold(BOTH):
            assert driver.current() == 1000
        assert driver.current() == 1000


@pytest.mark.parametrize("begin", [lambda: peergrid.hold(BOTH).__enter__(), run])
def test_a_gpu_that_is_refused_leaves_none_taken(begin: Any, driver: Watched) -> None:
    driver.refused = 1
    with pytest.raises(DeviceFault, match="lost"):
        begin()
    assert driver.contexts == []


def test_a_gpu_that_is_not_there_is_refused(driver: Watched) -> None:
    with (
        pytest.raises(UsageError, match="2 CUDA devices, numbered from 0; got 2"),
        peergrid.hold(Devices("cuda", (2,))),
    ):
        pass
    assert driver.contexts == []

"""Relaxations on GPUs that are this host: every exchange leaves the words of the reference on every GPU."""

from __future__ import annotations

from typing import Any

import pytest
from spin_driver import SpinDriver

from peergrid.errors import DeviceFault, UsageError
from peergrid.machine.model import Missing
from peergrid.spins import Relaxation, gpus, random_graph
from peergrid.spins.gpus import Exchange, gpu_relaxation

GRAPH = random_graph(90 * 32, 3)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SpinDriver:
    found = SpinDriver(3)
    monkeypatch.setattr(gpus, "find", lambda: (found, None))
    monkeypatch.setattr(gpus, "compile_cubin", lambda source, architecture: b"")
    monkeypatch.setattr("peergrid.probe.cuda.devices.attribute", lambda *given: 9)
    return found


@pytest.mark.parametrize(("count", "exchange"), [(1, "store"), (3, "store"), (3, "copy"), (2, "copy")])
def test_the_words_are_those_of_virtual_devices(driver: SpinDriver, count: int, exchange: Exchange) -> None:
    with Relaxation(GRAPH, 0.4, 11, "cpu:1") as wanted:
        wanted.advance(5)
        with gpu_relaxation(GRAPH, 0.4, 11, count, exchange) as found:
            found.advance(2)
            found.advance(3)
            with pytest.raises(UsageError, match="A run takes zero or more whole steps, got -1"):
                found.advance(-1)
            assert {found.sha256(gpu) for gpu in range(count)} == {wanted.sha256()}
            assert found.energy() == wanted.energy()
    assert not driver.held
    assert driver.copied == (5 * (count - 1) * 4 * GRAPH.words if exchange == "copy" else 0)


def test_the_callers_context_is_current_after_every_call(driver: SpinDriver) -> None:
    driver.current = 7
    with gpu_relaxation(GRAPH, 0.4, 11, 3, "copy") as found:
        for context, call in ((7, lambda: None), (8, lambda: found.advance(2)), (9, found.words)):
            driver.current = driver.current if context == 7 else context
            call()
            assert driver.current == context
    assert driver.current == 9


def test_a_gpu_that_waited_in_vain_is_a_fault(driver: SpinDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "BUDGET", 1000)
    with gpu_relaxation(GRAPH, 0.4, 11, 2, "store") as found:
        found.step = 4
        with pytest.raises(DeviceFault, match="GPU 0 expected the words of another within"):
            found.advance(1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"exchange": "mail"}, "An exchange is one of copy, store, nccl, got 'mail'."),
        ({"gpus": 4}, "1 to 3 GPUs are here"),
    ],
)
def test_wrong_arguments(driver: SpinDriver, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence), gpu_relaxation(GRAPH, 0.4, **given):
        pass


def test_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "find", lambda: (None, Missing("CUDA", "no driver")))
    with pytest.raises(UsageError, match="GPUs are needed here: no driver"), gpu_relaxation(GRAPH, 0.4):
        pass

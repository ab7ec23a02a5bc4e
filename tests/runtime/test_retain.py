"""Retaining devices where there is nothing to retain, or it is impossible."""

from __future__ import annotations

import subprocess
import sys

import pytest
from runtime_problems import PROBLEMS

import peergrid
from peergrid import UsageError
from peergrid.runtime import devices as specification
from peergrid.runtime.cuda.device import driver
from peergrid.runtime.devices import Devices

UNTOUCHED = """
import sys, peergrid
with peergrid.hold("cpu:2") as devices:
    assert str(devices) == "cpu:2"
assert not [name for name in sys.modules if name.split(".")[0] == "cuda" or "runtime.cuda" in name]
"""


@pytest.mark.parametrize("devices", ["cpu:2", Devices("cpu", (0, 1)), "auto"])
def test_virtual_devices_have_nothing_to_hold(devices: str | Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken() -> None:
        raise AssertionError("a driver was asked for")

    monkeypatch.setattr(driver, "CudaDriver", taken)
    monkeypatch.setattr(specification, "gpu_count", lambda: 0)
    monkeypatch.setattr(specification, "cores", lambda: 2)
    problem = PROBLEMS["heat_fixed"]()
    with peergrid.hold(devices) as held:
        assert held == Devices("cpu", (0, 1))
        assert peergrid.run(problem, 4, devices=held).sha256 == peergrid.run(problem, 4, devices="cpu:1").sha256


def test_nothing_of_cuda_is_imported_for_virtual_devices() -> None:
    done = subprocess.run([sys.executable, "-c", UNTOUCHED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        ("gpu", "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got 'gpu'."),
        (
            2,
            "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got '2'; "
            "write 'cpu:2' or GPUs such as 'cuda:0'.",
        ),
        ("cpu:0", "'cpu:N' takes 1 to 1024 virtual devices, got 0."),
        ("cuda:0,2", "This machine has CUDA devices 0 to 1, got 2."),
    ],
)
def test_what_cannot_be_held_is_refused(devices: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specification, "gpu_count", lambda: 2)
    with pytest.raises(UsageError) as refused, peergrid.hold(devices):
        pass
    assert str(refused.value) == sentence

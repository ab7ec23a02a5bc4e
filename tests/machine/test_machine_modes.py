"""Modes of GPUs by a made-up NVML: gathered, explained, and left out where refused."""

from __future__ import annotations

from machine_examples import gpu
from machine_fakes import Nvml

from peergrid.machine import modes


class Modes(Nvml):
    """Two GPUs; the second is cut into instances and held back by its power cap."""

    def nvmlDeviceGetPersistenceMode(self, device: str) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetComputeMode(self, device: str) -> int:  # noqa: N802
        return 3

    def nvmlDeviceGetMigMode(self, device: str) -> list[int]:  # noqa: N802
        return [int("11" in device), 0]

    def nvmlDeviceGetPowerManagementLimit(self, device: str) -> int:  # noqa: N802
        return 500_000 if "11" in device else 700_000

    def nvmlDeviceGetPowerManagementDefaultLimit(self, device: str) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: str) -> int:  # noqa: N802
        return 0x4 | 0x40 if "11" in device else 0x1


def test_equal_gpus_share_a_line_and_costs_are_named() -> None:
    found = {(item.name, item.value): item.cost for item in modes.in_force(Modes(), (gpu(0, 0), gpu(1, 0)))}
    assert found.keys() == {
        ("GPU 0-1 persistence mode", "off"),
        ("GPU 0-1 compute mode", "exclusive process"),
        ("GPU 0 MIG mode", "off"),
        ("GPU 1 MIG mode", "on"),
        ("GPU 0 power limit", "default"),
        ("GPU 1 power limit", "below default"),
        ("GPU 0 clocks slowed by", "none"),
        ("GPU 1 clocks slowed by", "power cap and hardware thermal slowdown"),
    }
    assert {name for (name, _), cost in found.items() if not cost} == {
        "GPU 0 MIG mode",
        "GPU 0 power limit",
        "GPU 0 clocks slowed by",
    }


def test_what_nvml_refuses_is_left_out() -> None:
    refused = Modes(refuse=("nvmlDeviceGetPersistenceMode", "nvmlDeviceGetCurrentClocksThrottleReasons"))
    names = [item.name for item in modes.in_force(refused, (gpu(0, 0),))]
    assert names == ["GPU 0 compute mode", "GPU 0 MIG mode", "GPU 0 power limit"]
    assert modes.in_force(None, (gpu(0, 0),)) == ()

"""Modes of the GPUs, from NVML, with the meaning and the cost of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from peergrid.machine import nvml
from peergrid.machine.host import as_list
from peergrid.machine.model import Gpu, Setting

SLOWED = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode of a GPU: a function that reads its value in words ('' if NVML refuses), and the costs of its values."""

    name: str
    meaning: str
    read: Callable[[Any, Any], str]
    costly: tuple[str, ...]
    cost: str


def in_force(management: Any, found: Sequence[Gpu]) -> tuple[Setting, ...]:
    """The modes of all GPUs; GPUs whose value is the same share one line."""
    return tuple(
        _setting(mode, value, numbers)
        for mode in MODES
        for value, numbers in _values(mode, management, found).items()
        if value
    )


def _values(mode: Mode, management: Any, found: Sequence[Gpu]) -> dict[str, list[int]]:
    values: dict[str, list[int]] = {}
    for gpu in found:
        values.setdefault(mode.read(management, nvml.handle(management, gpu.pci)), []).append(gpu.index)
    return values


def _setting(mode: Mode, value: str, numbers: Sequence[int]) -> Setting:
    costs = value in mode.costly or ("*" in mode.costly and value != "none")
    return Setting(f"GPU {as_list(tuple(numbers))} {mode.name}", value, mode.meaning, mode.cost if costs else "")


def _named(function: str, names: Sequence[str]) -> Callable[[Any, Any], str]:
    """Reads a mode that NVML gives as a number, or as a number now and one after the next reset."""

    def read(management: Any, device: Any) -> str:
        value = nvml.attempt(management, None, function, device)
        now = value[0] if isinstance(value, (list, tuple)) else value
        return names[now] if isinstance(now, int) and now < len(names) else ""

    return read


def _power(management: Any, device: Any) -> str:
    """The power limit in watts, and the default one."""
    limit, usual = (
        nvml.attempt(management, 0, f"nvmlDeviceGetPowerManagement{word}", device) for word in ("Limit", "DefaultLimit")
    )
    if not limit or not usual:
        return ""
    return "default" if limit >= usual else "below default"


def _slowed(management: Any, device: Any) -> str:
    mask = nvml.attempt(management, None, "nvmlDeviceGetCurrentClocksThrottleReasons", device)
    if mask is None:
        return ""
    return " and ".join(word for bit, word in SLOWED.items() if mask & bit) or "none"


MODES: tuple[Mode, ...] = (
    Mode(
        "persistence mode",
        "whether the driver stays loaded while no program uses the GPU",
        _named("nvmlDeviceGetPersistenceMode", ("off", "on")),
        ("off",),
        "the first program after a pause waits a second or more for the driver",
    ),
    Mode(
        "compute mode",
        "how many processes may use the GPU",
        _named("nvmlDeviceGetComputeMode", ("default", "exclusive thread", "prohibited", "exclusive process")),
        ("exclusive thread", "prohibited", "exclusive process"),
        "several processes cannot share this GPU: one process per GPU at most, and none where it is prohibited",
    ),
    Mode(
        "MIG mode",
        "whether the GPU is cut into instances",
        _named("nvmlDeviceGetMigMode", ("off", "on")),
        ("on",),
        "instances have no peer access and no NVLink between each other",
    ),
    Mode(
        "ECC",
        "whether memory errors are corrected",
        _named("nvmlDeviceGetEccMode", ("off", "on")),
        ("off",),
        "a flipped bit changes results without a message",
    ),
    Mode("power limit", "what the GPU may draw", _power, ("below default",), "clocks fall under load"),
    Mode(
        "clocks slowed by",
        "what holds the clocks down now",
        _slowed,
        ("*",),
        "every figure of this GPU is below what it can do",
    ),
)

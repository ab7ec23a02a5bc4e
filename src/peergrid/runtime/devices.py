"""The devices of a run from a specification: `auto`, `cpu:4`, `cuda`, `cuda:0,1`, `cuda:0,0`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from peergrid.arguments import brief
from peergrid.errors import UsageError

MOST_VIRTUAL = 1024
ELSEWHERE = 1000  # from here on numbers are GPUs of other processes


@dataclass(frozen=True)
class Devices:
    """The devices of a run in order; ordinals: GPU numbers (from `ELSEWHERE` on: GPUs of other processes), or 0, 1, 2,
    … for virtual devices.
    """

    kind: Literal["cpu", "cuda"]
    ordinals: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.ordinals)

    @property
    def here(self) -> bool:
        """True if this process can use all of them."""
        return self.kind == "cpu" or all(ordinal < ELSEWHERE for ordinal in self.ordinals)

    def __str__(self) -> str:
        return f"cpu:{self.count}" if self.kind == "cpu" else "cuda:" + ",".join(map(str, self.ordinals))


def devices_of(given: str | Devices) -> Devices:
    """Devices, or those of a specification. Raises UsageError as `parse_devices` does."""
    if isinstance(given, Devices):
        return given
    return parse_devices(given if isinstance(given, str) else brief(given))


def parse_devices(spec: str) -> Devices:
    """The devices of a specification.

    Raises UsageError for one that is not valid, or names GPUs that do not exist.
    """
    if spec == "auto":
        gpus = gpu_count()
        return Devices("cuda", tuple(range(gpus))) if gpus else Devices("cpu", tuple(range(cores())))
    if match := re.fullmatch(r"cpu(?::([0-9]{1,9}))?", spec):
        count = cores() if match[1] is None else int(match[1])
        if not 1 <= count <= MOST_VIRTUAL:
            raise UsageError(f"'cpu:N' takes 1 to {MOST_VIRTUAL} virtual devices, got {count}.")
        return Devices("cpu", tuple(range(count)))
    if match := re.fullmatch(r"cuda(?::([0-9]{1,9}(?:,[0-9]{1,9})*))?", spec):
        return _gpus(match[1])
    meant = f"; write 'cpu:{spec}' or GPUs such as 'cuda:0'" if re.fullmatch(r"[1-9][0-9]{0,3}", spec) else ""
    raise UsageError(f"Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got {brief(spec)}{meant}.")


def cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _gpus(listed: str | None) -> Devices:
    present = gpu_count()
    if not present:
        raise UsageError(
            "No CUDA device was found here; use the devices cpu:4, say, or see 'peergrid machine' for the reason."
        )
    ordinals = tuple(range(present)) if listed is None else tuple(map(int, listed.split(",")))
    if max(ordinals) >= present:
        raise UsageError(f"This machine has CUDA devices 0 to {present - 1}, got {max(ordinals)}.")
    return Devices("cuda", ordinals)


def gpu_count() -> int:
    """The number of CUDA devices that the driver shows; 0 without driver or package."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return 0
    try:
        (status,) = driver.cuInit(0)
        failed, count = driver.cuDeviceGetCount()
    except RuntimeError:  # the package is there, the driver library is not
        return 0
    return 0 if status or failed else int(count)

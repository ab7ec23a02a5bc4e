"""A driver, NVML and a clock of GPUs that draw power while time passes: counters of energy move every 0.1 s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from peergrid.bench.measure import Clock
from peergrid.machine import driver, nvml

MOVES = 0.1  # seconds after which the counters move
IDLE = 150.0


class NVMLError(Exception):
    """What NVML raises when it refuses."""


class Gpus:
    """NVML and driver in one; NVML's second GPU is the driver's first. Time passes only by `clock.sleep` and `work`."""

    NVMLError = NVMLError

    def __init__(self, watts: tuple[float, ...], limit: float = 700.0) -> None:
        self.watts, self.limit = watts, limit
        self.refused: set[str] = set()
        self.time, self.sleeps = 0.0, list[float]()
        self.joules, self.shown, self.shown_at = [[0.0] * len(watts) for _ in range(2)] + [0.0]
        self.clock = Clock(lambda: self.time, self._sleep)

    def work(self, seconds: float) -> None:
        """All GPUs work."""
        self._pass(seconds, self.watts)

    def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self._pass(seconds, (IDLE,) * len(self.watts))

    def _pass(self, seconds: float, watts: tuple[float, ...]) -> None:
        end = self.time + seconds
        while self.time < end:
            until = min(end, self.shown_at + MOVES)
            self.joules = [have + (until - self.time) * one for have, one in zip(self.joules, watts, strict=True)]
            self.time = until
            if until >= self.shown_at + MOVES:
                self.shown, self.shown_at = self.joules, until

    @contextmanager
    def session(self) -> Iterator[tuple[Any, None]]:
        yield self, None

    def cuDeviceGet(self, ordinal: int) -> tuple[int, int]:  # noqa: N802
        return 0, ordinal

    def cuDeviceGetPCIBusId(self, _: int, device: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, f"0000:F{len(self.watts) - 1 - device}:00.0\0\0".encode()

    def nvmlDeviceGetHandleByPciBusId(self, pci: bytes) -> int:  # noqa: N802
        """The place among NVML's GPUs, which are in the order of their addresses."""
        return int(pci[6:7])

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: int) -> int:  # noqa: N802
        self._ask("energy")
        return round(1000 * self.shown[gpu])

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: int) -> int:  # noqa: N802
        self._ask("limit")
        return round(1000 * self.limit)

    def _ask(self, what: str) -> None:
        if what in self.refused:
            raise NVMLError("not supported")


def install(monkeypatch: pytest.MonkeyPatch, gpus: Gpus) -> Gpus:
    """Let these be the GPUs of the machine."""
    monkeypatch.setattr(nvml, "session", gpus.session)
    monkeypatch.setattr(driver, "find", lambda: (gpus, None))
    return gpus

"""The power of GPUs under sustained load, from the energy counters of NVML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from peergrid.machine import nvml
from peergrid.runtime.devices import Devices

NEAR = 0.03  # share of the limit from which on a GPU counts as limited

Reading = tuple[float, tuple[float, ...]]
"""A time in seconds, and the joules that each GPU has taken until then."""


class PowerMeter:
    """The mean power of some GPUs over a time, if NVML gives their energy.

    H200s update their counters every 0.1 s: a mean over some seconds is accurate to one or two per cent.
    """

    def __init__(self, management: Any, gpus: dict[str, Any], now: Callable[[], float]) -> None:
        """gpus: NVML's handles by the names of the GPUs; without any, nothing is read."""
        self._management, self._gpus, self._now = management, gpus, now
        self._first: Reading | None = None

    @classmethod
    @contextmanager
    def open(cls, devices: Devices, now: Callable[[], float]) -> Iterator[PowerMeter]:
        """A meter of the GPUs among the devices, each once; NVML is shut down at the end."""
        if devices.kind != "cuda":
            yield cls(None, {}, now)
            return
        with nvml.session() as (management, _):
            yield cls(management, nvml.of_ordinals(management, devices.ordinals), now)

    def begin(self) -> None:
        """Start the measurement."""
        self._first = self._read()

    def watts(self) -> tuple[float, ...] | None:
        """The mean power of each GPU from the beginning until now; None if NVML does not report it, or no time
        passed.
        """
        first, last = self._first, self._read()
        if first is None or last is None or last[0] == first[0]:
            return None
        return tuple((now - then) / (last[0] - first[0]) for then, now in zip(first[1], last[1], strict=True))

    def notes(self, watts: tuple[float, ...] | None) -> tuple[str, ...]:
        """A sentence for each GPU that reached its power limit."""
        said = []
        for drawn, (name, handle) in zip(watts or (), self._gpus.items(), strict=False):
            limit = nvml.attempt(self._management, 0, "nvmlDeviceGetEnforcedPowerLimit", handle) / 1000
            if limit and abs(drawn / limit - 1) <= NEAR:
                said.append(f"{name} was at its power limit of {limit:.0f} W")
        return tuple(said)

    def _read(self) -> Reading | None:
        taken = [
            nvml.attempt(self._management, None, "nvmlDeviceGetTotalEnergyConsumption", handle)
            for handle in self._gpus.values()
        ]
        joules = tuple(one / 1000 for one in taken if one is not None)
        return (self._now(), joules) if joules and len(joules) == len(taken) else None

"""The power of GPUs at sustained work, from NVML's counters of energy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from peergrid.machine import nvml
from peergrid.runtime.devices import Devices

NEAR = 0.03  # of the limit: what is so near to it is at it

Reading = tuple[float, tuple[float, ...]]
"""A time in seconds, and the joules that each GPU has taken until then."""


class PowerMeter:
    """The mean power of some GPUs since a moment, where NVML tells what they take.

    The counters of H200s move every 0.1 s: over some seconds the mean is good to a per cent or two, over a short sample
    it is not.
    """

    def __init__(self, management: Any, gpus: dict[str, Any], now: Callable[[], float]) -> None:
        """gpus: NVML's handles by the names of the GPUs; none: nothing is read."""
        self._management, self._gpus, self._now = management, gpus, now
        self._first: Reading | None = None

    @classmethod
    @contextmanager
    def open(cls, devices: Devices, now: Callable[[], float]) -> Iterator[PowerMeter]:
        """A meter of the distinct GPUs among the devices; NVML is let go at the end."""
        if devices.kind != "cuda":
            yield cls(None, {}, now)
            return
        with nvml.session() as (management, _):
            yield cls(management, nvml.of_ordinals(management, devices.ordinals), now)

    def begin(self) -> None:
        """Count from here."""
        self._first = self._read()

    def watts(self) -> tuple[float, ...] | None:
        """The mean power of each GPU from the beginning until now; None where NVML does not say or no time passed."""
        first, last = self._first, self._read()
        if first is None or last is None or last[0] == first[0]:
            return None
        return tuple((now - then) / (last[0] - first[0]) for then, now in zip(first[1], last[1], strict=True))

    def notes(self, watts: tuple[float, ...] | None) -> tuple[str, ...]:
        """A sentence for each GPU that drew as much as its limit of power allows."""
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

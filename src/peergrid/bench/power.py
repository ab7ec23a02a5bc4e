"""What GPUs draw while samples run, from NVML's counters of energy, and whether their limit of power held them back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from peergrid.errors import DeviceFault
from peergrid.machine import driver, nvml
from peergrid.runtime.devices import Devices

SETTLED = 0.1  # seconds: the counters of an H200 move about so often, and have all of a sample only then
NEAR = 0.03  # of the limit: what is so near to it is at it

T = TypeVar("T")


@dataclass(frozen=True)
class Clock:
    """The host's time, and how some of it passes."""

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class _Reading:
    """The counters of all GPUs at one time; braked: ns for which the limit of power kept the clocks down, or None."""

    at: float
    joules: tuple[float, ...]
    braked: tuple[int | None, ...]


@dataclass(frozen=True)
class _Sample:
    """Counters before the rest, after it, and when they have all of the work, which took so many seconds."""

    before: _Reading
    ready: _Reading
    after: _Reading
    seconds: float


class Meter:
    """Rests and samples of some GPUs, with their energy where NVML tells it.

    A counter that moves every 0.1 s has less of a short sample, and more of the rest before it, than is true. So where
    there are rests it is read well after each sample, and what GPUs draw at rest, read as well, is taken off again.
    """

    def __init__(self, management: Any, gpus: dict[str, Any], clock: Clock) -> None:
        """gpus: NVML's handles by the names of the GPUs; none: nothing is read."""
        self._management, self._gpus, self._clock = management, gpus, clock
        self._samples: list[_Sample] = []
        self._known = self._read() is not None

    @classmethod
    @contextmanager
    def open(cls, devices: Devices, clock: Clock) -> Iterator[Meter]:
        """A meter of the distinct GPUs among the devices; NVML is let go at the end."""
        if devices.kind != "cuda":
            yield cls(None, {}, clock)
            return
        with nvml.session() as (management, _):
            yield cls(management, _handles(management, devices), clock)

    def settle(self) -> None:
        """Wait until the counters have all that ran."""
        if self._known:
            self._clock.sleep(SETTLED)

    def sample(self, rest: float, work: Callable[[], T]) -> T:
        """Let the devices rest for so many seconds, then work."""
        before = ready = self._read()
        if rest:
            self._clock.sleep(rest)
            ready = self._read()
        started = self._clock.now()
        found = work()
        seconds = self._clock.now() - started
        if rest:
            self.settle()
        after = self._read()
        if before and ready and after:
            self._samples.append(_Sample(before, ready, after, seconds))
        else:
            self._known = False
        return found

    def watts(self) -> tuple[float, ...] | None:
        """The mean power of each GPU while samples ran, without the rests; None where NVML does not say, or where no
        time passed.
        """
        if not self._known or not sum(one.seconds for one in self._samples):
            return None
        return tuple(self._watts(gpu) for gpu in range(len(self._gpus)))

    def notes(self) -> tuple[str, ...]:
        """Which GPUs drew what their limit of power allows; none whose clocks NVML says it did not keep down."""
        said = []
        for at, (watts, (name, handle)) in enumerate(zip(self.watts() or (), self._gpus.items(), strict=False)):
            limit = nvml.attempt(self._management, 0, "nvmlDeviceGetEnforcedPowerLimit", handle) / 1000
            if limit and abs(watts / limit - 1) <= NEAR and self._braked(at) is not False:
                said.append(f"{name} was held at its power limit of {limit:.0f} W")
        return tuple(said)

    def _watts(self, gpu: int) -> float:
        resting, rested = _sum([(one.before, one.ready) for one in self._samples], gpu)
        open_for, drawn = _sum([(one.ready, one.after) for one in self._samples], gpu)
        seconds = sum(one.seconds for one in self._samples)
        return (drawn - (rested / resting * (open_for - seconds) if resting else 0.0)) / seconds

    def _braked(self, gpu: int) -> bool | None:
        """Whether its limit of power kept a GPU's clocks down in some sample; None where NVML does not say."""
        pairs = [(one.ready.braked[gpu], one.after.braked[gpu]) for one in self._samples]
        known = [last > first for first, last in pairs if first is not None and last is not None]
        return any(known) if known else None

    def _read(self) -> _Reading | None:
        joules: list[float] = []
        for handle in self._gpus.values():
            energy = nvml.attempt(self._management, None, "nvmlDeviceGetTotalEnergyConsumption", handle)
            if energy is None:
                return None
            joules.append(energy / 1000)
        braked = tuple(_violation(self._management, handle) for handle in self._gpus.values())
        return _Reading(self._clock.now(), tuple(joules), braked) if joules else None


def _sum(spans: list[tuple[_Reading, _Reading]], gpu: int) -> tuple[float, float]:
    """Seconds and joules of all spans."""
    seconds = sum(last.at - first.at for first, last in spans)
    return seconds, sum(last.joules[gpu] - first.joules[gpu] for first, last in spans)


def _violation(management: Any, handle: Any) -> int | None:
    policy = getattr(management, "NVML_PERF_POLICY_POWER", 0)
    found = nvml.attempt(management, None, "nvmlDeviceGetViolationStatus", handle, policy)
    return None if found is None else int(found.violationTime)


def _handles(management: Any, devices: Devices) -> dict[str, Any]:
    """NVML's handles of the distinct GPUs; none at all where one is not known."""
    if management is None or (library := driver.find()[0]) is None:
        return {}
    try:
        found = {
            f"cuda:{ordinal}": nvml.of_device(management, library, driver.call(library, "cuDeviceGet", ordinal))
            for ordinal in dict.fromkeys(devices.ordinals)
        }
    except DeviceFault:
        return {}
    return {} if None in found.values() else found

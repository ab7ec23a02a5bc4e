"""The ways in which a survey's traces share devices: each on all of them, one after another, or several at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf

from peergrid.models import BuiltModel
from peergrid.runtime.devices import Devices
from peergrid.runtime.fit import RESERVE, free_memory

START, PER_DEVICE = 0.15, 0.09  # seconds before a trace's first step: h200-x4-held.json has 0.235 on one, 0.51 on four
ALONE = 0.1  # of a trace on one virtual device: what more of them do not share
WORTH = 0.98  # of the time for which more devices are taken for each trace


@dataclass(frozen=True)
class Share:
    """A way to share devices. each: devices of a trace; at_once: traces that run at a time; seconds: foretold of all
    of them, None where nothing is.
    """

    each: int
    at_once: int
    seconds: float | None


def groups(devices: Devices, share: Share) -> tuple[Devices, ...]:
    """The devices in groups of as many as a trace gets."""
    return tuple(
        Devices(devices.kind, devices.ordinals[first : first + share.each])
        for first in range(0, share.each * share.at_once, share.each)
    )


def fastest(built: BuiltModel, devices: Devices, traces: int) -> Share:
    """The way that is foretold to take the least time, of those that fit; of equal ones that with fewest devices."""
    best: Share | None = None
    for each in range(1, devices.count + 1):
        if devices.count % each:
            continue
        at_once = min(traces, devices.count // each)
        seconds = _seconds(built, Devices(devices.kind, devices.ordinals[:each]), ceil(traces / at_once), at_once)
        if best is None or seconds < WORTH * (best.seconds or 0.0):
            best = Share(each, at_once, seconds)
    assert best is not None
    known = devices.kind == "cuda" and best.seconds != inf
    return best if known else Share(best.each, best.at_once, None)


def _seconds(built: BuiltModel, devices: Devices, rounds: int, at_once: int) -> float:
    """Seconds of so many traces one after another, each on these devices; infinite where they do not fit."""
    if devices.kind == "cpu":
        needed = at_once * built.model.memory(computing=True, writing=False).cells
        each = 1 / devices.count + ALONE
        return inf if at_once > 1 and needed > RESERVE * free_memory() else rounds * each
    step = min(_steps(built, devices), default=inf)
    return rounds * (START + PER_DEVICE * devices.count + built.steps * step)


def _steps(built: BuiltModel, devices: Devices) -> Iterator[float]:
    """Seconds of a step in every arrangement that fits."""
    from peergrid.predict.choice import ranked  # takes compilers along, which are slow to come
    from peergrid.predict.forecast import fits
    from peergrid.predict.here import forecaster_here

    asked = forecaster_here(built.problem, devices)
    if asked is None:  # nothing is known of such devices: as if they shared a step evenly
        yield 1e-3 / devices.count
        return
    yield from (one.seconds_per_step for one in ranked(asked, most=built.steps) if fits(one, asked.machine))

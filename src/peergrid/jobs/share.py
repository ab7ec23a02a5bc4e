"""The division of devices among the traces of a survey: all devices for one trace after another, or parts of them.

Preparing a small model takes longer than its steps on a GPU, so that several processes share a GPU if that is predicted
to be faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, inf

from peergrid.arguments import brief, is_whole
from peergrid.errors import UsageError
from peergrid.models import BuiltModel
from peergrid.runtime.devices import Devices, cores
from peergrid.runtime.fit import RESERVE, free_memory

PREPARED, PER_DEVICE = 0.25, 0.09  # seconds of a process before a trace's first step: 0.25 to 0.34 on one H200
STARTED = 3.0  # seconds until processes are ready: 3.4 to the first trace kept (docs/measurements/surveys.md)
TOGETHER = 3  # processes of one GPU at most
ALONE = 0.1  # share of a trace on one virtual device that does not scale with more devices
WORTH = 0.98  # largest relative time for which more devices, or processes, are chosen


@dataclass(frozen=True)
class Share:
    """A division of devices among traces.

    each: devices of a trace; at_once: traces that run at a time, each in a process of its own; seconds: predicted for
    all traces, or None.
    """

    each: int
    at_once: int
    seconds: float | None = None


@dataclass(frozen=True)
class Steps:
    """The predicted seconds of a trace's steps, and the number of such traces that fit into memory at a time."""

    seconds: float
    room: int


def groups(devices: Devices, share: Share) -> tuple[Devices, ...]:
    """The devices of each process: consecutive groups of the size for a trace, repeated if processes share devices."""
    lanes = devices.count // share.each
    firsts = (share.each * (process % lanes) for process in range(share.at_once))
    return tuple(Devices(devices.kind, devices.ordinals[first : first + share.each]) for first in firsts)


def predicted_steps(built: BuiltModel, devices: Devices) -> Steps:
    """The steps of a trace on some GPUs, with the fastest options that fit; infinite seconds if none do."""
    from peergrid.predict.choice import ranked  # imports compilers, which is slow
    from peergrid.predict.forecast import fits
    from peergrid.predict.here import forecaster_here

    forecaster = forecaster_here(built.problem, devices)
    if forecaster is None:  # no figures for such devices: assume that they share a step evenly
        return Steps(built.steps * 1e-3 / devices.count, 1)
    for one in ranked(forecaster, most=built.steps):
        if fits(one, forecaster.machine):
            room = int(forecaster.machine.memory // (max(one.taken) + forecaster.machine.reserved))
            return Steps(built.steps * one.seconds_per_step, room)
    return Steps(inf, 1)


@dataclass(frozen=True)
class Host:
    """The processors of a host, and forecasts for its GPUs."""

    processors: int
    predict: Callable[[BuiltModel, Devices], Steps] = predicted_steps


def fastest(
    built: BuiltModel, devices: Devices, traces: int, each: int | None = None, host: Host | None = None
) -> Share:
    """The division with the shortest predicted time, among those that fit; of equal ones that with the fewest devices
    per trace.

    each: the devices of a trace, if given; host: this one, or a fake one for tests. Raises UsageError if that does not
    divide all devices.
    """
    if each is not None and (not is_whole(each) or each < 1 or devices.count % each):
        raise UsageError(
            f"The devices of each trace are expected to divide {devices.count}, the number of devices of the run, got "
            f"{brief(each)}; name another number."
        )
    best: Share | None = None
    for share in _divisions(built, devices, traces, each, host or Host(cores())):
        if best is None or (share.seconds or inf) < WORTH * (best.seconds or inf):
            best = share
    assert best is not None
    known = devices.kind == "cuda" and best.seconds != inf
    return best if known else Share(best.each, best.at_once)


def _divisions(built: BuiltModel, devices: Devices, traces: int, named: int | None, host: Host) -> Iterator[Share]:
    for each in range(1, devices.count + 1) if named is None else (named,):
        if devices.count % each:
            continue
        lanes = devices.count // each
        if devices.kind == "cpu":
            at_once = min(traces, lanes)
            yield Share(each, at_once, _on_threads(built, each, ceil(traces / at_once), at_once))
            continue
        steps = host.predict(built, Devices(devices.kind, devices.ordinals[:each]))
        for together in range(1, (TOGETHER if each == 1 else 1) + 1):
            at_once = min(traces, lanes * together)
            if together == 1 or (at_once > lanes and at_once <= host.processors and together <= steps.room):
                rounds, started = ceil(traces / lanes), STARTED if at_once > 1 else 0.0
                yield Share(each, at_once, started + rounds * _interval(steps.seconds, each, together))


def _on_threads(built: BuiltModel, each: int, rounds: int, at_once: int) -> float:
    """The time on virtual devices, in units of a trace on one; infinite if so many traces do not fit."""
    needed = at_once * built.model.memory(computing=True, writing=False).cells
    return inf if at_once > 1 and needed > RESERVE * free_memory() else rounds * (1 / each + ALONE)


def _interval(stepping: float, each: int, together: int) -> float:
    """Seconds between traces on one group of GPUs, by `together` processes whose steps do not overlap."""
    return max(stepping, (PREPARED + PER_DEVICE * each + stepping) / together)

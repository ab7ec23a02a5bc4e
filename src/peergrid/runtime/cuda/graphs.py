"""A schedule as one CUDA graph over all its devices: captured once, then replayed with a single call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peergrid.runtime.cuda.lower import Lowered
from peergrid.runtime.cuda.station import Station
from peergrid.runtime.cuda.tape import Tape, TapeWriter
from peergrid.schedule.ops import Event, Queue


@dataclass(frozen=True)
class Captured:
    """A graph that can be launched, and the queue it is launched into."""

    graph: int
    executable: int
    origin: Queue


def rows_between(station: Station, lowered: Lowered) -> tuple[Tape, Tape]:
    """What ties all queues to the first at the capture's start, and back to it at its end."""
    origin, *others = lowered.queues
    fork, join = TapeWriter(), TapeWriter()
    entry, devices = station.entry, station.devices
    start = Event(origin.device, "graph start")
    context = devices.context(origin.device)
    if others:
        fork.call(-1, context, entry("cuEventRecord"), devices.event(start), devices.stream(origin))
    for queue in others:
        fork.call(-1, 0, entry("cuStreamWaitEvent"), devices.stream(queue), devices.event(start), 0)
        done = Event(queue.device, f"graph end of {queue}")
        there = devices.context(queue.device)
        join.call(-1, there, entry("cuEventRecord"), devices.event(done), devices.stream(queue))
        join.call(-1, context, entry("cuStreamWaitEvent"), devices.stream(origin), devices.event(done), 0)
    return fork.finish(), join.finish()


def launch_tape(station: Station, captured: Captured) -> Tape:
    """The tape of one replay."""
    tape = TapeWriter()
    context = station.devices.context(captured.origin.device)
    stream = station.devices.stream(captured.origin)
    tape.call(-1, context, station.entry("cuGraphLaunch"), captured.executable, stream)
    return tape.finish()


def set_clocks(station: Station, lowered: Lowered, step: int) -> None:
    """Start the clocks of all queues at a time step."""
    for queue in lowered.queues:
        station.devices.enter(queue.device)
        station.devices.driver.upload(station.clock(queue), np.array([step], np.int64))

"""The times of operations, by events with timing around them. For a run of its own: such events cost time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.lowering.items import Numbered
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Event, Queue, SignalWait, Touching, queues_of
from peergrid.schedule.timeline import Span

Mark = tuple[int, Event, Event]
"""An operation's number, and the events before and after it."""


@dataclass(frozen=True)
class Timing:
    """Events before and after what takes a queue's time, written beside its commands: computations, copies, waits for
    flags.
    """

    devices: Devices
    marks: list[Mark] = field(default_factory=list)

    def before(self, commands: CommandWriter, item: Sequence[Numbered]) -> None:
        number, op = item[0]
        if isinstance(op, Touching | SignalWait):
            first, last = (Event(op.queue.device, f"trace {len(self.marks)} {side}") for side in ("before", "after"))
            self.marks.append((number, first, last))
            commands.record(-1, op.queue, first, timing=True)

    def after(self, commands: CommandWriter, item: Sequence[Numbered]) -> None:
        _, op = item[0]
        if isinstance(op, Touching | SignalWait):
            commands.record(-1, op.queue, self.marks[-1][2], timing=True)

    def spans(self, schedule: Schedule, clocks: dict[int, tuple[Event, float]]) -> tuple[Span, ...]:
        """The measured spans, in seconds from the first of them; clocks: as of `start_clocks`."""
        found: list[Span] = []
        for number, before, after in self.marks:
            (queue,) = queues_of(schedule.ops[number])
            start, at = clocks[queue.device]
            first, last = (at + self.devices.elapsed(start, event) for event in (before, after))
            found.append(Span(number, queue, first, last))
        origin = min((span.start for span in found), default=0.0)
        return tuple(replace(span, start=span.start - origin, end=span.end - origin) for span in found)


def start_clocks(devices: Devices, queues: tuple[Queue, ...]) -> dict[int, tuple[Event, float]]:
    """Record an event on every idle device; returns it with the host's time then, by which devices are aligned."""
    devices.synchronize()
    found: dict[int, tuple[Event, float]] = {}
    for queue in queues:
        if queue.device not in found:
            event = Event(queue.device, "trace start")
            commands = CommandWriter(devices)
            commands.record(-1, queue, event, timing=True)
            issue(devices, commands.finish(), "An event to measure the devices from")
            found[queue.device] = (event, time.perf_counter())
    devices.synchronize()
    return found

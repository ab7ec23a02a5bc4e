"""When each operation ran, by events with timing around it. For a run of its own: such events cost time themselves."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.lowering.station import Station
from peergrid.runtime.cuda.tapes.tape import Tape, TapeWriter
from peergrid.schedule.ops import Await, Compute, Copy, Event, Queue, queues_of
from peergrid.schedule.timeline import Span

Mark = tuple[int, Event, Event]
"""An operation's number, and the events before and after it."""


@dataclass(frozen=True)
class Timed:
    """Tapes with events around computations, copies and waits for flags."""

    tapes: dict[int, Tape]
    marks: tuple[Mark, ...]


def timed(station: Station, lowered: Lowered) -> Timed:
    """The tapes of a schedule with a timing event before and after each operation that takes a queue's time."""
    marks: list[Mark] = []
    tapes = {host: _with_events(station, lowered, tape, marks) for host, tape in lowered.tapes.items()}
    return Timed(tapes, tuple(marks))


def start_clocks(station: Station, queues: tuple[Queue, ...]) -> dict[int, tuple[Event, float]]:
    """Record an event on every idle device; returns it with the host's time then, by which devices are aligned."""
    station.devices.synchronize()
    found: dict[int, tuple[Event, float]] = {}
    for queue in queues:
        if queue.device not in found:
            event = Event(queue.device, "trace start")
            tape = TapeWriter()
            _record(station, tape, queue, event)
            station.issue(tape.finish())
            found[queue.device] = (event, time.perf_counter())
    station.devices.synchronize()
    return found


def spans(
    station: Station, lowered: Lowered, marks: tuple[Mark, ...], clocks: dict[int, tuple[Event, float]]
) -> tuple[Span, ...]:
    """The measured spans, in seconds from the first of them."""
    found: list[Span] = []
    for number, before, after in marks:
        (queue,) = queues_of(lowered.schedule.ops[number])
        start, at = clocks[queue.device]
        station.devices.enter(queue.device)
        first, last = (
            at + station.devices.driver.elapsed(*(station.devices.event(e, timing=True) for e in (start, event)))
            for event in (before, after)
        )
        found.append(Span(number, queue, first, last))
    origin = min((span.start for span in found), default=0.0)
    return tuple(replace(span, start=span.start - origin, end=span.end - origin) for span in found)


def _with_events(station: Station, lowered: Lowered, tape: Tape, marks: list[Mark]) -> Tape:
    writer = TapeWriter(patches=list(tape.patches), keep=list(tape.keep))
    for n, number in enumerate(tape.ops):
        op = lowered.schedule.ops[number] if number >= 0 else None
        measured = op is not None and isinstance(op, Compute | Copy | Await)
        if measured and (n == 0 or tape.ops[n - 1] != number):
            (queue,) = queues_of(lowered.schedule.ops[number])
            before, after = (Event(queue.device, f"trace {len(marks)} {side}") for side in ("before", "after"))
            marks.append((number, before, after))
            _record(station, writer, queue, before)
        writer.rows.append([int(word) for word in tape.table[n]])
        writer.ops.append(number)
        if measured and (n + 1 == len(tape.ops) or tape.ops[n + 1] != number):
            _record(station, writer, queue, after)
    return writer.finish()


def _record(station: Station, tape: TapeWriter, queue: Queue, event: Event) -> None:
    devices = station.devices
    handle = devices.event(event, timing=True)
    tape.call(-1, devices.context(queue.device), station.entry("cuEventRecord"), handle, devices.stream(queue))

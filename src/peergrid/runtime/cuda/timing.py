"""The times of operations, by events with timing around them. For a run of its own: such events cost time."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from peergrid.runtime.cuda.commands.buffer import CommandBuffer
from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.schedule.ops import Event, Queue, SignalWait, Touching, queues_of
from peergrid.schedule.timeline import Span

Mark = tuple[int, Event, Event]
"""An operation's number, and the events before and after it."""


@dataclass(frozen=True)
class Timed:
    """Command buffers with events around computations, copies and waits for flags."""

    buffers: dict[int, CommandBuffer]
    marks: tuple[Mark, ...]


def timed(execution: ExecutionContext, lowered: Lowered) -> Timed:
    """Command buffers with a timing event before and after each operation that takes a queue's time."""
    marks: list[Mark] = []
    buffers = {host: _with_events(execution, lowered, commands, marks) for host, commands in lowered.buffers.items()}
    return Timed(buffers, tuple(marks))


def start_clocks(execution: ExecutionContext, queues: tuple[Queue, ...]) -> dict[int, tuple[Event, float]]:
    """Record an event on every idle device; returns it with the host's time then, by which devices are aligned."""
    execution.devices.synchronize()
    found: dict[int, tuple[Event, float]] = {}
    for queue in queues:
        if queue.device not in found:
            event = Event(queue.device, "trace start")
            commands = CommandWriter(execution.devices)
            commands.record(-1, queue, event, timing=True)
            issue(execution.devices, commands.finish(), "An event to measure the devices from")
            found[queue.device] = (event, time.perf_counter())
    execution.devices.synchronize()
    return found


def spans(
    execution: ExecutionContext, lowered: Lowered, marks: tuple[Mark, ...], clocks: dict[int, tuple[Event, float]]
) -> tuple[Span, ...]:
    """The measured spans, in seconds from the first of them."""
    found: list[Span] = []
    for number, before, after in marks:
        (queue,) = queues_of(lowered.schedule.ops[number])
        start, at = clocks[queue.device]
        first, last = (at + execution.devices.elapsed(start, event) for event in (before, after))
        found.append(Span(number, queue, first, last))
    origin = min((span.start for span in found), default=0.0)
    return tuple(replace(span, start=span.start - origin, end=span.end - origin) for span in found)


def _with_events(
    execution: ExecutionContext, lowered: Lowered, commands: CommandBuffer, marks: list[Mark]
) -> CommandBuffer:
    writer = CommandWriter(execution.devices, relocations=list(commands.relocations), keep=list(commands.keep))
    for n, number in enumerate(commands.ops):
        op = lowered.schedule.ops[number] if number >= 0 else None
        measured = op is not None and isinstance(op, Touching | SignalWait)
        if measured and (n == 0 or commands.ops[n - 1] != number):
            (queue,) = queues_of(lowered.schedule.ops[number])
            before, after = (Event(queue.device, f"trace {len(marks)} {side}") for side in ("before", "after"))
            marks.append((number, before, after))
            writer.record(-1, queue, before, timing=True)
        writer.rows.append([int(word) for word in commands.table[n]])
        writer.ops.append(number)
        if measured and (n + 1 == len(commands.ops) or commands.ops[n + 1] != number):
            writer.record(-1, queue, after, timing=True)
    return writer.finish()

"""Events between GPUs as semaphores: words that one queue writes and queues of one other GPU wait for.

A semaphore counts how often an event was recorded, for one waiting device. A count only grows, so that the order in
which hosts issue does not matter. All semaphores of a queue between two other operations are adjacent, so that they are
one call to the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import (
    Event,
    Op,
    Queue,
    Record,
    Semaphore,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    hosts_of,
    queues_of,
)

Crosses = Callable[[int, int], bool]
"""True if queues of the second device wait for events of the first by semaphores."""


@dataclass(frozen=True)
class EventsToSemaphores:
    """The pass for devices, some of which can wait for each other's words."""

    crosses: Crosses

    def __call__(self, layout: Layout, schedule: Schedule) -> Schedule:
        ops = schedule.ops
        recorded = {op.event for op in ops if isinstance(op, Record)}
        words: dict[Event, dict[int, None]] = {}  # the waiting devices
        kept: set[Event] = set()
        for op in ops:
            if isinstance(op, Wait):
                if op.event in recorded and self.crosses(op.event.device, op.queue.device):
                    words.setdefault(op.event, {})[op.queue.device] = None
                else:
                    kept.add(op.event)
            elif isinstance(op, Sync) and isinstance(op.target, Event):
                kept.add(op.target)
        waiting = {event: tuple(devices) for event, devices in words.items()}
        return replace(schedule, ops=tuple(gathered(_replaced(ops, waiting, kept), is_semaphore)))


def applicable(schedule: Schedule, ordinals: tuple[int, ...]) -> bool:
    """True if one host issues, so that each wait has one record; if one queue of every GPU is ordered with others, so
    that the work in between can become a graph; and if the route is not through the host.
    """
    ops = schedule.ops
    waits = [op for op in ops if isinstance(op, Wait) and ordinals[op.event.device] != ordinals[op.queue.device]]
    events = {op.event for op in waits}
    tied = {op.queue for op in ops if isinstance(op, Record) and op.event in events} | {op.queue for op in waits}
    one_host = len({host for op in ops for host in hosts_of(op)}) == 1
    free = schedule.options.route != "host"
    return free and one_host and sorted(ordinals[queue.device] for queue in tied) == sorted(set(ordinals))


def semaphore(event: Event, device: int) -> Semaphore:
    """The word of a device that counts how often another's event was recorded."""
    return Semaphore(device, f"records of {event}")


def _replaced(ops: tuple[Op, ...], waiting: dict[Event, tuple[int, ...]], kept: set[Event]) -> Iterator[Op]:
    counts = Counter[Event]()
    for op in ops:
        if isinstance(op, Record):
            counts[op.event] += 1
            for device in waiting.get(op.event, ()):
                yield SignalOp(op.host, op.queue, semaphore(op.event, device), counts[op.event])
            if op.event in kept or op.event not in waiting:
                yield op
        elif isinstance(op, Wait) and op.queue.device in waiting.get(op.event, ()):
            yield SignalWait(op.host, op.queue, semaphore(op.event, op.queue.device), counts[op.event])
        else:
            yield op


def is_semaphore(op: Op) -> bool:
    """A test for operations on semaphores."""
    return isinstance(op, SignalOp | SignalWait) and isinstance(op.flag, Semaphore)


def gathered(ops: Iterable[Op], alike: Callable[[Op], bool]) -> Iterator[Op]:
    """The operations with those of one kind moved together if they follow each other in their queue."""
    groups: list[list[Op]] = []
    open_at: dict[Queue, int] = {}  # the group of each queue's newest of the kind, while nothing follows them
    for op in ops:
        mine = alike(op)
        for queue in queues_of(op):
            if mine and queue in open_at:
                groups[open_at[queue]].append(op)
                break
            open_at.pop(queue, None)
            if mine:
                open_at[queue] = len(groups)
        else:
            groups.append([op])
    for group in groups:
        yield from group

"""Mutants: schedules with one fault, which a proof has to reject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from peergrid.grid import Box
from peergrid.schedule.build import Schedule
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    HostBarrier,
    Op,
    Queue,
    Receive,
    Reduce,
    Send,
    Sync,
    describe,
    hosts_of,
    queues_of,
)

Change = Literal["drop", "absent", "shrink", "slots", "swap", "level", "steps", "source", "tag", "host"]
"""
drop    the operation is missing
absent  one host or queue does not take part in a barrier
shrink  a copy or a reduction is a cell smaller on one side
slots   slots are exchanged
swap    the operation and the next one of its queue change places
level   the operation declares another time level
steps   a computation takes one step more or less
source  a copy takes other cells, or those of another device
tag     a message takes the place of another between the same two devices
host    another host issues the operation
"""


@dataclass(frozen=True)
class Mutant:
    """A schedule with one change. kind: the change and the operation, such as 'drop Wait'."""

    kind: str
    what: str
    schedule: Schedule


def mutants(schedule: Schedule, per_kind: int | None = None) -> Iterator[Mutant]:
    """Every schedule with one change, kind by kind; or `per_kind` of each kind, spread over the list."""
    found: dict[str, list[_Edit]] = {}
    for edit in (*_replaced(schedule), *_swapped(schedule)):
        found.setdefault(f"{edit.change} {type(schedule.ops[edit.number]).__name__}", []).append(edit)
    for kind, alike in sorted(found.items()):
        chosen = len(alike) if per_kind is None else min(per_kind, len(alike))
        yield from (alike[(2 * i + 1) * len(alike) // (2 * chosen)].made(kind, schedule) for i in range(chosen))


@dataclass(frozen=True)
class _Edit:
    """A change of the operation of a number. parts: the operations that replace others."""

    change: Change
    number: int
    parts: Mapping[int, tuple[Op, ...]]

    def made(self, kind: str, schedule: Schedule) -> Mutant:
        ops = chain.from_iterable(self.parts.get(number, (op,)) for number, op in enumerate(schedule.ops))
        what = f"{self.change} op {self.number}: {describe(schedule.ops[self.number])}"
        return Mutant(kind, what, replace(schedule, ops=tuple(ops)))


def _replaced(schedule: Schedule) -> Iterator[_Edit]:
    for number, op in enumerate(schedule.ops):
        for change, others in _variants(op, schedule):
            yield _Edit(change, number, {number: others})


def _swapped(schedule: Schedule) -> Iterator[_Edit]:
    """Each operation exchanged with the next one in its queue."""
    last: dict[Queue, int] = {}
    pairs: dict[tuple[int, int], None] = {}
    for number, op in enumerate(schedule.ops):
        for queue in queues_of(op):
            if queue in last:
                pairs[last[queue], number] = None
            last[queue] = number
    for one, two in pairs:
        yield _Edit("swap", one, {one: (schedule.ops[two],), two: (schedule.ops[one],)})


def _variants(op: Op, schedule: Schedule) -> Iterator[tuple[Change, tuple[Op, ...]]]:
    """The variants of an operation."""
    yield "drop", ()
    yield from (("host", (other,)) for other in _other_hosts(op, schedule))
    match op:
        case HostBarrier():
            for host in op.hosts:
                yield "absent", (HostBarrier(tuple(h for h in op.hosts if h != host)),)
        case DeviceBarrier():
            for queue in op.queues:
                yield "absent", (replace(op, queues=tuple(q for q in op.queues if q != queue)),)
        case Compute():
            yield "slots", (replace(op, source=op.target, target=op.source),)
            for change in (-1, 1):
                yield "level", (replace(op, level=op.level + change),)
                yield "steps", (replace(op, steps=op.steps + change),)
        case Reduce():
            yield "slots", (replace(op, slot=1 - op.slot),)
            for change in (-1, 1):
                yield "level", (replace(op, level=op.level + change),)
            for axis in range(op.box.ndim):
                for lower, upper in ((1, 0), (0, -1)):
                    yield "shrink", (replace(op, box=_moved(op.box, axis, lower, upper)),)
        case Copy():
            yield from _other_cells(op)
            if schedule.devices > 1:
                yield "source", (replace(op, source_device=(op.source_device + 1) % schedule.devices),)
        case Send() | Receive():
            yield from _other_cells(op)
            for tag in _other_tags(op, schedule):
                yield "tag", (replace(op, tag=tag),)


def _other_hosts(op: Op, schedule: Schedule) -> Iterator[Op]:
    """The operation issued by another host, if there is one."""
    if isinstance(op, Sync | HostBarrier):
        return
    hosts = sorted({host for other in schedule.ops for host in hosts_of(other)})
    (mine,) = hosts_of(op)
    if len(hosts) > 1:
        other = hosts[(hosts.index(mine) + 1) % len(hosts)]
        yield replace(op, hosts=(other,)) if isinstance(op, DeviceBarrier) else replace(op, host=other)


def _other_cells(op: Copy | Send | Receive) -> Iterator[tuple[Change, tuple[Op, ...]]]:
    yield "slots", (replace(op, slot=1 - op.slot),)
    for change in (-1, 1):
        yield "level", (replace(op, level=op.level + change),)
    for axis in range(op.source_box.ndim):
        for lower, upper in ((1, 0), (0, -1)):
            source, target = (_moved(box, axis, lower, upper) for box in (op.source_box, op.target_box))
            yield "shrink", (replace(op, source_box=source, target_box=target),)
        for step in (-1, 1):
            yield "source", (replace(op, source_box=_moved(op.source_box, axis, step, step)),)


def _other_tags(op: Send | Receive, schedule: Schedule) -> tuple[int, ...]:
    """The tags of other messages from the same device to the same other."""
    way = op.source_device, op.target_device
    alike = (other for other in schedule.ops if isinstance(other, type(op)))
    return tuple(dict.fromkeys(o.tag for o in alike if (o.source_device, o.target_device) == way and o.tag != op.tag))


def _moved(box: Box, axis: int, lower: int, upper: int) -> Box:
    """The box with its faces across one axis moved."""
    return box.with_axis(axis, box.lo[axis] + lower, box.hi[axis] + upper)

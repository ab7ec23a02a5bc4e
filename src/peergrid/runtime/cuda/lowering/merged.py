"""Boundary region and interior in one launch, whose first tiles are the boundary region.

As a launch of its own the boundary region finds no multiprocessor free, takes kernels of one step, and makes cells
twice where a step has several launches. Where both stream, one launch makes both, in the queue of the interior; the
queue of the boundary region awaits the first tiles by a word in memory. The schedule stays: what it orders is ordered
still.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.items import Numbered, hosts, items
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Compute, Event, Op, Queue, Record, Sync, Wait, queues_of


@dataclass(frozen=True)
class Merged:
    """The computations of a pass that a device makes in two queues, one behind the other.

    first, second: the numbers of the operations of either; boxes: of the first; whole: the cells of both.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    device: int
    queues: tuple[Queue, Queue]
    boxes: tuple[Box, ...]
    whole: Box


def neighbours(schedule: Schedule) -> Iterator[Merged]:
    """The computations of one step, of neighbouring operations, that one launch could make: they fill a box."""
    for host in hosts(schedule):
        for (_, one), (_, other) in pairwise(items(schedule, host)):
            first, second = _computed(one), _computed(other)
            if first and second and _alike(first[0], second[0]):
                boxes = [op.box for op in (*first, *second)]
                whole = reduce(Box.hull, boxes)
                if whole.size == sum(box.size for box in boxes):
                    numbers, others = (tuple(n for n, _ in part) for part in (one, other))
                    queues, own = (first[0].queue, second[0].queue), tuple(op.box for op in first)
                    yield Merged(numbers, others, first[0].device, queues, own, whole)


def implied(schedule: Schedule, merged: Iterable[Merged], continued: Container[Merged] = ()) -> frozenset[int]:
    """The operations that order nothing more where computations are merged: a launch follows all that is before it in
    either queue. So no queue waits for the other just before it, nor the second one for the first just behind it,
    unless the first has launches of its own there.

    continued: those with such launches.
    """
    found = {number for one in merged for number in _before(schedule.ops, one)}
    found |= {number for one in merged if one not in continued for number in _behind(schedule.ops, one)}
    waited = {op.event for n, op in enumerate(schedule.ops) if isinstance(op, Wait) and n not in found}
    waited |= {op.target for op in schedule.ops if isinstance(op, Sync) and isinstance(op.target, Event)}
    events = {op.event for n, op in enumerate(schedule.ops) if isinstance(op, Wait) and n in found} - waited
    records = (n for n, op in enumerate(schedule.ops) if isinstance(op, Record) and op.event in events)
    return frozenset((*found, *records))


def _before(ops: tuple[Op, ...], merged: Merged) -> Iterator[int]:
    """The waits of the first queue just before, for what the second one recorded."""
    queue, other = merged.queues
    for number in reversed(range(merged.first[0])):
        op = ops[number]
        if queue in queues_of(op):
            if not isinstance(op, Wait) or _record(ops, number)[1] != other:
                return
            yield number


def _behind(ops: tuple[Op, ...], merged: Merged) -> Iterator[int]:
    """The waits of the second queue just behind, for what the first one recorded just behind."""
    other, queue = merged.queues
    for number in range(merged.second[-1] + 1, len(ops)):
        op = ops[number]
        if queue in queues_of(op):
            if not isinstance(op, Wait):
                return
            place, recorded = _record(ops, number)
            between = range(merged.first[-1] + 1, place)
            if recorded != other or any(other in queues_of(ops[n]) for n in between):
                return
            yield number


def _record(ops: tuple[Op, ...], number: int) -> tuple[int, Queue | None]:
    """The last record before a wait, and its queue; none where an earlier schedule made it."""
    wait = ops[number]
    assert isinstance(wait, Wait)
    for place in reversed(range(number)):
        op = ops[place]
        if isinstance(op, Record) and op.event == wait.event:
            return place, op.queue
    return -1, None


def _computed(part: list[Numbered]) -> list[Compute]:
    return [op for _, op in part if isinstance(op, Compute)]


def _alike(one: Compute, other: Compute) -> bool:
    """True for computations of one step of a pass on a device, in two queues."""
    passes = [(op.device, op.level, op.steps, op.source, op.target) for op in (one, other)]
    return one.steps == 1 and passes[0] == passes[1] and one.queue != other.queue

"""Operations that are carried out together: neighbours of one host and kind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from peergrid.schedule import Schedule
from peergrid.schedule.ops import Compute, Copy, Op, Receive, Semaphore, Send, SignalOp, SignalWait, hosts_of

Numbered = tuple[int, Op]


def joint(number: int, op: Op) -> tuple[object, ...]:
    """Neighbouring operations with the same key may be carried out together."""
    match op:
        case Compute():
            return ("compute", op.queue, op.level, op.steps, op.source, op.target)
        case Copy():
            return ("copy", op.queue, op.source_device, op.slot)
        case SignalOp(flag=Semaphore()) | SignalWait(flag=Semaphore()):
            return ("semaphores", op.queue)
        case Send() | Receive():
            return ("messages", op.queue)
        case _:
            return (number,)


def items(schedule: Schedule, host: int) -> Iterator[tuple[tuple[object, ...], list[Numbered]]]:
    """A host's operations in order, neighbours with the same key in one list, with this key."""
    mine = [(n, op) for n, op in enumerate(schedule.ops) if host in hosts_of(op)]
    for key, part in groupby(mine, key=lambda numbered: joint(*numbered)):
        yield key, list(part)


def hosts(schedule: Schedule) -> list[int]:
    """The hosts of a schedule."""
    return sorted({host for op in schedule.ops for host in hosts_of(op)})


def computations(schedule: Schedule) -> Iterator[tuple[int, list[Compute]]]:
    """The computations that are made together, host by host, with the number of the first operation."""
    for host in hosts(schedule):
        for _, part in items(schedule, host):
            found = [op for _, op in part if isinstance(op, Compute)]
            if found:
                yield part[0][0], found

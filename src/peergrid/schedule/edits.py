"""Random edits of schedules, beyond the mutants; edited schedules that the proof accepts have to be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from peergrid.errors import UsageError
from peergrid.schedule.build import Schedule
from peergrid.schedule.ops import (
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Record,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    describe,
    queues_of,
)

Ops = list[Op]
TRIES = 100  # attempts to draw an edit that is allowed and changes something


def edited(schedule: Schedule, chance: Random, count: int = 1) -> tuple[str, Schedule]:
    """The schedule after so many random edits, and what they were."""
    names = []
    for _ in range(count):
        name, schedule = _edit(schedule, chance)
        names.append(name)
    return "; ".join(names), schedule


def _edit(schedule: Schedule, chance: Random) -> tuple[str, Schedule]:
    for _ in range(TRIES):
        edit, ops = chance.choice(EDITS), list(schedule.ops)
        number = chance.randrange(len(ops))
        before = describe(ops[number])
        try:
            edit(ops, number, chance)
        except (UsageError, TypeError, AttributeError):
            continue  # the operation is not allowed, or has no such field
        if tuple(ops) != schedule.ops:
            return f"{edit.__name__} {before}", replace(schedule, ops=tuple(ops))
    raise AssertionError("no edit changes this schedule")


def swapped(ops: Ops, number: int, chance: Random) -> None:
    """Two operations change places."""
    other = chance.randrange(len(ops))
    ops[number], ops[other] = ops[other], ops[number]


def doubled(ops: Ops, number: int, chance: Random) -> None:
    """An operation is repeated anywhere."""
    ops.insert(chance.randrange(len(ops) + 1), ops[number])


def moved(ops: Ops, number: int, chance: Random) -> None:
    """An operation is moved."""
    op = ops.pop(number)
    ops.insert(chance.randrange(len(ops) + 1), op)


def dropped(ops: Ops, number: int, chance: Random) -> None:
    """An operation is missing."""
    del ops[number]


def requeued(ops: Ops, number: int, chance: Random) -> None:
    """An operation is in another queue."""
    queues = sorted({queue for op in ops for queue in queues_of(op)})
    _put(ops, number, queue=chance.choice(queues))


def rehosted(ops: Ops, number: int, chance: Random) -> None:
    """Another host issues an operation, perhaps a new one."""
    _put(ops, number, host=chance.randrange(3))


def renamed(ops: Ops, number: int, chance: Random) -> None:
    """An operation uses another event or flag."""
    op = ops[number]
    if isinstance(op, Record | Wait):
        events: list[Any] = sorted({o.event for o in ops if isinstance(o, Record | Wait)})
        _put(ops, number, event=chance.choice([*events, Event(op.event.device, "new")]))
    elif isinstance(op, SignalOp | SignalWait):
        flags = sorted({o.flag for o in ops if isinstance(o, SignalOp | SignalWait)}, key=str)
        _put(ops, number, flag=chance.choice([*flags, Flag(op.flag.device, "new")]))


def revalued(ops: Ops, number: int, chance: Random) -> None:
    """A flag is set or awaited at another value."""
    op = ops[number]
    if isinstance(op, SignalOp | SignalWait):
        _put(ops, number, value=op.value + chance.choice((-1, 1)))


def resynced(ops: Ops, number: int, chance: Random) -> None:
    """A host waits for another queue or event, or a barrier has other parties."""
    op = ops[number]
    if isinstance(op, Sync):
        _put(ops, number, target=chance.choice(sorted({queue for o in ops for queue in queues_of(o)})))
    elif isinstance(op, HostBarrier):
        _put(ops, number, hosts=op.hosts[1:] or op.hosts)
    elif isinstance(op, DeviceBarrier):
        _put(ops, number, queues=tuple(chance.sample(op.queues, len(op.queues) - 1)) or op.queues)


def rerouted(ops: Ops, number: int, chance: Random) -> None:
    """A copy comes from, or goes to, another device."""
    op = ops[number]
    if isinstance(op, Copy):
        name = chance.choice(("source_device", "target_device"))
        _put(ops, number, **{name: chance.choice((op.source_device, op.target_device))})


def _put(ops: Ops, number: int, **changes: Any) -> None:
    op: Any = ops[number]
    ops[number] = replace(op, **changes)


EDITS: tuple[Callable[[Ops, int, Random], None], ...] = (
    swapped,
    doubled,
    moved,
    dropped,
    requeued,
    rehosted,
    renamed,
    revalued,
    resynced,
    rerouted,
)

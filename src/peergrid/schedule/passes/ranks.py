"""A schedule for devices of several processes (MPI: ranks), from one for devices of a single process.

A copy between ranks becomes a message: `Send` in a queue of the source, `Receive` in the queue of the same name of the
target. Operations that order devices of different ranks (events, flags, barriers, waits of a host) are removed:
messages order them, each after the sender's earlier work and before the receiver's later work. The result is proved
like any other schedule (`verify`).

Every rank builds the whole schedule and executes the part of its own hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peergrid.errors import UsageError
from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import (
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Receive,
    Record,
    Send,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.passes.semaphores import gathered


def over_ranks(schedule: Schedule, ranks: Sequence[int]) -> Schedule:
    """The schedule with messages between ranks, its hosts those of all ranks; ranks: the rank of each device.

    Raises UsageError if there is not one rank for each device.
    """
    if len(ranks) != schedule.devices:
        raise UsageError(f"A schedule of {schedule.devices} devices needs the rank of each, got {len(ranks)}.")
    if len(set(ranks)) < 2:
        return schedule
    return replace(schedule, ops=tuple(_Split(schedule.ops, tuple(ranks)).made()))


def in_groups(schedule: Schedule) -> Schedule:
    """The schedule with messages of a queue moved together if nothing separates them, so that an exchange is one
    group.
    """
    return replace(schedule, ops=tuple(gathered(schedule.ops, lambda op: isinstance(op, Send | Receive))))


def barriers_to_events(layout: Layout, schedule: Schedule) -> Schedule:
    """The schedule with events in place of barriers of several devices: each queue waits for the earlier work of all
    others.
    """
    return replace(schedule, ops=tuple(one for op in schedule.ops for one in _met(op)))


def _met(op: Op) -> Iterator[Op]:
    if not isinstance(op, DeviceBarrier) or len({queue.device for queue in op.queues}) < 2:
        yield op
        return
    came = {queue: Event(queue.device, f"barrier of {queue}") for queue in op.queues}
    for queue, event in came.items():
        yield Record(op.hosts[0], queue.device, queue, event)
    for queue in op.queues:
        yield from (Wait(op.hosts[0], queue, event) for other, event in came.items() if other != queue)


def by_address(schedule: Schedule, ranks: Sequence[int]) -> Schedule | None:
    """The schedule for ranks that address each other's memory, each with a host of its own; None if anything but words
    in memory orders devices of different ranks: an event, a barrier, a wait of a host.
    """
    if len(set(ranks)) < 2:
        return schedule
    made: list[Op] = []
    for op in schedule.ops:
        found = {ranks[place.device] for place in _places(op)}
        if isinstance(op, Sync | HostBarrier) or (isinstance(op, Wait) and ranks[op.event.device] not in found):
            return None
        if len(found) != 1:
            return None
        (rank,) = found
        made.append(replace(op, hosts=(rank,)) if isinstance(op, DeviceBarrier) else replace(op, host=rank))
    return replace(schedule, ops=tuple(made))


def of_rank(schedule: Schedule, ranks: Sequence[int], rank: int) -> Schedule:
    """The part of one rank in a schedule that `over_ranks` made."""
    if len(set(ranks)) < 2:
        return schedule
    rank_of = {host: ranks[place.device] for op in schedule.ops for place in _places(op) for host in hosts_of(op)}
    return replace(schedule, ops=tuple(op for op in schedule.ops if rank_of[hosts_of(op)[0]] == rank))


def _places(op: Op) -> tuple[Queue | Event, ...]:
    """The queues, or the event, that an operation uses."""
    return (op.target,) if isinstance(op, Sync) else queues_of(op)


def _ends(op: Copy) -> tuple[Queue, Queue]:
    """The queues in which a copy between ranks leaves and arrives."""
    source, target = (Queue(end, op.queue.name, op.queue.priority) for end in (op.source_device, op.target_device))
    return source, target


class _Split:
    """The new operations of a schedule, and the messages that queues have not received yet.

    A queue receives messages before its next operation other than `Send`, so that all messages are sent before any
    wait.
    """

    def __init__(self, ops: Sequence[Op], ranks: tuple[int, ...]) -> None:
        self._ops, self._ranks, self._size = ops, ranks, max(ranks) + 1
        self._tags: dict[tuple[object, ...], int] = {}
        self._pending: dict[Queue, list[Receive]] = {}
        self._host_of = {queue: hosts_of(op)[0] for op in reversed(ops) for queue in queues_of(op)}
        self._hosts = {(host, self._of(place)) for op in ops for place in self._used(op) for host in hosts_of(op)}
        self._of_host = {host: sorted(rank for other, rank in self._hosts if other == host) for host, _ in self._hosts}
        self._stride = 1 + max(self._of_host, default=0)
        self._waited = {op.event for op in ops if isinstance(op, Wait) and self._within(op.queue, op.event)}
        self._waited |= {op.target for op in ops if isinstance(op, Sync) and isinstance(op.target, Event)}
        self._signalled = {op.flag for op in ops if isinstance(op, SignalOp) and self._within(op.queue, op.flag)}

    def made(self) -> Iterator[Op]:
        """The operations of all ranks."""
        for op in self._ops:
            for one in self._parts(op):
                if not isinstance(one, Send | Sync):
                    for queue in queues_of(one):
                        yield from self._pending.pop(queue, ())
                yield one
        for received in self._pending.values():
            yield from received

    def _parts(self, op: Op) -> Iterator[Op]:
        """The operations that replace one."""
        match op:
            case HostBarrier():
                for rank in range(self._size):
                    hosts = tuple(self._host(host, rank) for host in op.hosts if (host, rank) in self._hosts)
                    if len(hosts) > 1:
                        yield HostBarrier(hosts)
            case DeviceBarrier():
                for rank in range(self._size):
                    queues = tuple(queue for queue in op.queues if self._of(queue) == rank)
                    if len(queues) > 1:
                        yield DeviceBarrier(queues, tuple(self._host(host, rank) for host in op.hosts))
            case Copy() if self._ranks[op.source_device] != self._ranks[op.target_device]:
                yield self._message(op)
            case Sync():
                yield replace(op, host=self._host(op.host, self._of(op.target)))
            case _ if self._needed(op):
                yield replace(op, host=self._host(op.host, self._of(op.queue)))

    def _needed(self, op: Op) -> bool:
        """True for an operation that does anything within its rank."""
        match op:
            case Record():
                return op.event in self._waited
            case Wait():
                return self._within(op.queue, op.event)
            case SignalOp():
                return self._within(op.queue, op.flag)
            case SignalWait():
                return op.flag in self._signalled
        return True

    def _message(self, op: Copy) -> Send:
        """The sending half of a copy; the other half is received later."""
        tag = self._tags.setdefault((op.field, op.source_device, op.target_device, op.target_box), len(self._tags))
        cells = (op.field, op.slot, op.level, op.source_device, op.source_box, op.target_device, op.target_box, tag)
        source, target = _ends(op)
        received = Receive(self._host_at(op, target), target, *cells)
        self._pending.setdefault(target, []).append(received)
        return Send(self._host_at(op, source), source, *cells)

    def _host_at(self, op: Copy, queue: Queue) -> int:
        """The host that issues one half of a copy: that of the copy, or else that of the half's queue."""
        host = op.host if queue == op.queue else self._host_of.get(queue, op.host)
        return self._host(host, self._of(queue))

    def _used(self, op: Op) -> tuple[Queue | Event, ...]:
        """The places whose ranks need a part of an operation, among them the ends of a copy in queues without other
        operations.
        """
        ends = [end for end in _ends(op) if end not in self._host_of] if isinstance(op, Copy) else []
        return (*_places(op), *ends)

    def _of(self, place: Queue | Event) -> int:
        return self._ranks[place.device]

    def _within(self, one: Queue, two: Event | Flag) -> bool:
        return self._ranks[one.device] == self._ranks[two.device]

    def _host(self, host: int, rank: int) -> int:
        """The host of one rank that replaces a host of all ranks; a host of a single rank stays."""
        return host + self._stride * self._of_host[host].index(rank)

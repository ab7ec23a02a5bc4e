"""A log from the notes of queues alone; the entries of hosts follow from their programs.

Queues note the beginnings and ends of their operations in one order. An operation is issued before its queue begins it,
and earlier operations of its host's program have happened by then: these entries are added to the log as late as
possible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from peergrid.runtime.trace.recorder import Begin, Entry, Log, Position
from peergrid.schedule.build import Schedule
from peergrid.schedule.ops import Event, HostBarrier, Queue, Record, Sync, Wait, hosts_of
from peergrid.schedule.unroll import Placed, unroll


def completed(iterations: Sequence[Schedule], noted: Iterable[Entry]) -> Log:
    """The log of iterations whose queues noted these beginnings and ends, in their order."""
    hosts = _Hosts(iterations)
    for entry in noted:
        hosts.until(entry.position)
        hosts.log.entries.append(entry._replace(saw=hosts.bound.get(entry.position, entry.saw)))
    hosts.end()
    return hosts.log


class _Hosts:
    """The rest of each host's program, and the log so far; bound: the records to which waits are bound."""

    def __init__(self, iterations: Sequence[Schedule]) -> None:
        self.log = Log(list(iterations), [Begin(0)])
        self.bound: dict[Position, Position | None] = {}
        self._left: dict[int, deque[Placed]] = {}
        self._host_of: dict[Position, int] = {}
        self._latest: dict[Event, Position] = {}
        self._issued: set[Position] = set()
        self._arrived: dict[Position, set[int]] = {}
        for placed in unroll(iterations):
            self._host_of[placed.iteration, placed.number] = hosts_of(placed.op)[0]
            for host in hosts_of(placed.op):
                self._left.setdefault(host, deque()).append(placed)

    def until(self, position: Position) -> None:
        """Add the issue of an operation, and all earlier entries of its host."""
        host = self._host_of[position]
        while position not in self._issued and self._left[host]:
            self._advance(host)

    def end(self) -> None:
        """Add all remaining entries."""
        for host, left in self._left.items():
            while left:
                self._advance(host)

    def _advance(self, host: int) -> None:
        placed = self._left[host].popleft()
        position, op = (placed.iteration, placed.number), placed.op
        if isinstance(op, Sync):
            self.log.start(host, position)
            self.log.finish(host, position, self._latest.get(op.target) if isinstance(op.target, Event) else None)
        elif isinstance(op, HostBarrier):
            self.log.start(host, position)
            self._arrived.setdefault(position, set()).add(host)
            for other in op.hosts:
                while other not in self._arrived[position]:
                    self._advance(other)
            self.log.finish(host, position)
        elif host == hosts_of(op)[0]:
            self.log.issue(host, position)
            self._issued.add(position)
            if isinstance(op, Record):
                self._latest[op.event] = position
            elif isinstance(op, Wait):
                self.bound[position] = self._latest.get(op.event)


def joined(queue: Queue, positions: Sequence[Position], begins: bool) -> Iterable[Entry]:
    """The entries for operations that a queue carries out as one, where it begins them, or where it ends them."""
    first, *others = positions
    if begins:
        yield Entry("start", queue, first, None)
        return
    yield Entry("finish", queue, first, None)
    for position in others:
        yield Entry("start", queue, position, None)
        yield Entry("finish", queue, position, None)

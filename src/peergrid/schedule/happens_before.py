"""The happens-before order of a program: which operations end before others begin, for any timing.

The operations are executed symbolically: a host issues as soon as it can, a queue runs its first operation as soon as
it can. Possible progress is never lost (queues are first-in first-out, flags only grow, a wait is bound to its record
when it is issued), so an operation that can run in some execution runs in this one, and one that is stuck here is stuck
in all. On the way each operation gathers, as the bits of an integer, everything that must be over before it.

An order that depends on which of two hosts is quicker is a fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress

from peergrid.schedule.faults import Fault, FaultKind
from peergrid.schedule.ops import (
    IN_FLIGHT,
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
    Touching,
    Wait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.unroll import Placed, same_message


@dataclass(frozen=True, eq=False)
class Order:
    """The operations of queues that run, in one possible order.

    bits: of each, its place as a power of two, growing along the list;
    before: of each, the sum of the bits of everything that is over before it begins (bits of issues included);
    unrecorded: waits for events that were never recorded, which have no effect.
    """

    done: tuple[Placed, ...]
    bits: tuple[int, ...]
    before: tuple[int, ...]
    faults: tuple[Fault, ...]
    unrecorded: tuple[Placed, ...]

    @property
    def accessing(self) -> Order:
        """The order of those operations that read or write fields."""
        chosen = [isinstance(placed.op, Touching) for placed in self.done]
        done, bits, before = compress(self.done, chosen), compress(self.bits, chosen), compress(self.before, chosen)
        return Order(tuple(done), tuple(bits), tuple(before), self.faults, self.unrecorded)


def happens_before(program: Iterable[Placed]) -> Order:
    """The order of a program; faults say which operations never run and which orders are not determined."""
    walk = _Walk()
    for placed in program:
        walk.add(placed)
    while walk.advance():
        pass
    stuck = tuple(walk.stuck()) or tuple(walk.lost())
    done = [node for node in walk.done if queues_of(node.placed.op)]
    return Order(
        tuple(node.placed for node in done),
        tuple(node.bit for node in done),
        tuple(node.after & ~node.bit for node in done),
        (*walk.faults, *stuck),
        tuple(walk.unrecorded),
    )


def stuck(program: Iterable[Placed]) -> tuple[Fault, ...]:
    """The deadlocks of a program alone, in time proportional to its length."""
    walk = _Walk(counting=False)
    for placed in program:
        walk.add(placed)
    while walk.advance():
        pass
    return tuple(walk.stuck())


@dataclass(eq=False, slots=True)
class _Node:
    """An operation in progress: the bits of its issue and of its end, and the operations that are over then.

    arrived: at a barrier, the participants that have arrived, with the operations over for each.
    """

    placed: Placed
    issue: int = 0
    known: int = 0
    bit: int = 0
    after: int = 0
    bound: _Node | None = None
    arrived: dict[Queue | int, int] = field(default_factory=dict)

    @property
    def op(self) -> Op:
        return self.placed.op


class _Walk:
    """The symbolic execution. Issues and ends are numbered with one bit each, in the order in which they happen.

    counting: with a bit each; else one bit serves all, which finds deadlocks but no order.
    """

    def __init__(self, *, counting: bool = True) -> None:
        self.counting = counting
        self.hosts: dict[int, deque[_Node]] = {}
        self.queues: dict[Queue, deque[_Node]] = {}
        self.knows: dict[Queue | int, int] = {}
        self.issued: dict[Queue, list[_Node]] = {}
        self.records: dict[Event, list[_Node]] = {}
        self.waits: dict[Event, list[_Node]] = {}
        self.raises: dict[Flag, list[_Node]] = {}
        self.sent: dict[int, list[_Node]] = {}
        self.received: dict[int, list[_Node]] = {}
        self.next_bit = 1
        self.done: list[_Node] = []
        self.faults: list[Fault] = []
        self.unrecorded: list[Placed] = []

    def add(self, placed: Placed) -> None:
        """Add an operation at the end of its hosts' programs."""
        node = _Node(placed)
        for host in hosts_of(placed.op):
            self.hosts.setdefault(host, deque()).append(node)
            self.knows.setdefault(host, 0)
        named = placed.op.target if isinstance(placed.op, Sync) else None
        for queue in (named,) if isinstance(named, Queue) else queues_of(placed.op):
            self.queues.setdefault(queue, deque())
            self.issued.setdefault(queue, [])
            self.knows.setdefault(queue, 0)

    def advance(self) -> bool:
        """Let all hosts and queues run as far as they can; returns whether any did."""
        moved = False
        for host, program in self.hosts.items():
            while program and self._host_goes(host, program[0]):
                program.popleft()
                moved = True
        for queue, line in self.queues.items():
            while line and self._queue_goes(queue, line[0]):
                line.popleft()
                moved = True
        return moved

    def lost(self) -> Iterable[Fault]:
        """One fault for every tag with more messages sent than received."""
        for tag, sent in self.sent.items():
            if len(sent) > len(self.received.get(tag, ())):
                message = f"Lost message: nobody receives {sent[len(self.received.get(tag, ()))].placed}."
                yield Fault("message", message, (sent[-1].op,))

    def stuck(self) -> Iterable[Fault]:
        """One fault for every host and queue that did not reach the end."""
        for actor, line in (*self.hosts.items(), *self.queues.items()):
            if line:
                name = f"host {actor}" if isinstance(actor, int) else f"queue {actor}"
                head = line[0]
                message = f"Deadlock: {name} never gets past {head.placed}: {self._reason(head)}."
                yield Fault("deadlock", message, (head.op,))

    def _host_goes(self, host: int, node: _Node) -> bool:
        op = node.op
        if isinstance(op, Sync):
            return self._sync(host, node, op)
        if isinstance(op, HostBarrier):
            return self._meet(host, node, op.hosts)
        if isinstance(op, DeviceBarrier) and len(op.hosts) != 1:
            self._fault("undetermined", f"{node.placed} is issued by hosts {op.hosts}; one host issues it.", op)
        node.known = self.knows[host]
        node.issue = self._bit()
        self.knows[host] = node.known | node.issue
        self._bind(node, op)
        for queue in queues_of(op):
            self._enqueue(queue, node)
        return True

    def _enqueue(self, queue: Queue, node: _Node) -> None:
        line = self.issued[queue]
        if line and not node.known & line[-1].issue:
            self._unordered(f"queue {queue} is handed", line[-1], node)
        line.append(node)
        self.queues[queue].append(node)

    def _bind(self, node: _Node, op: Op) -> None:
        """Bind a wait to its record; the hosts that issue them must order both."""
        if isinstance(op, Record):
            earlier = self.records.setdefault(op.event, [])
            for other in (*earlier[-1:], *self.waits.pop(op.event, ())):
                if not node.known & other.issue:
                    self._unordered(f"event {op.event} is used by", other, node)
            earlier.append(node)
        elif isinstance(op, Wait):
            self._bind_wait(node, op.event)

    def _bind_wait(self, node: _Node, event: Event) -> None:
        self.waits.setdefault(event, []).append(node)
        records = self.records.get(event)
        if not records:
            self.unrecorded.append(node.placed)
            return
        node.bound = records[-1]
        if not node.known & node.bound.issue:
            self._unordered(f"event {event} is used by", node.bound, node)

    def _queue_goes(self, queue: Queue, node: _Node) -> bool:
        op, known = node.op, node.known | node.issue | self.knows[queue]
        if isinstance(op, DeviceBarrier):
            node.arrived[queue] = known
            return self._meet(queue, node, op.queues)
        if isinstance(op, Wait) and node.bound is not None:
            if not node.bound.bit:
                return False
            known |= node.bound.after
        elif isinstance(op, SignalWait) and node.placed.value:
            raised = self._first_raise(op.flag, node.placed.value)
            if raised is None:
                return False
            known |= raised.after
        elif isinstance(op, Send):
            if len(self.sent.get(op.tag, ())) >= len(self.received.get(op.tag, ())) + IN_FLIGHT:
                return False
        elif isinstance(op, Receive):
            sent, before = self.sent.get(op.tag, []), len(self.received.get(op.tag, ()))
            if len(sent) <= before:
                return False
            known |= sent[before].after
            self._match(sent[before], node)
        self._end(node, known)
        self.knows[queue] = node.after
        if isinstance(op, Send | Receive):
            self._in_order((self.sent if isinstance(op, Send) else self.received).setdefault(op.tag, []), node)
        if isinstance(op, SignalOp):
            self._raise(node, op.flag)
        return True

    def _raise(self, node: _Node, flag: Flag) -> None:
        line = self.raises.setdefault(flag, [])
        if line and not node.after & line[-1].bit:
            self._unordered(f"flag {flag} is set by", line[-1], node)
        if line and node.placed.value <= line[-1].placed.value:
            message = f"Flag {flag} does not grow: {node.placed} comes after {line[-1].placed}."
            self.faults.append(Fault("undetermined", message, (line[-1].op, node.op)))
        line.append(node)

    def _in_order(self, line: list[_Node], node: _Node) -> None:
        """Add a message of a tag; its order after the previous one must be certain."""
        if line and not node.after & line[-1].bit:
            self._unordered("a tag is used by", line[-1], node)
        line.append(node)

    def _match(self, sent: _Node, received: _Node) -> None:
        """Check that the received message is the one that was sent."""
        if not same_message(sent.placed, received.placed):
            message = f"Wrong message: {received.placed} takes {sent.placed}."
            self._fault("message", message, sent.op, received.op)

    def _first_raise(self, flag: Flag, value: int) -> _Node | None:
        """The signal that is certainly over once the flag has `value`, as flags grow one signal at a time."""
        return next((node for node in self.raises.get(flag, ()) if node.placed.value >= value), None)

    def _sync(self, host: int, node: _Node, op: Sync) -> bool:
        if not node.issue:
            node.known, node.issue = self.knows[host], self._bit()
            if isinstance(op.target, Event):
                self._bind_wait(node, op.target)
            else:
                mine = (other for other in reversed(self.issued[op.target]) if node.known & other.issue)
                node.bound = next(mine, None)
        if node.bound is not None and not node.bound.bit:
            return False
        self._end(node, node.known | node.issue | (node.bound.after if node.bound else 0))
        self.knows[host] = node.after
        return True

    def _meet(self, actor: Queue | int, node: _Node, party: tuple[Queue, ...] | tuple[int, ...]) -> bool:
        """Arrive at a barrier; returns whether the actor may leave it."""
        node.arrived.setdefault(actor, self.knows[actor])
        if not node.bit:
            if len(node.arrived) < len(party):
                return False
            known = node.issue | node.known
            for each in node.arrived.values():
                known |= each
            self._end(node, known)
        self.knows[actor] = node.after
        return True

    def _end(self, node: _Node, known: int) -> None:
        node.bit = self._bit()
        node.after = known | node.bit
        self.done.append(node)

    def _bit(self) -> int:
        bit = self.next_bit
        self.next_bit <<= self.counting
        return bit

    def _unordered(self, subject: str, one: _Node, two: _Node) -> None:
        message = (
            f"Not determined: {subject} {one.placed} and {two.placed}, which nothing orders; "
            f"let a barrier or a Sync order their hosts."
        )
        self._fault("undetermined", message, one.op, two.op)

    def _fault(self, kind: FaultKind, message: str, *ops: Op) -> None:
        self.faults.append(Fault(kind, message, ops))

    def _reason(self, node: _Node) -> str:
        """The reason why an operation does not run, in words."""
        op = node.op
        if isinstance(op, Send):
            return f"{IN_FLIGHT} messages of tag {op.tag} were sent before it and are not received"
        if isinstance(op, Receive):
            return f"no message of tag {op.tag} comes"
        if isinstance(op, SignalWait):
            raises = self.raises.get(op.flag, [])
            highest = raises[-1].placed.value if raises else 0
            return f"flag {op.flag} never reaches {node.placed.value}, the last signal that runs leaves it at {highest}"
        if isinstance(op, HostBarrier | DeviceBarrier):
            party: tuple[Queue | int, ...] = op.hosts if isinstance(op, HostBarrier) else op.queues
            return "it is never reached by " + ", ".join(str(p) for p in party if p not in node.arrived)
        return f"it waits for {node.bound.placed}, which never runs" if node.bound else "it waits for itself"

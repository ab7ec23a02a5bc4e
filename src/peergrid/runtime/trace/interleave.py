"""A run without devices, in random legal orders drawn from a seed, with its trace.

Hosts and queues advance in random order. Vector clocks find a race in any legal order, so that one draw is enough to
judge a schedule; other seeds give other orders, for callers that compute along (`act`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from peergrid.runtime.trace.recorder import Actor, Begin, Entry, Log, Position
from peergrid.schedule.build import Schedule
from peergrid.schedule.ops import (
    IN_FLIGHT,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
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
from peergrid.schedule.unroll import Placed, unroll

Act = Callable[[Touching, int], None]
"""Carries out an operation; the number is the time level at which its iteration starts."""

BURST = 4  # most consecutive operations of one actor


def interleave(iterations: Sequence[Schedule], seed: int = 0, act: Act | None = None) -> Log:
    """The trace of carrying out the iterations in a random legal order; it ends early in a deadlock."""
    return Log(list(iterations), list(entries(iterations, seed, act)))


def entries(iterations: Sequence[Schedule], seed: int = 0, act: Act | None = None) -> Iterator[Entry | Begin]:
    """The same, entry by entry, executed lazily."""
    machine = _Machine(iterations, act)
    rng = Random(seed)
    awake = machine.awake
    while awake:
        drawn = int(rng.random() * len(awake))
        awake[drawn], awake[-1] = awake[-1], awake[drawn]
        actor, burst = awake.pop(), 1 + int(rng.random() * BURST)
        while burst and machine.step(actor):
            burst -= 1
        if not burst:
            awake.append(actor)
        yield from machine.log.entries
        machine.log.entries.clear()


class Tag(NamedTuple):
    """The messages of a number."""

    number: int


class _Machine:
    """Hosts with their programs, queues with their operations, events and flags.

    awake: actors that may be able to continue; asleep: waiting ones, by what wakes them (an operation, a flag, work).
    """

    def __init__(self, iterations: Sequence[Schedule], act: Act | None) -> None:
        self.log = Log(list(iterations), [Begin(0)])
        self.act = act
        self.lines: dict[Actor, deque[Placed]] = {}
        self.begun: dict[Actor, bool] = {}
        self.latest: dict[Event, Position] = {}
        self.bound: dict[Position, Position | None] = {}
        self.over: set[Position] = set()
        self.flags: dict[Flag, tuple[int, Position]] = {}
        self.arrived: dict[Position, set[Actor]] = {}
        self.issued: dict[Queue, Position] = {}
        self.asleep: dict[Position | Flag | Queue | Tag, list[Actor]] = {}
        self.sent: dict[int, list[Position]] = {}
        self.received: dict[int, int] = {}
        for placed in unroll(iterations):
            for host in hosts_of(placed.op):
                self.lines.setdefault(host, deque()).append(placed)
            for queue in queues_of(placed.op):
                self.lines.setdefault(queue, deque())
        self.awake: list[Actor] = list(self.lines)

    def step(self, actor: Actor) -> bool:
        """Let a host or queue do one step; returns whether it could. If not, it sleeps until the awaited event."""
        if not self.lines[actor]:
            if isinstance(actor, Queue):
                self._sleep(actor, actor)
            return False
        placed = self.lines[actor][0]
        position = (placed.iteration, placed.number)
        if isinstance(actor, int) and not isinstance(placed.op, Sync | HostBarrier):
            self._issue(actor, placed, position)
        elif not self.begun.get(actor):
            self._start(actor, placed, position)
            return True
        elif not self._finish(actor, placed, position):
            return False
        self.begun[actor] = False
        self.lines[actor].popleft()
        return True

    def _issue(self, host: int, placed: Placed, position: Position) -> None:
        op = placed.op
        if host != hosts_of(op)[0]:
            return
        self.log.issue(host, position)
        if isinstance(op, Record):
            self.latest[op.event] = position
        elif isinstance(op, Wait):
            self.bound[position] = self.latest.get(op.event)
        for queue in queues_of(op):
            self.lines[queue].append(placed)
            self.issued[queue] = position
            self._wake(queue)

    def _start(self, actor: Actor, placed: Placed, position: Position) -> None:
        op = placed.op
        self.begun[actor] = True
        self.log.start(actor, position)
        if isinstance(op, Sync):
            target = op.target
            self.bound[position] = self.latest.get(target) if isinstance(target, Event) else self.issued.get(target)
        elif isinstance(op, HostBarrier | DeviceBarrier):
            self.arrived.setdefault(position, set()).add(actor)
        elif isinstance(op, SignalOp):
            self.flags[op.flag] = (placed.value, position)
            self._wake(op.flag)

    def _finish(self, actor: Actor, placed: Placed, position: Position) -> bool:
        """End an operation if the awaited event has happened."""
        op, saw = placed.op, None
        if isinstance(op, Wait | Sync):
            bound = self.bound[position]
            if bound is not None and bound not in self.over:
                return self._sleep(actor, bound)
            saw = bound if isinstance(op, Wait) or isinstance(op.target, Event) else None
        elif isinstance(op, SignalWait):
            value, saw = self.flags.get(op.flag, (0, None))
            if value < placed.value:
                return self._sleep(actor, op.flag)
        elif isinstance(op, HostBarrier | DeviceBarrier):
            party = op.hosts if isinstance(op, HostBarrier) else op.queues
            if len(self.arrived[position]) < len(party):
                return self._sleep(actor, position)
        elif isinstance(op, Send | Receive):
            waits, saw = self._message(op, position)
            if waits:
                return self._sleep(actor, Tag(op.tag))
            self._wake(Tag(op.tag))
        if isinstance(op, Touching) and self.act is not None:
            self.act(op, placed.base)
        self.log.finish(actor, position, saw)
        self.over.add(position)
        self._wake(position)
        return True

    def _message(self, op: Send | Receive, position: Position) -> tuple[bool, Position | None]:
        """True if a message cannot be sent or received yet, and the place where it was sent."""
        sent, received = self.sent.setdefault(op.tag, []), self.received.get(op.tag, 0)
        if isinstance(op, Send):
            if len(sent) >= received + IN_FLIGHT:
                return True, None
            sent.append(position)
            return False, None
        if len(sent) <= received:
            return True, None
        self.received[op.tag] = received + 1
        return False, sent[received]

    def _sleep(self, actor: Actor, until: Position | Flag | Queue | Tag) -> bool:
        self.asleep.setdefault(until, []).append(actor)
        return False

    def _wake(self, happened: Position | Flag | Queue | Tag) -> None:
        self.awake += self.asleep.pop(happened, ())

"""A run without devices: one legal order after another, drawn from a seed, with its trace.

Hosts and queues take turns at random. Vector clocks find a race in any legal order, so that one draw is enough to
judge a schedule; other seeds show other orders to whoever computes along (`act`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from peergrid.runtime.trace.recorder import Actor, Begin, Log, Place
from peergrid.schedule.build import Schedule
from peergrid.schedule.ops import (
    Await,
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Queue,
    Raise,
    Record,
    Sync,
    Wait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.unroll import Placed, unroll

Act = Callable[[Compute | Copy, int], None]
"""Carries out an operation; the number is the time level at which its turn starts."""

BURST = 4  # at most so many operations of one actor in a row


def interleave(turns: Sequence[Schedule], seed: int = 0, act: Act | None = None) -> Log:
    """The trace of carrying out the turns in a random legal order; it ends early where everybody waits."""
    machine = _Machine(turns, act)
    rng = Random(seed)
    actors = list(machine.actors)
    moved = True
    while moved:
        moved = False
        rng.shuffle(actors)
        for actor in actors:
            for _ in range(rng.randint(1, BURST)):
                if not machine.step(actor):
                    break
                moved = True
    return machine.log


class _Machine:
    """Hosts with their programs, queues with what was issued to them, and what can be waited for."""

    def __init__(self, turns: Sequence[Schedule], act: Act | None) -> None:
        self.log = Log(list(turns), [Begin(0)])
        self.act = act
        self.lines: dict[Actor, deque[Placed]] = {}
        self.begun: dict[Actor, bool] = {}
        self.latest: dict[Event, Place] = {}
        self.bound: dict[Place, Place | None] = {}
        self.over: set[Place] = set()
        self.flags: dict[Flag, tuple[int, Place]] = {}
        self.arrived: dict[Place, set[Actor]] = {}
        self.issued: dict[Queue, Place] = {}
        for placed in unroll(turns):
            for host in hosts_of(placed.op):
                self.lines.setdefault(host, deque()).append(placed)
            for queue in queues_of(placed.op):
                self.lines.setdefault(queue, deque())

    @property
    def actors(self) -> tuple[Actor, ...]:
        return tuple(self.lines)

    def step(self, actor: Actor) -> bool:
        """Let a host or queue do one thing; whether it could."""
        if not self.lines[actor]:
            return False
        placed = self.lines[actor][0]
        place = (placed.turn, placed.number)
        if isinstance(actor, int) and not isinstance(placed.op, Sync | HostBarrier):
            self._issue(actor, placed, place)
        elif not self.begun.get(actor):
            self._start(actor, placed, place)
            return True
        elif not self._finish(actor, placed, place):
            return False
        self.begun[actor] = False
        self.lines[actor].popleft()
        return True

    def _issue(self, host: int, placed: Placed, place: Place) -> None:
        op = placed.op
        if host != hosts_of(op)[0]:
            return
        self.log.issue(host, place)
        if isinstance(op, Record):
            self.latest[op.event] = place
        elif isinstance(op, Wait):
            self.bound[place] = self.latest.get(op.event)
        for queue in queues_of(op):
            self.lines[queue].append(placed)
            self.issued[queue] = place

    def _start(self, actor: Actor, placed: Placed, place: Place) -> None:
        op = placed.op
        self.begun[actor] = True
        self.log.start(actor, place)
        if isinstance(op, Sync):
            target = op.target
            self.bound[place] = self.latest.get(target) if isinstance(target, Event) else self.issued.get(target)
        elif isinstance(op, HostBarrier | DeviceBarrier):
            self.arrived.setdefault(place, set()).add(actor)
        elif isinstance(op, Raise):
            self.flags[op.flag] = (placed.value, place)

    def _finish(self, actor: Actor, placed: Placed, place: Place) -> bool:
        """End an operation if what it waits for has happened."""
        op, saw = placed.op, None
        if isinstance(op, Wait | Sync):
            bound = self.bound[place]
            if bound is not None and bound not in self.over:
                return False
            saw = bound if isinstance(op, Wait) or isinstance(op.target, Event) else None
        elif isinstance(op, Await):
            value, saw = self.flags.get(op.flag, (-1, None))
            if value < placed.value:
                return False
        elif isinstance(op, HostBarrier | DeviceBarrier):
            party = op.hosts if isinstance(op, HostBarrier) else op.queues
            if len(self.arrived[place]) < len(party):
                return False
        elif isinstance(op, Compute | Copy) and self.act is not None:
            self.act(op, placed.base)
        self.log.finish(actor, place, saw)
        self.over.add(place)
        return True

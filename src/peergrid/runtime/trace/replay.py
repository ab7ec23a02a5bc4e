"""The second opinion: a recorded trace, replayed with vector clocks over the cells that really matter.

Independent of the static proof: it knows nothing of happens-before graphs, footprints or declared reads. What was
ordered is taken from what the trace says happened (Lamport's happened-before, kept as one counter for each host and
queue); what is read follows from the offsets in the stencils (`cells`).

Only what is guaranteed counts as order. An Await that happened to see a later raise is joined with the first raise
that would have let it go, and two hosts that happened to be quick or slow enough are not ordered by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from peergrid.runtime.trace.counted import miscounted
from peergrid.runtime.trace.recorder import Actor, Begin, Entry, Log, Place
from peergrid.runtime.trace.shadow import Clock, ShadowMemory
from peergrid.runtime.trace.usage import Usage
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.faults import Fault, FaultKind
from peergrid.schedule.ops import (
    Await,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Raise,
    Record,
    Sync,
    Touching,
    Wait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.unroll import Placed, unroll


def check_trace(layout: Layout, log: Log) -> tuple[Fault, ...]:
    """Every reason why the run that the log describes, or one that differs in timing alone, is wrong."""
    return tuple(objections(log.turns, log.entries, Usage(layout, log.turns)))


def objections(turns: Sequence[Schedule], entries: Iterable[Entry | Begin], usage: Usage) -> Iterator[Fault]:
    """The same of the entries of a log, one by one; the usage covers the operations of the turns and perhaps others."""
    replay = _Replay(usage, turns)
    yield from usage.misfits(replay.placed.values())
    yield from chain.from_iterable(
        miscounted(usage.layout, turn) for turn in {id(turn): turn for turn in turns}.values()
    )
    for entry in entries:
        if isinstance(entry, Begin):
            replay.join_all()
            continue
        replay.follow(entry)
        yield from replay.faults
        replay.faults.clear()
    unfinished = list(replay.unfinished())
    yield from unfinished or replay.memory.wrong_at_end()


@dataclass(eq=False)
class _Line:
    """What was issued to a queue, in order, and how much of it has started."""

    places: list[Place] = field(default_factory=list)
    started: int = 0


@dataclass(eq=False)
class _Uses:
    """The last record of an event and the waits issued since, by their places."""

    record: Place | None = None
    waits: list[Place] = field(default_factory=list)


class _Replay:
    """Clocks of all hosts and queues, and what is known about events, flags and barriers."""

    def __init__(self, usage: Usage, turns: Sequence[Schedule]) -> None:
        self.placed = {(p.turn, p.number): p for p in unroll(turns)}
        self.number = usage.rows
        self.clocks = np.zeros((len(usage.rows), len(usage.rows)), dtype=np.int32)  # a row for each actor
        self.issued: dict[Place, tuple[int, Clock]] = {}
        self.started: dict[Place, dict[Actor, Clock]] = {}
        self.finished: dict[Place, dict[Actor, Clock]] = {}
        self.met: dict[Place, Clock] = {}
        self.lines: dict[Queue, _Line] = {}
        self.events: dict[Event, _Uses] = {}
        self.bound: dict[Place, Place | None] = {}
        self.raises: dict[Flag, list[Place]] = {}
        self.memory = ShadowMemory(usage, turns, self.placed)
        self.faults: list[Fault] = []

    def join_all(self) -> None:
        """Everything so far is over."""
        self.clocks[:] = self.clocks.max(axis=0, initial=0)

    def follow(self, entry: Entry) -> None:
        """One line of the log."""
        placed = self.placed[entry.place]
        actor = self.number[entry.actor]
        if entry.kind == "issue":
            self._issue(actor, placed, entry.place)
        elif entry.kind == "start":
            self._start(entry.actor, placed, entry.place)
        else:
            self._finish(entry.actor, placed, entry.place, entry.saw)

    def fault(self, kind: FaultKind, message: str, *placed: Placed) -> None:
        self.faults.append(Fault(kind, message, tuple(p.op for p in placed)))

    def unfinished(self) -> Iterator[Fault]:
        """For every actor its first operation that did not end."""
        blamed: set[Actor] = set()
        for place, placed in self.placed.items():
            for actor in _parties(placed.op):
                if actor not in blamed and actor not in self.finished.get(place, {}):
                    blamed.add(actor)
                    yield Fault("deadlock", f"Deadlock: {placed} never ended in {actor}.", (placed.op,))

    def _tick(self, actor: int) -> Clock:
        """One event more of an actor; its clock, to be kept only as a copy."""
        now: Clock = self.clocks[actor]
        now[actor] += 1
        return now

    def _issue(self, host: int, placed: Placed, place: Place) -> None:
        op = placed.op
        if isinstance(op, DeviceBarrier) and len(op.hosts) != 1:
            self.fault("undetermined", f"{placed} is issued by several hosts.", placed)
        self.issued[place] = (host, self._tick(host).copy())
        for queue in queues_of(op):
            line = self.lines.setdefault(queue, _Line())
            if line.places:
                self._ordered(line.places[-1], place, f"queue {queue}")
            line.places.append(place)
        if isinstance(op, Record | Wait):
            self._use(op.event, place, records=isinstance(op, Record))

    def _use(self, event: Event, place: Place, *, records: bool) -> None:
        uses = self.events.setdefault(event, _Uses())
        if uses.record is not None:
            self._ordered(uses.record, place, f"event {event}")
        if records:
            for wait in uses.waits:
                self._ordered(wait, place, f"event {event}")
            self.events[event] = _Uses(place)
        else:
            self.bound[place] = uses.record
            uses.waits.append(place)

    def _ordered(self, one: Place, two: Place, subject: str) -> None:
        """Both were issued one after the other; was that more than luck?"""
        host, clock = self.issued[one]
        if clock[host] > self.issued[two][1][host]:
            first, second = self.placed[one], self.placed[two]
            self.fault("undetermined", f"Nothing orders {first} and {second}, which both use {subject}.", first, second)

    def _start(self, actor: Actor, placed: Placed, place: Place) -> None:
        op, row = placed.op, self.number[actor]
        if isinstance(actor, Queue):
            self._take(actor, placed, place)
        clock = self._tick(row)
        if isinstance(op, Record | Raise | HostBarrier | DeviceBarrier):
            clock = self.started.setdefault(place, {})[actor] = clock.copy()
        if isinstance(op, Touching):
            self.faults += self.memory.touch(row, clock, placed, place)
        elif isinstance(op, Raise):
            self._raise(op.flag, placed, place, clock)
        elif isinstance(op, Sync):
            self.issued[place] = (row, clock.copy())
            if isinstance(op.target, Event):
                self._use(op.target, place, records=False)
            else:
                self.bound[place] = self._last_known(op.target, clock)

    def _take(self, queue: Queue, placed: Placed, place: Place) -> None:
        """A queue takes what was issued to it, in the order of issue."""
        line = self.lines.get(queue)
        if line is None or line.places[line.started : line.started + 1] != [place]:
            self.fault("undetermined", f"Queue {queue} starts {placed} out of the order of issue.", placed)
            return
        line.started += 1
        row = self.number[queue]
        np.maximum(self.clocks[row], self.issued[place][1], out=self.clocks[row])

    def _last_known(self, queue: Queue, clock: Clock) -> Place | None:
        line = self.lines.get(queue, _Line())
        known = (p for p in reversed(line.places) if self.issued[p][1][self.issued[p][0]] <= clock[self.issued[p][0]])
        return next(known, None)

    def _raise(self, flag: Flag, placed: Placed, place: Place, clock: Clock) -> None:
        line = self.raises.setdefault(flag, [])
        if line:
            last = self.placed[line[-1]]
            ((actor, earlier),) = self.started[line[-1]].items()
            row = self.number[actor]
            if earlier[row] > clock[row] or last.value >= placed.value:
                self.fault("undetermined", f"Flag {flag} does not surely grow from {last} to {placed}.", last, placed)
        line.append(place)

    def _finish(self, actor: Actor, placed: Placed, place: Place, saw: Place | None) -> None:
        op, row = placed.op, self.number[actor]
        if isinstance(op, HostBarrier | DeviceBarrier):
            self._leave(row, placed, place)
        elif isinstance(op, Await):
            self._awaited(row, op.flag, placed, saw)
        elif isinstance(op, Wait) or (isinstance(op, Sync) and isinstance(op.target, Event)):
            if saw != self.bound.get(place):
                self.fault(
                    "undetermined", f"{placed} was let go by another record than the one it is bound to.", placed
                )
            self._join_end(row, saw, placed)
        elif isinstance(op, Sync):
            self._join_end(row, self.bound[place], placed)
        self.finished.setdefault(place, {})[actor] = self.clocks[row].copy()

    def _join_end(self, row: int, other: Place | None, placed: Placed) -> None:
        """Go on after another operation, which must have come so far."""
        if other is None:
            return
        point = self.started if isinstance(self.placed[other].op, Record) else self.finished
        ends = point.get(other)
        if ends is None:
            self.fault("undetermined", f"{placed} went on before {self.placed[other]}.", placed, self.placed[other])
            return
        self._join(row, *ends.values())

    def _awaited(self, row: int, flag: Flag, placed: Placed, saw: Place | None) -> None:
        raised = self.raises.get(flag, [])
        if saw not in raised or self.placed[saw].value < placed.value:
            self.fault("undetermined", f"{placed} went on though nobody had raised the flag so far.", placed)
            return
        surely = next(place for place in raised if self.placed[place].value >= placed.value)
        self._join(row, *self.started[surely].values())

    def _leave(self, row: int, placed: Placed, place: Place) -> None:
        if place not in self.met:
            here = self.started.get(place, {})
            if len(here) < len(_parties(placed.op)):
                self.fault("undetermined", f"{placed} was left before all had arrived.", placed)
            self.met[place] = np.max(list(here.values()), axis=0)
        self._join(row, self.met[place])

    def _join(self, row: int, *clocks: Clock) -> None:
        for clock in clocks:
            np.maximum(self.clocks[row], clock, out=self.clocks[row])


def _parties(op: Op) -> tuple[Actor, ...]:
    """Who carries an operation out."""
    return hosts_of(op) if isinstance(op, Sync | HostBarrier) else queues_of(op)

"""The second checker: a recorded trace, replayed with vector clocks over the cells that are really used.

It is independent of the static proof: it uses no happens-before graphs, footprints or declared reads. The order follows
from the events of the trace (Lamport's happened-before, with one counter for each host and queue), the reads from the
offsets in the stencils (`cells`).

Only guaranteed orders count. A SignalWait that saw a later signal is joined with the first one that would have released
it, and two hosts are not ordered by their speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from peergrid.runtime.trace.counted import miscounted
from peergrid.runtime.trace.recorder import Actor, Begin, Entry, Log, Position, Recorded
from peergrid.runtime.trace.shadow import Clock, ShadowMemory
from peergrid.runtime.trace.usage import Usage
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.faults import Fault, FaultKind
from peergrid.schedule.ops import (
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
from peergrid.schedule.unroll import Placed, same_message, unroll


def check_trace(layout: Layout, log: Log) -> tuple[Fault, ...]:
    """Every reason why the run that the log describes, or one that differs in timing alone, is wrong."""
    return tuple(objections(log.iterations, log.entries, Usage(layout, log.iterations)))


def check_recorded(layout: Layout, recorded: Recorded) -> tuple[Fault, ...]:
    """The same for a recorded run."""
    return (*recorded.faults, *check_trace(layout, recorded.log))


def objections(iterations: Sequence[Schedule], entries: Iterable[Entry | Begin], usage: Usage) -> Iterator[Fault]:
    """The same for the entries of a log, one by one; the usage covers all operations and perhaps others."""
    replay = _Replay(usage, iterations)
    yield from usage.out_of_bounds(replay.placed.values())
    yield from chain.from_iterable(
        miscounted(usage.layout, iteration)
        for iteration in {id(iteration): iteration for iteration in iterations}.values()
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
    """The operations issued to a queue, in order, and the number of those that have started."""

    positions: list[Position] = field(default_factory=list)
    started: int = 0


@dataclass(eq=False)
class _Uses:
    """The last record of an event and the waits issued since, by their places."""

    record: Position | None = None
    waits: list[Position] = field(default_factory=list)


class _Replay:
    """Clocks of all hosts and queues, and the state of events, flags and barriers."""

    def __init__(self, usage: Usage, iterations: Sequence[Schedule]) -> None:
        self.placed = {(p.iteration, p.number): p for p in unroll(iterations)}
        self.number = usage.rows
        self.clocks = np.zeros((len(usage.rows), len(usage.rows)), dtype=np.int32)  # a row for each actor
        self.issued: dict[Position, tuple[int, Clock]] = {}
        self.started: dict[Position, dict[Actor, Clock]] = {}
        self.finished: dict[Position, dict[Actor, Clock]] = {}
        self.passed: dict[Position, Clock] = {}
        self.lines: dict[Queue, _Line] = {}
        self.events: dict[Event, _Uses] = {}
        self.bound: dict[Position, Position | None] = {}
        self.signals: dict[Flag, list[Position]] = {}
        self.sent: dict[int, list[Position]] = {}
        self.received: dict[int, list[Position]] = {}
        self.memory = ShadowMemory(usage, iterations, self.placed)
        self.faults: list[Fault] = []

    def join_all(self) -> None:
        """Join all actors: everything so far is over."""
        self.clocks[:] = self.clocks.max(axis=0, initial=0)

    def follow(self, entry: Entry) -> None:
        """Process one line of the log."""
        placed = self.placed[entry.position]
        actor = self.number[entry.actor]
        if entry.kind == "issue":
            self._issue(actor, placed, entry.position)
        elif entry.kind == "start":
            self._start(entry.actor, placed, entry.position)
        else:
            self._finish(entry.actor, placed, entry.position, entry.saw)

    def fault(self, kind: FaultKind, message: str, *placed: Placed) -> None:
        self.faults.append(Fault(kind, message, tuple(p.op for p in placed)))

    def unfinished(self) -> Iterator[Fault]:
        """For every actor its first operation that did not end."""
        blamed: set[Actor] = set()
        for position, placed in self.placed.items():
            for actor in _parties(placed.op):
                if actor not in blamed and actor not in self.finished.get(position, {}):
                    blamed.add(actor)
                    yield Fault("deadlock", f"Deadlock: {placed} never ended in {actor}.", (placed.op,))
        for tag, sent in self.sent.items():
            for position in sent[len(self.received.get(tag, ())) :]:
                placed = self.placed[position]
                yield Fault("message", f"Lost message: nobody receives {placed}.", (placed.op,))

    def _tick(self, actor: int) -> Clock:
        """Count an event of an actor; its clock, of which callers keep a copy."""
        now: Clock = self.clocks[actor]
        now[actor] += 1
        return now

    def _issue(self, host: int, placed: Placed, position: Position) -> None:
        op = placed.op
        if isinstance(op, DeviceBarrier) and len(op.hosts) != 1:
            self.fault("undetermined", f"{placed} is issued by several hosts.", placed)
        self.issued[position] = (host, self._tick(host).copy())
        for queue in queues_of(op):
            line = self.lines.setdefault(queue, _Line())
            if line.positions:
                self._ordered(line.positions[-1], position, f"queue {queue}")
            line.positions.append(position)
        if isinstance(op, Record | Wait):
            self._use(op.event, position, records=isinstance(op, Record))

    def _use(self, event: Event, position: Position, *, records: bool) -> None:
        uses = self.events.setdefault(event, _Uses())
        if uses.record is not None:
            self._ordered(uses.record, position, f"event {event}")
        if records:
            for wait in uses.waits:
                self._ordered(wait, position, f"event {event}")
            self.events[event] = _Uses(position)
        else:
            self.bound[position] = uses.record
            uses.waits.append(position)

    def _ordered(self, one: Position, two: Position, subject: str) -> None:
        """Check that two operations were issued in a guaranteed order."""
        host, clock = self.issued[one]
        if clock[host] > self.issued[two][1][host]:
            first, second = self.placed[one], self.placed[two]
            self.fault("undetermined", f"Nothing orders {first} and {second}, which both use {subject}.", first, second)

    def _start(self, actor: Actor, placed: Placed, position: Position) -> None:
        op, row = placed.op, self.number[actor]
        if isinstance(actor, Queue):
            self._take(actor, placed, position)
        clock = self._tick(row)
        if isinstance(op, Record | SignalOp | Send | HostBarrier | DeviceBarrier):
            clock = self.started.setdefault(position, {})[actor] = clock.copy()
        if isinstance(op, Send):
            self._in_order(self.sent.setdefault(op.tag, []), placed, position)
        if isinstance(op, Touching) and not isinstance(op, Receive):
            self.faults += self.memory.access(row, clock, placed, position)
        elif isinstance(op, SignalOp):
            self._signal(op.flag, placed, position, clock)
        elif isinstance(op, Sync):
            self.issued[position] = (row, clock.copy())
            if isinstance(op.target, Event):
                self._use(op.target, position, records=False)
            else:
                self.bound[position] = self._last_known(op.target, clock)

    def _take(self, queue: Queue, placed: Placed, position: Position) -> None:
        """Let a queue take an operation, in the order of issue."""
        line = self.lines.get(queue)
        if line is None or line.positions[line.started : line.started + 1] != [position]:
            self.fault("undetermined", f"Queue {queue} starts {placed} out of the order of issue.", placed)
            return
        line.started += 1
        row = self.number[queue]
        np.maximum(self.clocks[row], self.issued[position][1], out=self.clocks[row])

    def _last_known(self, queue: Queue, clock: Clock) -> Position | None:
        line = self.lines.get(queue, _Line())
        known = (
            p for p in reversed(line.positions) if self.issued[p][1][self.issued[p][0]] <= clock[self.issued[p][0]]
        )
        return next(known, None)

    def _signal(self, flag: Flag, placed: Placed, position: Position, clock: Clock) -> None:
        line = self.signals.setdefault(flag, [])
        if line:
            last = self.placed[line[-1]]
            ((actor, earlier),) = self.started[line[-1]].items()
            row = self.number[actor]
            if earlier[row] > clock[row] or last.value >= placed.value:
                self.fault("undetermined", f"Flag {flag} does not surely grow from {last} to {placed}.", last, placed)
        line.append(position)

    def _finish(self, actor: Actor, placed: Placed, position: Position, saw: Position | None) -> None:
        op, row = placed.op, self.number[actor]
        if isinstance(op, HostBarrier | DeviceBarrier):
            self._leave(row, placed, position)
        elif isinstance(op, SignalWait):
            self._awaited(row, op.flag, placed, saw)
        elif isinstance(op, Receive):
            self._received(row, op, placed, position, saw)
        elif isinstance(op, Wait) or (isinstance(op, Sync) and isinstance(op.target, Event)):
            if saw != self.bound.get(position):
                self.fault(
                    "undetermined", f"{placed} was released by another record than the one it waits for.", placed
                )
            self._join_end(row, saw, placed)
        elif isinstance(op, Sync):
            self._join_end(row, self.bound[position], placed)
        self.finished.setdefault(position, {})[actor] = self.clocks[row].copy()

    def _join_end(self, row: int, other: Position | None, placed: Placed) -> None:
        """Continue after another operation, which must have been reached."""
        if other is None:
            return
        point = self.started if isinstance(self.placed[other].op, Record | Send) else self.finished
        ends = point.get(other)
        if ends is None:
            self.fault("undetermined", f"{placed} went on before {self.placed[other]}.", placed, self.placed[other])
            return
        self._join(row, *ends.values())

    def _awaited(self, row: int, flag: Flag, placed: Placed, saw: Position | None) -> None:
        if not placed.value:
            return
        raised = self.signals.get(flag, [])
        if saw not in raised or self.placed[saw].value < placed.value:
            self.fault("undetermined", f"{placed} went on though nobody had set the flag so far.", placed)
            return
        surely = next(position for position in raised if self.placed[position].value >= placed.value)
        self._join(row, *self.started[surely].values())

    def _received(self, row: int, op: Receive, placed: Placed, position: Position, saw: Position | None) -> None:
        """Write a received message, after everything that was over when it was sent."""
        line = self.received.setdefault(op.tag, [])
        sent = self.sent.get(op.tag, [])[len(line) : len(line) + 1]
        if sent != [saw]:
            self.fault("message", f"{placed} received another message than the next of its tag.", placed)
            return
        if not same_message(self.placed[sent[0]], placed):
            self.fault("message", f"{placed} took {self.placed[sent[0]]}.", self.placed[sent[0]], placed)
        self._join_end(row, saw, placed)
        self.faults += self.memory.access(row, self._tick(row), placed, position)
        self.finished.setdefault(position, {})[op.queue] = self.clocks[row].copy()
        self._in_order(line, placed, position)

    def _in_order(self, line: list[Position], placed: Placed, position: Position) -> None:
        """Check that a message of a tag is certainly later than the previous one."""
        if line:
            last = self.placed[line[-1]]
            assert isinstance(last.op, Send | Receive)
            row, ends = self.number[last.op.queue], self.finished.get(line[-1], {})
            now = self.clocks[self.number[queues_of(placed.op)[0]]]
            if last.op.queue not in ends or ends[last.op.queue][row] > now[row]:
                self.fault("undetermined", f"Nothing orders {last} and {placed}, which use one tag.", last, placed)
        line.append(position)

    def _leave(self, row: int, placed: Placed, position: Position) -> None:
        if position not in self.passed:
            here = self.started.get(position, {})
            if len(here) < len(_parties(placed.op)):
                self.fault("undetermined", f"{placed} was left before all had arrived.", placed)
            self.passed[position] = np.max(list(here.values()), axis=0)
        self._join(row, self.passed[position])

    def _join(self, row: int, *clocks: Clock) -> None:
        for clock in clocks:
            np.maximum(self.clocks[row], clock, out=self.clocks[row])


def _parties(op: Op) -> tuple[Actor, ...]:
    """The threads that execute an operation."""
    return hosts_of(op) if isinstance(op, Sync | HostBarrier) else queues_of(op)

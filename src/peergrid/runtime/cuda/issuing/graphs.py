"""A schedule as CUDA graphs, captured once and launched again and again.

Where several GPUs exchange, every stretch of a device's work between two events that tie it to others is a graph: a
launch is one call for the host, and no graph spans devices, which costs the devices more than events do. Elsewhere
many turns are one graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.errors import PeergridError
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.issuing.threads import End, Issuers, Share, Work, contexts_of
from peergrid.runtime.cuda.lowering.duration import AT_ONCE
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.lowering.station import Station
from peergrid.runtime.cuda.tapes.parts import Events
from peergrid.runtime.cuda.tapes.replay import CONTEXT, DONE, FIRST, FUNCTION
from peergrid.runtime.cuda.tapes.tape import Tape, TapeWriter, Words
from peergrid.schedule.ops import Event, Queue, describe

BUNDLE = 16  # turns of a schedule in one graph, where a graph can hold several


@dataclass(frozen=True)
class Stretch:
    """Rows of one context that become a graph, launched into `stream`."""

    context: int
    stream: int
    rows: tuple[int, ...]


class Graphs:
    """The graphs of one executor."""

    def __init__(self, station: Station, issuers: Issuers) -> None:
        self._station, self._issuers = station, issuers
        self._cuts: dict[int, list[Stretch | int]] = {}  # by identity of what the executor keeps
        self._tapes: dict[tuple[int, int], Tape] = {}

    def works(self, lowered: Lowered, times: int, step: int) -> Iterator[tuple[Work, int]]:
        """What to carry out, and how often, for so many turns."""
        set_clocks(self._station, lowered, step)
        if id(lowered) not in self._cuts:
            self._cuts[id(lowered)] = stretches(lowered.tapes[0], self._station.events)
        cut = self._cuts[id(lowered)]
        bundle = max(1, min(BUNDLE, int(AT_ONCE / (self._station.step_seconds * lowered.schedule.steps))))
        bundles, rest = (0, times) if cut else divmod(times, bundle)
        for turns, count in ((bundle, bundles), (1, rest)):
            if count:
                key = (id(lowered), turns)
                if key not in self._tapes:
                    self._tapes[key] = self._several(lowered, cut) if cut else self._one(lowered, turns)
                yield self._issuers.work(lowered, count, {0: self._tapes[key]}, turns), count

    def _one(self, lowered: Lowered, turns: int) -> Tape:
        """A tape that launches one graph of so many turns."""
        origin, made = lowered.queues[0], TapeWriter()
        self._launch(made, lowered, origin, lowered.queues, lowered.tapes[0], turns)
        return made.finish()

    def _several(self, lowered: Lowered, cut: Sequence[Stretch | int]) -> Tape:
        """A tape that launches a graph for every stretch, and makes the other calls as they are."""
        tape, devices = lowered.tapes[0], self._station.devices
        made = TapeWriter(keep=[*tape.keep])
        for part in cut:
            if isinstance(part, int):
                made.same(tape, part)
                continue
            queues = [queue for queue in lowered.queues if devices.context(queue.device) == part.context]
            origin = next(queue for queue in queues if devices.stream(queue) == part.stream)
            rows = list(part.rows)
            piece = Tape(tape.table[rows], tuple(tape.ops[row] for row in rows), (), tape.keep)
            self._launch(made, lowered, origin, queues, piece, 1)
        return made.finish()

    def _launch(
        self, made: TapeWriter, lowered: Lowered, origin: Queue, queues: Sequence[Queue], tape: Tape, turns: int
    ) -> None:
        """Capture a tape, and write the launch of its graph into the origin's queue."""
        station, stream = self._station, self._station.devices.stream(origin)
        executable = self._capture(lowered, origin, queues, tape, turns)
        made.keep.append(tape)
        made.call(
            tape.ops[0], station.devices.context(origin.device), station.entry("cuGraphLaunch"), executable, stream
        )

    def _capture(self, lowered: Lowered, origin: Queue, queues: Sequence[Queue], tape: Tape, turns: int) -> int:
        """The executable graph of a tape, made so many times in a row; its queues begin and end with the origin's."""
        devices, stream = self._station.devices, self._station.devices.stream(origin)
        fork, join = rows_between(self._station, origin, queues)
        devices.enter(origin.device)
        devices.driver.begin_capture(stream)
        try:
            for piece, count in ((fork, 1), (tape, turns), (join, 1)):
                end = End()
                self._issuers.carry_out(Share(piece, every=count + 1), end, count)
                if end.state != DONE:
                    raise _failure(lowered, piece, end)
        except BaseException:
            devices.give_up_capture(origin.device, stream)
            raise
        return devices.graph(origin.device, stream)


def stretches(tape: Tape, events: Events) -> list[Stretch | int]:
    """A tape cut where GPUs are tied together: rows that stay as they are, and stretches where their last row was.

    A row stays if it posts words, or uses an event that rows of several contexts use. No stretch depends on another
    context's, so it may be issued anywhere between the rows that stay. Empty where this cannot be done: for one
    context, or where the rows that stay are in several queues of a device.
    """
    contexts = {event: {tape.table[row, CONTEXT] for row in rows} for event, rows in _users(tape, events).items()}
    stays = {row for event, rows in _users(tape, events).items() if len(contexts[event]) > 1 for row in rows}
    stays |= {number for number, row in enumerate(tape.table) if row[FUNCTION] == events.post}
    streams: dict[int, set[int]] = {context: set() for context in contexts_of(tape)}
    for row in stays:
        streams[int(tape.table[row, CONTEXT])].add(_stream(tape.table[row], events))
    if len(streams) < 2 or any(len(found) != 1 for found in streams.values()):
        return []
    origin = {context: next(iter(found)) for context, found in streams.items()}
    return list(_cut(tape, stays, origin, events))


def _cut(tape: Tape, stays: set[int], origin: Mapping[int, int], events: Events) -> Iterator[Stretch | int]:
    rows: dict[int, list[int]] = {context: [] for context in origin}
    for number, row in enumerate(tape.table):
        context = int(row[CONTEXT])
        if number not in stays:
            rows[context].append(number)
            continue
        if rows[context]:
            yield _stretch(tape, context, origin[context], rows[context], events)
            rows[context] = []
        yield number
    for context, left in rows.items():
        if left:
            yield _stretch(tape, context, origin[context], left, events)


def _stretch(tape: Tape, context: int, stream: int, rows: Sequence[int], events: Events) -> Stretch:
    """A stretch without waits for what was recorded before it: graphs of a device follow one another anyhow."""
    recorded: set[int] = set()
    kept: list[int] = []
    for row in rows:
        use = events.use(tape.table[row])
        if use is not None and use[1]:
            recorded.add(use[0])
        if use is None or use[0] in recorded:
            kept.append(row)
    return Stretch(context, stream, tuple(kept))


def _users(tape: Tape, events: Events) -> dict[int, list[int]]:
    """The rows that use each event."""
    users: dict[int, list[int]] = {}
    for number, row in enumerate(tape.table):
        use = events.use(row)
        if use is not None:
            users.setdefault(use[0], []).append(number)
    return users


def _stream(row: Words, events: Events) -> int:
    """The stream that a record, a wait or posts are for."""
    use = events.use(row)
    return int(row[FIRST + 1] if use is not None and use[1] else row[FIRST])


def rows_between(station: Station, origin: Queue, queues: Sequence[Queue]) -> tuple[Tape, Tape]:
    """What ties all queues to the origin at the capture's start, and back to it at its end."""
    others = [queue for queue in queues if queue != origin]
    fork, join = TapeWriter(), TapeWriter()
    entry, devices = station.entry, station.devices
    start = Event(origin.device, "graph start")
    context = devices.context(origin.device)
    if others:
        fork.call(-1, context, entry("cuEventRecord"), devices.event(start), devices.stream(origin))
    for queue in others:
        fork.call(-1, 0, entry("cuStreamWaitEvent"), devices.stream(queue), devices.event(start), 0)
        done = Event(queue.device, f"graph end of {queue}")
        there = devices.context(queue.device)
        join.call(-1, there, entry("cuEventRecord"), devices.event(done), devices.stream(queue))
        join.call(-1, context, entry("cuStreamWaitEvent"), devices.stream(origin), devices.event(done), 0)
    return fork.finish(), join.finish()


def set_clocks(station: Station, lowered: Lowered, step: int) -> None:
    """Start the clocks of all queues at a time step."""
    for queue in lowered.queues:
        station.devices.enter(queue.device)
        station.devices.driver.upload(station.clock(queue), np.array([step], np.int64))


def _failure(lowered: Lowered, tape: Tape, end: End) -> PeergridError:
    number = tape.ops[end.row]
    what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "the graph's ends"
    return error(end.code, f"Capturing {what}")

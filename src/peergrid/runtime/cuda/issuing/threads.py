"""The threads that issue: each carries out a tape of its own, as far ahead of the devices as is good for them.

What a thread needs is made ready once for every schedule, so that between two chunks of a run next to nothing is done
by the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from peergrid.errors import UsageError
from peergrid.runtime.cuda.issuing.near import bound_to, near_cpus
from peergrid.runtime.cuda.lowering.duration import AT_ONCE
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.lowering.station import SECOND, Station
from peergrid.runtime.cuda.tapes.parts import Parts, split, whole
from peergrid.runtime.cuda.tapes.replay import CONTEXT, DONE, replay
from peergrid.runtime.cuda.tapes.tape import NOTHING, Tape, TapeWriter, Words
from peergrid.runtime.devices import cores
from peergrid.runtime.workers import Workers
from peergrid.schedule.ops import Event, Flag, Queue, hosts_of, queues_of

AHEAD_CALLS = 256  # calls per device that a host may be ahead, twice: fewer than the driver takes before it blocks
MOST_AHEAD = 64
LONGER = 1.3  # times as long as a kernel a host waits: who waits closest to the cause tells most
SLEEP = 20  # microseconds between two looks at whether the devices have come closer: there is work left for them
WORTH = 256  # calls from which on threads pay that have to be woken


@dataclass
class End:
    """How a thread's replay ended; `spent`: nanoseconds of issuing, and two words for the clock."""

    state: int = DONE
    code: int = 0
    row: int = -1
    turn: int = 0
    spent: Words = field(default_factory=lambda: np.zeros(3, np.int64))


@dataclass(frozen=True, eq=False)
class Share:
    """What one thread issues, on which processors; every so many turns it marks where its queues are, and waits for the
    mark before.
    """

    tape: Tape
    marks: tuple[Tape, Tape] | None = None
    every: int = 2
    near: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Work:
    """The shares of a schedule's hosts, and the tape that waits until all queues are empty."""

    lowered: Lowered
    tapes: Mapping[int, Tape]
    parts: tuple[Parts, ...]
    shares: tuple[Share, ...]
    drain: Tape


class Issuers:
    """Threads for one executor; `seconds` is how long the busiest of them issued so far, without waiting;
    `patience`: whole seconds without progress before they give up a wait.

    count: threads among which one host's calls are shared (None: one for each GPU, if there are processors for them and
    enough to do).
    """

    def __init__(self, station: Station, count: int | None = None) -> None:
        self.seconds = 0.0
        self._station, self._count = station, count
        self.patience = max(1, int(station.patience * LONGER))
        self._workers = Workers(station.devices.count, "issuing")
        self._works: dict[tuple[object, ...], Work] = {}
        self._closed = False

    def work(self, lowered: Lowered, times: int, tapes: Mapping[int, Tape] | None = None, turns: int = 1) -> Work:
        """What each thread does in so many turns: what a host does, or a part of that where there is but one host.

        tapes: what the hosts do in a turn, if it is something else than the schedule's tapes; turns: of the schedule
        that they make at once.
        """
        tapes = lowered.tapes if tapes is None else tapes
        count = 1 if len(tapes) > 1 or _staged(lowered) else self._count or self._worth(tapes, times)
        key = (count, *(id(tape) for tape in tapes.values()))  # a work keeps its tapes, so an identity stays theirs
        if key not in self._works:
            self._works[key] = self._prepared(lowered, tapes, count, turns * lowered.schedule.steps)
        return self._works[key]

    def run(self, work: Work, times: int, step: int, settled: dict[Flag, int]) -> list[End]:
        """Carry out so many turns, every share in a thread; how each ended. The queues may still be working."""
        for parts in work.parts:
            parts.rewind()
        steps, raised = work.lowered.schedule.steps, work.lowered.raised
        patches = [share.tape.patch_table(step, steps, settled, raised) for share in work.shares]
        ends = [End() for _ in work.shares]
        self._station.words[:] = 0
        others = [
            self._workers.submit(self.carry_out, share, end, times, patch)
            for share, end, patch in list(zip(work.shares, ends, patches, strict=True))[1:]
        ]
        self.carry_out(work.shares[0], ends[0], times, patches[0])
        for other in others:
            other.result()
        self.seconds += max(int(end.spent[0]) for end in ends) / SECOND
        return ends

    def carry_out(self, share: Share, end: End, times: int = 1, patches: Words = NOTHING) -> None:
        """Carry out a share in this thread, near the GPUs it issues to."""
        table = share.tape.table
        with bound_to(share.near):
            state, code, row, turn = replay(
                table,
                patches,
                (table[:0], table[:0]) if share.marks is None else (share.marks[0].table, share.marks[1].table),
                share.every,
                times,
                self._station.entry("cuCtxSetCurrent"),
                self.patience,
                self._station.abort_address,
                int(end.spent.ctypes.data),
            )
        end.state, end.code, end.row, end.turn = int(state), int(code), int(row), int(turn)
        if self._closed:  # by what interrupted this thread, such as a signal's handler: streams and memory are gone
            raise UsageError("The simulation was closed within its steps.")

    def close(self) -> None:
        """Stop whoever issues or waits still, as after Ctrl-C."""
        self._closed = True
        self._station.words[0] = self._station.board[0] = 1
        self._workers.close()

    def _worth(self, tapes: Mapping[int, Tape], times: int) -> int:
        """As many threads as there are processors, or one where there is little to issue."""
        calls = sum(len(tape.ops) for tape in tapes.values())
        return cores() if calls * times >= WORTH else 1

    def _prepared(self, lowered: Lowered, tapes: Mapping[int, Tape], count: int, steps: int) -> Work:
        parts = {host: self._parts(tape, count) for host, tape in tapes.items()}
        shares = [self._share(lowered, host, tape, steps) for host, found in parts.items() for tape in found.tapes]
        return Work(lowered, tapes, tuple(parts.values()), tuple(shares), self._drain(lowered.queues))

    def _parts(self, tape: Tape, most: int) -> Parts:
        """A tape in at most so many parts: neighbouring devices go together."""
        contexts = contexts_of(tape)
        count = min(len(contexts), most)
        if count < 2:
            return whole(tape)
        part_of = {context: n * count // len(contexts) for n, context in enumerate(contexts)}
        return split(tape, part_of, self._station.events)

    def _share(self, lowered: Lowered, host: int, tape: Tape, steps: int) -> Share:
        contexts, turn = contexts_of(tape), self._station.step_seconds * max(1, steps)
        most = (
            MOST_AHEAD,
            int(AT_ONCE / turn),
            AHEAD_CALLS * len(contexts) // max(1, len(tape.ops)),
        )
        mine = [queue for queue in _issued(lowered, host) if self._station.devices.context(queue.device) in contexts]
        marks = self._marks(mine, 0), self._marks(mine, 1)
        return Share(tape, marks, max(1, min(most)), self._near({queue.device for queue in mine}))

    def _near(self, devices: Set[int]) -> frozenset[int]:
        """The processors that are near to all GPUs that devices stand for; none where there are no such."""
        sides = [near_cpus(self._station.devices.ordinals[device]) for device in devices]
        return frozenset.intersection(*sides) if sides else frozenset()

    def _marks(self, queues: Sequence[Queue], parity: int) -> Tape:
        """Rows that record where queues are, and wait for where they were the time before."""
        tape, station = TapeWriter(), self._station
        for queue in queues:
            context = station.devices.context(queue.device)
            here, before = (
                station.devices.event(Event(queue.device, f"mark {p} of {queue}")) for p in (parity, 1 - parity)
            )
            tape.call(-1, context, station.entry("cuEventRecord"), here, station.devices.stream(queue))
            tape.poll(-1, context, station.entry("cuEventQuery"), before, SLEEP)
        return tape.finish()

    def _drain(self, queues: Sequence[Queue]) -> Tape:
        tape, station = TapeWriter(), self._station
        for queue in queues:
            context, stream = station.devices.context(queue.device), station.devices.stream(queue)
            tape.poll(-1, context, station.entry("cuStreamQuery"), stream)
        return tape.finish()


def _staged(lowered: Lowered) -> bool:
    """Whether halos go through host memory.

    The engine that brings one to a GPU may lie behind a copy that waits for what the GPU's kernel does, which waits for
    the halo: unless everything is issued in the schedule's order, by one thread.
    """
    return any(choice.route == "host" for choice in lowered.choices)


def contexts_of(tape: Tape) -> list[int]:
    """The contexts of a tape's rows, in the order in which they first appear."""
    return [context for context in dict.fromkeys(tape.table[:, CONTEXT].tolist()) if context]


def _issued(lowered: Lowered, host: int) -> list[Queue]:
    """The queues into which a host issues: one alone into all there are, which need not be those of the schedule."""
    if len(lowered.tapes) == 1:
        return sorted(lowered.queues)
    return sorted({queue for op in lowered.schedule.ops if host in hosts_of(op) for queue in queues_of(op)})

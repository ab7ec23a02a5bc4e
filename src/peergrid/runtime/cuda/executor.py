"""CUDA devices as an `Executor`: schedules become tapes once, and tapes are replayed without the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from peergrid.errors import DeviceFault, PeergridError, UsageError
from peergrid.grid import Array, Index
from peergrid.runtime.cuda.driver import CudaDriver, Driver
from peergrid.runtime.cuda.faults import error
from peergrid.runtime.cuda.graphs import Captured, launch_tape, rows_between, set_clocks
from peergrid.runtime.cuda.linked import lower_linked
from peergrid.runtime.cuda.lower import Lowered, lower
from peergrid.runtime.cuda.parts import Events, Parts, split, whole
from peergrid.runtime.cuda.persistent import lower_persistent, replays
from peergrid.runtime.cuda.replay import CONTEXT, DONE, FAILED, TIMED_OUT, replay
from peergrid.runtime.cuda.search import first_nonfinite
from peergrid.runtime.cuda.station import Station
from peergrid.runtime.cuda.tape import NOTHING, Tape, TapeWriter, Words
from peergrid.runtime.cuda.timing import spans, start_clocks, timed
from peergrid.runtime.cuda.watchdog import blame
from peergrid.runtime.devices import cores
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Event, Flag, Op, Queue, describe, hosts_of, queues_of
from peergrid.schedule.timeline import Span

SECOND = 1_000_000_000
AHEAD_CELLS = 1 << 33  # cell updates per device that a host may be ahead of its device: a few seconds of work
AHEAD_CALLS = 256  # calls per device that a host may be ahead, twice: fewer than the driver takes before it blocks
MOST_AHEAD = 64
WORTH = 256  # calls from which on threads pay that have to be woken
BUNDLE = 16  # turns of a schedule in one graph


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
    """What one thread issues of a host's operations."""

    host: int
    tape: Tape


class CudaExecutor:
    """An `Executor` on GPUs.

    ordinals: the GPU of each virtual device; patience: seconds without progress before a wait is given up;
    cache: folder for compiled kernels (None: none kept); driver: what to run on, the installed one by default;
    norm: a field the norm of whose change is computed for every step; issuers: threads among which a host's calls are
    shared (None: one for each GPU, if there are processors for them and enough to do).
    `notes` says where a route other than the one asked for was taken, and why.

    Raises DoesNotFit before anything is allocated, DeviceFault where a device cannot be used.
    """

    def __init__(
        self,
        layout: Layout,
        total_steps: int,
        ordinals: tuple[int, ...],
        *,
        patience: float = 5.0,
        cache: Path | None = None,
        driver: Driver | None = None,
        norm: str | None = None,
        issuers: int | None = None,
    ) -> None:
        self.layout = layout
        self.patience = patience
        self.host_seconds = 0.0
        self._issuers = issuers
        self._station = Station(
            driver or CudaDriver(), layout, total_steps, ordinals, int(patience * SECOND), cache, norm
        )
        self._lowered: dict[int, Lowered] = {}  # by identity: hashing a schedule walks all its operations
        self._graphs: dict[tuple[int, int], Captured] = {}
        self._parts: dict[int, tuple[Tape, Parts]] = {}  # by identity of the tape, which is kept
        self._pool = ThreadPoolExecutor(layout.devices, "issuing")
        self._settled: dict[Flag, int] = {}
        self._broken = False
        self.notes: list[str] = list(self._station.peers.notes)

    def load(self, name: str, values: Array, slot: int) -> None:
        self._station.memory.load(name, values, slot)

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        if self._broken:
            raise DeviceFault("The devices failed earlier in this run; start it again.")
        if not times or not schedule.ops:
            return
        try:
            lowered = self._lower(schedule)
            if schedule.options.strategy == "graph":
                self._replay_graph(lowered, times, step)
            else:
                for part, count in replays(lowered, times):
                    self._replay(part, self._shares(part.tapes, count), count, step)
                    step += count * part.schedule.steps
        except PeergridError:
            self._broken = True
            raise

    def gather(self, name: str, slot: int) -> Array:
        return self._station.memory.gather(name, slot)

    def traces(self) -> Array:
        return self._station.memory.traces()

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        return first_nonfinite(self._station, name, slot)

    def norms(self, steps: int) -> Array:
        """The norms of the first so many steps, float64; raises UsageError where none was asked for."""
        if self._station.norms is None:
            raise UsageError("No norm was asked for; name the field when the run is made.")
        return self._station.norms.norms(steps)

    def busy_seconds(self) -> tuple[float, ...] | None:
        return None

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        """Carry out a schedule once, as `execute` does, with timing events around its operations; their spans."""
        if self._broken:
            raise DeviceFault("The devices failed earlier in this run; start it again.")
        try:
            lowered = lower(self._station, schedule)
            plan = timed(self._station, lowered)
            clocks = start_clocks(self._station, lowered.queues)
            self._replay(lowered, [Share(host, tape) for host, tape in plan.tapes.items()], 1, step)
        except PeergridError:
            self._broken = True
            raise
        return spans(self._station, lowered, plan.marks, clocks)

    def close(self) -> None:
        for captured in self._graphs.values():
            if not self._broken:
                self._station.devices.driver.destroy_graph(captured.graph, captured.executable)
        self._graphs.clear()
        self._pool.shutdown()
        self._station.close()

    def _lower(self, schedule: Schedule) -> Lowered:
        if id(schedule) not in self._lowered:
            linked = lower_linked(self._station, schedule) or lower_persistent(self._station, schedule)
            if isinstance(linked, str):
                lowered = lower(self._station, schedule, captured=schedule.options.strategy == "graph")
            else:
                lowered = linked
            self._lowered[id(schedule)] = lowered
            reasons = {c.reason for c in lowered.choices} | ({linked} if isinstance(linked, str) else set())
            self.notes += sorted(reasons - {"", *self.notes})
        return self._lowered[id(schedule)]

    def _shares(self, tapes: dict[int, Tape], times: int) -> list[Share]:
        """What each thread issues of so many turns: what a host does, or a part of that where there is but one host."""
        if len(tapes) > 1:
            return [Share(host, tape) for host, tape in tapes.items()]
        return [Share(host, part) for host, tape in tapes.items() for part in self._parts_of(tape, times).tapes]

    def _parts_of(self, tape: Tape, times: int) -> Parts:
        """A tape in as many parts as are worth while."""
        contexts = _contexts(tape)
        count = min(len(contexts), self._issuers or (cores() if len(tape.ops) * times >= WORTH else 1))
        if count < 2:
            return whole(tape)
        if id(tape) not in self._parts:
            events = Events(self._station.entry("cuEventRecord"), self._station.entry("cuStreamWaitEvent"))
            part_of = {context: n * count // len(contexts) for n, context in enumerate(contexts)}
            self._parts[id(tape)] = (tape, split(tape, part_of, events))
        parts = self._parts[id(tape)][1]
        parts.rewind()
        return parts

    def _replay(self, lowered: Lowered, shares: Sequence[Share], times: int, step: int) -> None:
        """Every share in a thread of its own; then the queues are drained."""
        ends = [End() for _ in shares]
        self._station.words[:] = 0
        issue = partial(self._issue, lowered, times, step)
        others = [self._pool.submit(issue, *pair) for pair in list(zip(shares, ends, strict=True))[1:]]
        issue(shares[0], ends[0])
        for other in others:
            other.result()
        self.host_seconds += max(int(end.spent[0]) for end in ends) / SECOND
        self._finish(lowered, shares, ends)
        for flag, count in lowered.raised.items():
            self._settled[flag] = self._settled.get(flag, 0) + count * times

    def _issue(self, lowered: Lowered, times: int, step: int, share: Share, end: End) -> None:
        steps, tape = lowered.schedule.steps, share.tape
        patches = tape.patch_table(step, steps, self._settled, lowered.raised)
        most = (
            MOST_AHEAD,
            AHEAD_CELLS * self.layout.devices // max(1, self._cells * steps),
            AHEAD_CALLS * len(_contexts(tape)) // max(1, len(tape.ops)),
        )
        self._carry_out(tape, end, patches, self._marks(lowered, share), max(1, min(most)), times)

    def _carry_out(
        self,
        tape: Tape,
        end: End,
        patches: Words = NOTHING,
        marks: tuple[Tape, Tape] | None = None,
        every: int = 2,
        times: int = 1,
    ) -> None:
        tables = (tape.table[:0], tape.table[:0]) if marks is None else (marks[0].table, marks[1].table)
        state, code, row, turn = replay(
            tape.table,
            patches,
            tables,
            every,
            times,
            self._station.entry("cuCtxSetCurrent"),
            max(1, int(self.patience * 2)),
            self._station.abort_address,
            int(end.spent.ctypes.data),
        )
        end.state, end.code, end.row, end.turn = int(state), int(code), int(row), int(turn)

    @property
    def _cells(self) -> int:
        return self.layout.problem.grid.box.size

    def _marks(self, lowered: Lowered, share: Share) -> tuple[Tape, Tape]:
        """Rows that record where a share's queues are, and wait for where they were the time before."""
        contexts, devices = _contexts(share.tape), self._station.devices
        issued = {queue for op in lowered.schedule.ops for queue in _issued(op, share.host)}
        mine = sorted(queue for queue in issued if devices.context(queue.device) in contexts)
        tapes = []
        for parity in (0, 1):
            tape = TapeWriter()
            for queue in mine:
                self._mark(tape, queue, parity)
            tapes.append(tape.finish())
        return tapes[0], tapes[1]

    def _mark(self, tape: TapeWriter, queue: Queue, parity: int) -> None:
        station = self._station
        context = station.devices.context(queue.device)
        here, before = (
            station.devices.event(Event(queue.device, f"mark {p} of {queue}")) for p in (parity, 1 - parity)
        )
        tape.call(-1, context, station.entry("cuEventRecord"), here, station.devices.stream(queue))
        tape.poll(-1, context, station.entry("cuEventQuery"), before)

    def _replay_graph(self, lowered: Lowered, times: int, step: int) -> None:
        """Many turns by graphs of `BUNDLE` turns each, the rest by graphs of one."""
        set_clocks(self._station, lowered, step)
        bundles, rest = divmod(times, BUNDLE)
        for turns, count in ((BUNDLE, bundles), (1, rest)):
            if count:
                key = (id(lowered.schedule), turns)
                if key not in self._graphs:
                    self._graphs[key] = self._capture(lowered, turns)
                self._replay(lowered, [Share(0, launch_tape(self._station, self._graphs[key]))], count, step)

    def _capture(self, lowered: Lowered, turns: int) -> Captured:
        station, origin = self._station, lowered.queues[0]
        driver = station.devices.driver
        fork, join = rows_between(station, lowered)
        station.devices.enter(origin.device)
        driver.begin_capture(station.devices.stream(origin))
        end = End()
        for tape, count in ((fork, 1), (lowered.tapes[0], turns), (join, 1)):
            if end.state == DONE:
                self._carry_out(tape, end, every=count + 1, times=count)
                failed = tape
        station.devices.enter(origin.device)
        if end.state != DONE:
            raise self._failure(lowered, failed, end, "Capturing ")
        graph = driver.end_capture(station.devices.stream(origin))
        return Captured(graph, driver.instantiate(graph), origin)

    def _finish(self, lowered: Lowered, shares: Sequence[Share], ends: Sequence[End]) -> None:
        """Drain the queues; raise what went wrong, the first cause before what followed from it."""
        drain = TapeWriter()
        for queue in lowered.queues:
            context = self._station.devices.context(queue.device)
            stream = self._station.devices.stream(queue)
            drain.poll(-1, context, self._station.entry("cuStreamQuery"), stream)
        failed = [n for n, end in enumerate(ends) if end.state in (FAILED, TIMED_OUT)]
        if failed:
            self._station.board[0] = 1
        self._station.words[0] = 0
        end = End()
        self._carry_out(drain.finish(), end)
        blame(lowered.schedule, self._station.board)
        if failed:
            raise self._failure(lowered, shares[failed[0]].tape, ends[failed[0]])
        if end.state == FAILED:
            raise error(end.code, f"The work of queue {lowered.queues[end.row]}")
        if end.state != DONE:
            raise DeviceFault(
                f"Queue {lowered.queues[end.row]} did not finish within {self.patience * 2:g} s of the last progress; "
                "look at 'nvidia-smi' for a device that hangs, and run 'peergrid verify' on the model."
            )

    def _failure(self, lowered: Lowered, tape: Tape, end: End, doing: str = "") -> PeergridError:
        number = tape.ops[end.row] if 0 <= end.row < len(tape.ops) else -1
        what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "keeping pace with the devices"
        place = f"{doing}{what} (row {end.row}, turn {end.turn})"
        if end.state == FAILED:
            return error(end.code, place)
        return DeviceFault(f"Nothing moved for {self.patience * 2:g} s: {place} is still waiting for its devices.")


def _issued(op: Op, host: int) -> tuple[Queue, ...]:
    """The queues into which a host issues an operation."""
    return queues_of(op) if host in hosts_of(op) else ()


def _contexts(tape: Tape) -> list[int]:
    """The contexts of a tape's rows, in the order in which they first appear."""
    return [context for context in dict.fromkeys(int(word) for word in tape.table[:, CONTEXT]) if context]

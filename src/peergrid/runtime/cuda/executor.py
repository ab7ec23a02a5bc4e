"""CUDA devices as an `Executor`: schedules become tapes once, and tapes are replayed without the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from peergrid.errors import DeviceFault, PeergridError
from peergrid.grid import Array, Index
from peergrid.runtime.cuda.device.driver import CudaDriver, Driver
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.issuing.graphs import Graphs
from peergrid.runtime.cuda.issuing.threads import End, Issuers, Share, Work
from peergrid.runtime.cuda.linked.peer import lower_linked
from peergrid.runtime.cuda.linked.persistent import lower_persistent, replays
from peergrid.runtime.cuda.lowering.duration import CALL, spells
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.lowering.lower import Lowered, lower
from peergrid.runtime.cuda.lowering.station import Station
from peergrid.runtime.cuda.search import first_nonfinite
from peergrid.runtime.cuda.tapes.replay import DONE, FAILED, TIMED_OUT
from peergrid.runtime.cuda.tapes.tape import Tape, TapeWriter
from peergrid.runtime.cuda.timing import spans, start_clocks, timed
from peergrid.runtime.cuda.watchdog import blame, overdue
from peergrid.runtime.executor import refuse_norms
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Flag, describe
from peergrid.schedule.timeline import Span
from peergrid.stencil.reduction import Series


class CudaExecutor:
    """An `Executor` on GPUs.

    ordinals: the GPU of each virtual device; patience: seconds without progress before a kernel gives up a wait, three
    quarters of a host's; more where a cycle may take long (see `lowering.duration`); cache: folder for compiled kernels
    (None: none kept); driver: what to run on, the installed one by default; norm: a field the norm of whose change is
    computed for every step; issuers: threads among which a host's calls are shared (None: one for each GPU, if there
    are processors for them and enough to do);
    sources: a folder for the texts of kernels. `notes` says where a route other than the one asked for was taken, and
    why.

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
        sources: Path | None = None,
    ) -> None:
        self.layout = layout
        self._station = Station(driver or CudaDriver(), layout, total_steps, ordinals, patience, cache, norm, sources)
        self._lowered: dict[int, Lowered] = {}  # by identity: hashing a schedule walks all its operations
        self._expected: dict[int, Schedule] = {}
        self._issuers = Issuers(self._station, issuers)
        self._graphs = Graphs(self._station, self._issuers)
        self._settled: dict[Flag, int] = {}
        self._broken = False
        self._reasons: list[str] = []

    def load(self, name: str, values: Array, slot: int) -> None:
        self._station.memory.load(name, values, slot)

    def expect(self, schedules: Sequence[Schedule]) -> None:
        kernels = kernels_of(self._station)
        for schedule in schedules:
            if id(schedule) not in self._expected:
                self._expected[id(schedule)] = schedule
                self._station.programs.expect([kernels.needed(schedule)])

    def prepare(self, schedule: Schedule) -> None:
        self._check_whole()
        try:
            self._lower(schedule)
            self._station.issue(TapeWriter().finish())  # the loop that issues is compiled now, too
        except PeergridError:
            self._broken = True
            raise

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        self._check_whole()
        if not times or not schedule.ops:
            return
        try:
            lowered = self._lower(schedule)
            for turns in spells(times, self._turn_seconds(lowered)):
                self._turns(lowered, turns, step)
                step += turns * schedule.steps
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
        if self._station.norms is None:
            refuse_norms()
        return self._station.norms.norms(steps)

    def reductions(self, steps: int) -> Mapping[str, Series]:
        return {}

    def busy_seconds(self) -> tuple[float, ...] | None:
        return None

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        """Carry out a schedule once, as `execute` does, with timing events around its operations; their spans."""
        self._check_whole()
        try:
            self._station.programs.expect([kernels_of(self._station).queued(schedule)])
            lowered = lower(self._station, schedule)
            self._station.programs.still()
            plan = timed(self._station, lowered)
            clocks = start_clocks(self._station, lowered.queues)
            self._replay(self._issuers.work(lowered, 1, plan.tapes), 1, step)
        except PeergridError:
            self._broken = True
            raise
        return spans(self._station, lowered, plan.marks, clocks)

    def close(self) -> None:
        try:
            self._issuers.close()
            self._station.posts.release()
        finally:
            self._station.close()

    def _check_whole(self) -> None:
        if self._broken:
            raise DeviceFault("The devices failed earlier in this run; start it again.")

    def _lower(self, schedule: Schedule) -> Lowered:
        if id(schedule) not in self._lowered:
            self.expect([schedule])
            linked = lower_linked(self._station, schedule) or lower_persistent(self._station, schedule)
            if isinstance(linked, str):
                lowered = lower(self._station, schedule, captured=schedule.options.strategy == "graph")
            else:
                lowered = linked
            self._station.programs.still()
            self._lowered[id(schedule)] = lowered
            reasons = {c.reason for c in lowered.choices} | ({linked} if isinstance(linked, str) else set())
            self._reasons += sorted(reasons - {"", *self._reasons})
        return self._lowered[id(schedule)]

    @property
    def notes(self) -> list[str]:
        return [*self._station.peers.notes, *self._reasons]

    @property
    def host_seconds(self) -> float:
        """How long the busiest of the threads that issue was at it so far, without waiting."""
        return self._issuers.seconds

    def _turn_seconds(self, lowered: Lowered) -> float:
        """What a turn of a schedule takes by the devices or, where their work is little, by the hosts' calls."""
        calls = sum(len(tape.ops) for tape in lowered.tapes.values())
        return max(CALL * calls, self._station.step_seconds * lowered.schedule.steps)

    def _turns(self, lowered: Lowered, times: int, step: int) -> None:
        """So many turns of a schedule."""
        if lowered.schedule.options.strategy == "graph":
            for work, count in self._graphs.works(lowered, times, step):
                self._replay(work, count, step)
            return
        for part, count in replays(lowered, times):
            self._replay(self._issuers.work(part, count), count, step)
            step += count * part.schedule.steps

    def _replay(self, work: Work, times: int, step: int) -> None:
        """Carry out some turns, until the queues are empty."""
        self._finish(work, times, self._issuers.run(work, times, step, self._settled))
        for flag, count in work.lowered.raised.items():
            self._settled[flag] = self._settled.get(flag, 0) + count * times

    def _finish(self, work: Work, times: int, ends: Sequence[End]) -> None:
        """Drain the queues; raise what went wrong, the first cause before what followed from it."""
        lowered = work.lowered
        failed = [n for state in (FAILED, TIMED_OUT) for n, end in enumerate(ends) if end.state == state]
        late = self._let_go(lowered, times) if failed else ""
        self._station.words[0] = 0
        end = End()
        self._issuers.carry_out(Share(work.drain), end)
        blame(lowered.schedule, self._station.board)
        if failed and (ends[failed[0]].state == FAILED or not late):
            raise self._failure(lowered, work.shares[failed[0]].tape, ends[failed[0]])
        if end.state == FAILED:
            raise error(end.code, f"The work of queue {lowered.queues[end.row]}")
        if end.state != DONE:
            late = late or self._let_go(lowered, times)
        if late:
            raise DeviceFault(late)
        if end.state != DONE:
            raise DeviceFault(
                f"Queue {lowered.queues[end.row]} did not finish within {self._issuers.patience:g} s of the last "
                "progress; look at 'nvidia-smi' for a device that hangs, and run 'peergrid verify' on the model."
            )

    def _let_go(self, lowered: Lowered, times: int) -> str:
        """Have all kernels and queues wait no longer; which word one of these waited for in vain, if any."""
        self._station.board[0] = 1
        due = {flag: self._settled.get(flag, 0) + lowered.raised[flag] * times for flag in lowered.edges}
        standing = {flag: self._station.posts.value(flag) for flag in due}
        self._station.posts.release()
        return overdue(lowered.edges, due, standing)

    def _failure(self, lowered: Lowered, tape: Tape, end: End) -> PeergridError:
        number = tape.ops[end.row] if 0 <= end.row < len(tape.ops) else -1
        what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "keeping pace with the devices"
        place = f"{what} (row {end.row}, turn {end.turn})"
        if end.state == FAILED:
            return error(end.code, place)
        return DeviceFault(f"Nothing moved for {self._issuers.patience:g} s: {place} is still waiting for its devices.")

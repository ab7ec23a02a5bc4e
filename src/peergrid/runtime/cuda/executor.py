"""CUDA devices as an `Executor`: each schedule is lowered to command buffers once, which are replayed afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.errors import DeviceFault, PeergridError
from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.cuda.commands.buffer import CommandBuffer
from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.replay import DONE, FAILED, TIMED_OUT
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.device.processes import Line, Processes
from peergrid.runtime.cuda.fused.chain import passed
from peergrid.runtime.cuda.fused.peer import lower_fused
from peergrid.runtime.cuda.fused.persistent import lower_persistent, replays
from peergrid.runtime.cuda.lowering.duration import batches
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.lowering.lower import Lowered, lower
from peergrid.runtime.cuda.lowering.own_kernel import OwnKernel
from peergrid.runtime.cuda.lowering.passes import fused_passes, queued_on
from peergrid.runtime.cuda.lowering.signals import edges
from peergrid.runtime.cuda.recording import Notes
from peergrid.runtime.cuda.search import first_nonfinite
from peergrid.runtime.cuda.submission.graphs import Graphs
from peergrid.runtime.cuda.submission.submitter import End, Submission, SubmissionPlan, Submitter
from peergrid.runtime.cuda.timing import Timing, start_clocks
from peergrid.runtime.cuda.watchdog import blame, overdue
from peergrid.runtime.devices import cores
from peergrid.runtime.executor import Views, refuse_norms
from peergrid.runtime.trace.recorder import Recorded
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Flag, describe
from peergrid.schedule.passes import apply_passes
from peergrid.schedule.passes.hosts import hosts_of_gpus
from peergrid.schedule.passes.ranks import by_address, in_groups, of_rank, over_ranks
from peergrid.schedule.timeline import Span
from peergrid.schedule.unroll import increments
from peergrid.stencil.reduction import Series

IN_MESSAGES = "halos go between ranks as messages through host memory"
UNCAPTURED = "halos go between ranks as messages by MPI, which graphs do not hold: each call is issued"


class CudaExecutor:
    """An `Executor` on GPUs.

    ordinals: the GPU of each virtual device; timeout: seconds without progress before a kernel gives up a wait, three
    quarters of a host's; more where an exchange interval may take long (see `lowering.duration`); cache: folder for
    compiled kernels (None: none kept); driver: what to run on, the installed one by default; norm: a field the norm of
    whose change is computed for every step; submission_threads: hosts at most, each of which is a thread (None: one
    for each GPU, if there are processors for them); sources: a folder for the texts of kernels.
    processes: those among which the devices are divided (None: this one has all); then all of them make every call, and
    fields and records are those of this one's devices.
    own: what makes the passes of a problem whose updates say what is read and no more.
    `notes` names routes other than the requested ones, with reasons.

    Raises DoesNotFit before anything is allocated, DeviceFault where a device cannot be used.
    """

    def __init__(
        self,
        layout: Layout,
        total_steps: int,
        ordinals: tuple[int, ...],
        *,
        timeout: float = 5.0,
        cache: Path | None = None,
        driver: CudaDriver | None = None,
        norm: str | None = None,
        submission_threads: int | None = None,
        sources: Path | None = None,
        processes: Processes | None = None,
        own: OwnKernel | None = None,
    ) -> None:
        self.layout, self._driver = layout, driver or CudaDriver()
        with self._driver.kept_current():
            self._execution = ExecutionContext(
                self._driver, layout, total_steps, ordinals, timeout, cache, norm, sources, processes, own
            )
            if processes is not None and processes.direct:
                processes.try_direct(self._execution.devices.on(self._execution.devices.mine[0]))
        self._processes = processes
        self._lowered: dict[int, Lowered] = {}  # by identity: hashing a schedule walks all its operations
        self._expected: dict[int, Schedule] = {}
        self._submitter = Submitter(self._execution)
        self._hosts = () if processes else hosts_of_gpus(ordinals, submission_threads or cores())
        self._graphs = Graphs(self._execution, self._submitter)
        self._flag_values: dict[Flag, int] = {}
        self._broken = False
        self._reasons: list[str] = []

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        with self._driver.kept_current():
            self._execution.memory.load(name, values, slot)

    def expect(self, schedules: Sequence[Schedule]) -> None:
        kernels = kernels_of(self._execution)
        for schedule in schedules:
            if id(schedule) not in self._expected:
                self._expected[id(schedule)] = schedule
                with self._driver.kept_current():
                    self._execution.programs.expect([kernels.needed(schedule)])

    def prepare(self, schedule: Schedule) -> None:
        devices = self._execution.devices
        with self._whole():
            self._lower(schedule)
            issue(devices, CommandWriter(devices).finish(), "Nothing")  # the loop that issues is compiled now, too

    def carried_out(self, schedule: Schedule) -> Schedule:
        return self._lower(schedule).whole

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        with self._whole():
            if not times or not schedule.ops:
                return
            lowered = self._lower(schedule)
            for iterations in batches(times, self._iteration_seconds(lowered)):
                self._iterations(lowered, iterations, step)
                step += iterations * schedule.steps

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        with self._driver.kept_current():
            return self._execution.memory.gather(name, slot, box)

    def views(self, name: str, slot: int) -> Views:
        return self._execution.memory.views(name, slot, self)

    def traces(self) -> Array:
        with self._driver.kept_current():
            return self._execution.memory.traces()

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        with self._driver.kept_current():
            return first_nonfinite(self._execution, name, slot)

    def norms(self, steps: int) -> Array:
        if self._execution.norms is None:
            refuse_norms()
        with self._driver.kept_current():
            return self._execution.norms.norms(steps)

    def reductions(self, steps: int) -> Mapping[str, Series]:
        with self._driver.kept_current():
            return self._execution.reductions.series(steps)

    @property
    def recorded(self) -> Sequence[Sequence[int]]:
        """The receivers that each device records."""
        return self._execution.memory.recorded

    def merge(self, others: Callable[[object], list[Any]]) -> None:
        """Nothing: what processes have parts in is put together when it is asked for."""

    def busy_seconds(self) -> tuple[float, ...] | None:
        return None

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        """Carry out a schedule once, as `execute` does, with timing events around its operations; their spans."""
        with self._whole():
            timing = Timing(self._execution.devices)
            self._execution.programs.expect([kernels_of(self._execution).queued(schedule)])
            lowered = lower(self._execution, schedule, noting=timing)
            self._execution.programs.still()
            clocks = start_clocks(self._execution.devices, lowered.queues)
            self._replay(self._submitter.work(lowered), 1, step)
            return timing.spans(schedule, clocks)

    def record(self, schedule: Schedule, times: int, step: int) -> Recorded:
        """Carry out a schedule as `execute` does, while queues and kernels note what they do; the log of the schedule
        as it is carried out, for the trace checker. Raises UsageError where GPUs do not reach each other.
        """
        with self._whole():
            self.expect([schedule])
            noting, before = Notes(self._execution), dict(self._flag_values)
            lowered, _ = self._carried_out(schedule, noting)
            self._execution.programs.still()
            self._iterations(lowered, times, step)
            if noting.sites:
                return noting.queued(lowered.whole, times, before)
            return noting.fused(lowered.whole, times, before.get(passed(schedule.options.strategy), 0))

    def close(self) -> None:
        try:
            self._submitter.close()
            self._execution.semaphores.release()
            self._execution.message_words.release()
        finally:
            self._execution.close()

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A block that needs devices that have not failed, and marks them as failed where it fails; afterwards the
        thread's current context is the one before.
        """
        if self._broken:
            raise DeviceFault("The devices failed earlier in this run; start it again.")
        try:
            with self._driver.kept_current():
                yield
        except PeergridError:
            self._broken = True
            raise

    def _lower(self, schedule: Schedule) -> Lowered:
        if id(schedule) not in self._lowered:
            self.expect([schedule])
            with self._driver.kept_current():
                lowered, reasons = self._carried_out(schedule)
                self._execution.programs.still()
            self._lowered[id(schedule)] = lowered
            self._reasons += sorted((reasons | lowered.reasons) - {"", *self._reasons})
        return self._lowered[id(schedule)]

    def _carried_out(self, schedule: Schedule, noting: Notes | None = None) -> tuple[Lowered, set[str]]:
        """The schedule after all passes, as commands; and why kernels do not exchange by themselves, if asked to.

        noting: of a recorded run.
        """
        execution, kernels = self._execution, kernels_of(self._execution)
        kernel, reason = kernels.exchanging(schedule)
        reasons = {reason}
        if kernel is not None:
            whole = self._by_address(apply_passes(self.layout, schedule, fused_passes(kernel, self._hosts)))
            assert whole is not None, "kernels that exchange by themselves wait for words alone"
            notes = 0 if noting is None else noting.address
            if isinstance(kernel, PeerKernel):
                found = lower_fused(execution, whole, kernel, notes)
            else:
                found = lower_persistent(execution, whole, kernel, notes)
            if isinstance(found, Lowered):
                return found, reasons
            reasons.add(found)
        captured, processes = schedule.options.strategy == "graph", self._processes
        whole = self._by_address(apply_passes(self.layout, schedule, queued_on(execution, schedule, self._hosts)))
        if whole is None:
            assert processes is not None
            devices = execution.devices
            grouped = devices.calls is not None or devices.heap is not None
            staged = not grouped and not processes.direct
            whole = in_groups(over_ranks(schedule, processes.of_device))
            captured = captured and grouped
            reasons |= {UNCAPTURED} if schedule.options.strategy == "graph" and not grouped else set()
            reasons |= {IN_MESSAGES} if schedule.options.strategy != "graph" and staged else set()
        if processes is None:
            return lower(execution, whole, captured, noting), reasons
        made = lower(execution, of_rank(whole, processes.of_device, processes.rank), captured)
        return replace(made, edges=edges(whole), increments=made.increments | increments(whole), of_all=whole), reasons

    def _by_address(self, schedule: Schedule) -> Schedule | None:
        """The schedule as processes carry it out that address each other's memory; None where messages are needed."""
        if self._processes is None:
            return schedule
        found = by_address(schedule, self._processes.of_device) if self._processes.by_address else None
        if found is not None:
            self._execution.share_flags(found.ops)
        return found

    @property
    def notes(self) -> list[str]:
        return [*self._execution.peers.notes, *self._reasons]

    @property
    def host_seconds(self) -> float:
        """Seconds in which the busiest submission thread issued work so far, without waiting."""
        return self._submitter.seconds

    def _iteration_seconds(self, lowered: Lowered) -> float:
        """Seconds of one iteration: the devices' or, where the run is launch-bound, the hosts'."""
        calls = max(len(commands.ops) for commands in lowered.buffers.values())
        issued = self._execution.gpu.costs.calls.launch * calls
        return max(issued, self._execution.step_seconds * lowered.schedule.steps)

    def _iterations(self, lowered: Lowered, times: int, step: int) -> None:
        """Carry out some iterations of a schedule."""
        if lowered.captured:
            for work, count in self._graphs.works(lowered, times, step):
                self._replay(work, count, step)
            return
        for part, count in replays(lowered, times):
            self._replay(self._submitter.work(part), count, step)
            step += count * part.schedule.steps

    def _replay(self, work: SubmissionPlan, times: int, step: int) -> None:
        """Carry out some iterations, until the queues are empty."""
        messages, lines = work.lowered.messages, tuple[Line, ...]()
        carried: AbstractContextManager[None] = nullcontext()
        if messages is not None:
            assert self._processes is not None, "messages go between processes"
            lines = tuple(messages.lines(self._processes.of_device, self._flag_values, times))
            devices = self._execution.devices
            carried = self._processes.carry(lines, partial(devices.on, devices.mine[0]))
        with carried:
            self._finish(work, times, self._submitter.run(work, times, step, self._flag_values), lines)
        for flag, count in work.lowered.increments.items():
            self._flag_values[flag] = self._flag_values.get(flag, 0) + count * times

    def _finish(self, work: SubmissionPlan, times: int, ends: Sequence[End], lines: Sequence[Line]) -> None:
        """Drain the queues; raise what went wrong, the first cause before what followed from it."""
        lowered = work.lowered
        failed = [n for state in (FAILED, TIMED_OUT) for n, end in enumerate(ends) if end.state == state]
        late = self._abort_waits(lowered, times, lines) if failed else ""
        self._execution.words[0] = 0
        end = self._submitter.carry_out(Submission(work.drain))
        blame(lowered.schedule, self._execution.fault_log)
        if failed and (ends[failed[0]].state == FAILED or not late):
            raise self._failure(lowered, work.submissions[failed[0]].commands, ends[failed[0]])
        if end.state == FAILED:
            raise error(end.code, f"The work of queue {lowered.queues[end.row]}")
        if end.state != DONE:
            late = late or self._abort_waits(lowered, times, lines)
        if late:
            raise DeviceFault(late)
        if end.state != DONE:
            raise DeviceFault(
                f"Queue {lowered.queues[end.row]} did not finish within {self._submitter.timeout:g} s of the last "
                "progress; look at 'nvidia-smi' for a device that hangs, and run 'peergrid verify' on the model."
            )

    def _abort_waits(self, lowered: Lowered, times: int, lines: Sequence[Line]) -> str:
        """End all waits of kernels and queues; the sentence about the semaphore, or message, that did not come."""
        self._execution.fault_log[0] = 1
        due = {flag: self._flag_values.get(flag, 0) + lowered.increments[flag] * times for flag in lowered.edges}
        standing = {flag: self._execution.semaphores.value(flag) for flag in due}
        late = "" if lowered.messages is None else lowered.messages.overdue(lines)
        self._execution.semaphores.release()
        self._execution.message_words.release()
        if self._processes is not None and self._processes.calls is not None:
            self._processes.calls.abort()
        return late or overdue(lowered.edges, due, standing)

    def _failure(self, lowered: Lowered, commands: CommandBuffer, end: End) -> PeergridError:
        number = commands.ops[end.row] if 0 <= end.row < len(commands.ops) else -1
        what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "keeping pace with the devices"
        place = f"{what} (row {end.row}, iteration {end.iteration})"
        if end.state == FAILED:
            return error(end.code, place)
        return DeviceFault(
            f"Nothing moved for {self._submitter.timeout:g} s: {place} is still waiting for its devices."
        )

"""Virtual devices on CPU threads: one thread runs each queue, hosts issue, and data are shared only by copies.

It mirrors CUDA's semantics on purpose, so that a schedule behaves here as on GPUs: issuing never waits, queues run
independently, and a wait is bound to the latest record of its event when it is issued.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from peergrid.errors import DoesNotFit, UsageError
from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.cpu.sync import Aborted, Barrier, Token, Waits
from peergrid.runtime.devices import cores
from peergrid.runtime.executor import Views, refuse_norms
from peergrid.runtime.kernel import Kernel, Pass
from peergrid.runtime.mail import Letter, LocalMail, Mail
from peergrid.runtime.memory import allocate, collect, copy, fill, first_nonfinite, keeps_value, owned_receivers, views
from peergrid.runtime.norms import Norms
from peergrid.runtime.reductions import Arithmetic, Reductions
from peergrid.runtime.reference_reduction import reference_reductions
from peergrid.runtime.trace.recorder import Log, Position, Recorded, Recorder, Silent
from peergrid.runtime.trace.stopwatch import Stopwatch
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Op,
    Queue,
    Receive,
    Record,
    Reduce,
    Send,
    SignalOp,
    SignalWait,
    Sync,
    Touching,
    Wait,
    hosts_of,
    queues_of,
)
from peergrid.schedule.timeline import Span
from peergrid.schedule.unroll import increments
from peergrid.stencil.reduction import Series

if TYPE_CHECKING:
    from peergrid.runtime.cpu.kernel import CpuKernel

AHEAD = 4096  # operations issued before the hosts wait for the queues, as they take memory

Job = Callable[[], Position | None]
"""Work of a queue; a wait gives the place of the operation that let it go."""


CROWD = 8  # virtual devices per processor beyond which a run notes it


class ThreadedExecutor:
    """An `Executor` on virtual devices.

    timeout: seconds without progress until a wait fails; recorder: receives all events; norms: of a field, computed in
    each pass; reductions: their arithmetic (None: that of the reference); devices: those of this process (None: all);
    mail: carries messages to and from the others; within: the kernel for passes that another one follows directly,
    which does not store its fields `left`.
    """

    host_seconds: float | None = None

    def __init__(
        self,
        layout: Layout,
        total_steps: int,
        kernel: Kernel,
        timeout: float = 60.0,
        recorder: Recorder | None = None,
        norms: Norms | None = None,
        reductions: Arithmetic | None = None,
        rotating: Mapping[str, str] = MappingProxyType({}),
        within: CpuKernel | None = None,
        devices: Sequence[int] | None = None,
        mail: Mail | None = None,
    ) -> None:
        self.layout = layout
        self.kernel = kernel
        self.within = within
        self._last = 0
        self._norms = norms
        arithmetic = reductions or reference_reductions(layout.problem)
        self._reductions = Reductions(layout, total_steps, *arithmetic, shared=devices is not None)
        mine = range(layout.devices) if devices is None else devices
        crowded = f"{len(mine)} virtual devices share {cores()} processors; one device per processor is faster."
        self.notes = (crowded,) if len(mine) > CROWD * cores() else ()
        self.memories = {device: allocate(layout, device, rotating) for device in mine}
        self._mail = mail or LocalMail()
        self.recorded = [owned_receivers(layout, device) for device in range(layout.devices)]
        self._traces = np.full((len(layout.problem.receivers), total_steps), np.nan, layout.problem.grid.dtype)
        self._busy: dict[Queue, float] = {}
        self._waits = Waits(timeout)
        self._recorder = recorder or Silent()
        self._events: dict[Event, tuple[Token, Position]] = {}
        self._signals: dict[tuple[Flag, int], Position] = {}
        self._inboxes: dict[Queue, SimpleQueue[Callable[[], object] | None]] = {}
        self._workers: list[threading.Thread] = []

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        left = self.within is not None and name in self.within.left
        for memory in self.memories.values():
            for one in (0, 1) if left else (slot,):
                fill(self.layout, memory, name, values, one)
            if left and not keeps_value(self.layout.problem, memory, name, slot):
                self.within = None

    def expect(self, schedules: Sequence[Schedule]) -> None:
        """Nothing to do: kernels are compiled already."""

    def prepare(self, schedule: Schedule) -> None:
        """Nothing to do: kernels are compiled already."""

    def carried_out(self, schedule: Schedule) -> Schedule:
        return schedule

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        self._last = step + times * schedule.steps
        iterations = max(1, AHEAD // max(1, len(schedule.ops)))
        for done in range(0, times, iterations):
            self._execute(schedule, min(iterations, times - done), step + done * schedule.steps)

    def _execute(self, schedule: Schedule, times: int, step: int) -> None:
        """Issue a schedule so many times, and wait until all is done."""
        for queue in sorted({queue for op in schedule.ops for queue in queues_of(op)} - self._inboxes.keys()):
            self._open(queue)
        programs: dict[int, list[tuple[int, Op]]] = {}
        for number, op in enumerate(schedule.ops):
            for host in hosts_of(op):
                programs.setdefault(host, []).append((number, op))
        barriers = {op.hosts: Barrier(len(op.hosts)) for op in schedule.ops if isinstance(op, HostBarrier)}
        first = self._recorder.begin(schedule, times)
        self._waits.progress()  # the caller may have changed fields since the last steps
        self._signals.clear()
        hosts = [
            threading.Thread(target=self._host, args=(host, ops, schedule, times, step, first, barriers), daemon=True)
            for host, ops in programs.items()
            if host != 0
        ]
        started = [thread for thread in hosts if self._started(thread)]
        self._host(0, programs.get(0, []), schedule, times, step, first, barriers)
        for thread in started:
            thread.join()
        self._drain()
        self._waits.settle(increments(schedule), times)

    def merge(self, others: Callable[[object], list[Any]]) -> None:
        """Combine norms and reductions with those of other processes; others: a function from this process's parts to
        all parts.
        """
        if self._norms is not None:
            for steps in others(self._norms.unfinished()):
                self._norms.merge(steps)
        if self.layout.problem.reductions:
            self._reductions.merge(others(self._reductions.unfinished()))

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        return collect(self.layout, self.memories.values(), name, slot, box)

    def views(self, name: str, slot: int) -> Views:
        return views(self.layout, self.memories.values(), name, slot)

    def traces(self) -> Array:
        return self._traces

    def reductions(self, steps: int) -> Mapping[str, Series]:
        return self._reductions.series(steps)

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        return first_nonfinite(self.layout, self.memories.values(), name, slot)

    def norms(self, steps: int) -> Array:
        if self._norms is None:
            refuse_norms()
        return self._norms.norms(steps)

    def busy_seconds(self) -> tuple[float, ...]:
        """For each device the computing time of its busiest queue, as queues of a device run concurrently."""
        queues = [[t for q, t in self._busy.items() if q.device == d] for d in range(self.layout.devices)]
        return tuple(max(times, default=0.0) for times in queues)

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        """Execute a schedule once; the times of its operations."""
        watch, usual = Stopwatch(), self._recorder
        self._recorder = watch
        try:
            self.execute(schedule, 1, step)
        finally:
            self._recorder = usual
        return watch.spans(schedule.ops)

    def record(self, schedule: Schedule, times: int, step: int) -> Recorded:
        """Execute a schedule as `execute` does; the log of its hosts and queues."""
        log, usual = Log(), self._recorder
        self._recorder = log
        try:
            self.execute(schedule, times, step)
        finally:
            self._recorder = usual
        return Recorded(log)

    def close(self) -> None:
        self._waits.abort(UsageError("The simulation was closed while it was stepping; close it after."))
        for inbox in self._inboxes.values():
            inbox.put(None)
        for worker in self._workers:
            if worker is not threading.current_thread():  # from which the garbage collector may call close
                worker.join()
        self._inboxes.clear()
        self._workers.clear()
        self._mail.close()
        self.memories = {}

    def _open(self, queue: Queue) -> None:
        self._inboxes[queue] = SimpleQueue()
        worker = threading.Thread(target=self._serve, args=(self._inboxes[queue],), name=str(queue), daemon=True)
        if self._started(worker):
            self._workers.append(worker)

    def _started(self, thread: threading.Thread) -> bool:
        """True if a thread started; if the system starts no more threads, the run is aborted."""
        if not self._waits.aborted:
            self._guard(partial(_start, thread, self.layout.devices))
        return thread.ident is not None

    def _serve(self, inbox: SimpleQueue[Callable[[], object] | None]) -> None:
        """Run the operations of a queue; after a failure anywhere, skip the rest."""
        while (job := inbox.get()) is not None:
            if not self._waits.aborted:
                self._guard(job)

    def _host(
        self,
        host: int,
        ops: list[tuple[int, Op]],
        schedule: Schedule,
        times: int,
        step: int,
        first: int,
        barriers: dict[tuple[int, ...], Barrier],
    ) -> None:
        rises = increments(schedule)

        def issue_all() -> None:
            for iteration in range(times):
                self._waits.check()
                base = step + iteration * schedule.steps
                offsets = {flag: iteration * count for flag, count in rises.items()}
                for number, op in ops:
                    position = (first + iteration, number)
                    if isinstance(op, Sync | HostBarrier):
                        self._recorder.start(host, position)
                        self._recorder.finish(host, position, self._wait_on_host(op, barriers))
                    else:
                        self._recorder.issue(host, position)
                        self._issue(op, position, base, offsets)

        self._guard(issue_all)

    def _issue(
        self,
        op: Touching | Record | Wait | SignalOp | SignalWait | DeviceBarrier,
        position: Position,
        base: int,
        offsets: dict[Flag, int],
    ) -> None:
        """Hand an operation to its queues."""
        match op:
            case Compute():
                self._enqueue(op.queue, position, partial(self._compute, op, base))
            case Reduce():
                self._enqueue(op.queue, position, partial(self._reduce, op, base))
            case Copy():
                self._enqueue(op.queue, position, partial(copy, self.memories, op))
            case Send():
                self._enqueue(op.queue, position, partial(self._send, op, position))
            case Receive():
                self._enqueue(op.queue, position, partial(self._receive, op))
            case Record():
                point, _ = self._events[op.event] = (Token(), position)
                self._enqueue(op.queue, position, point.set)
            case Wait():
                self._enqueue(op.queue, position, partial(self._wait_for, op, self._events.get(op.event)))
            case SignalOp():
                value = offsets[op.flag] + op.value
                self._signals[op.flag, value] = position
                self._enqueue(op.queue, position, partial(self._waits.set_flag, op.flag, value))
            case SignalWait():
                self._enqueue(op.queue, position, partial(self._await, op, offsets.get(op.flag, 0) + op.value))
            case DeviceBarrier():
                barrier = Barrier(len(op.queues))
                for queue in op.queues:
                    self._enqueue(queue, position, partial(self._waits.pass_barrier, barrier, op))

    def _wait_on_host(self, op: Sync | HostBarrier, barriers: dict[tuple[int, ...], Barrier]) -> Position | None:
        if isinstance(op, HostBarrier):
            self._waits.pass_barrier(barriers[op.hosts], op)
            return None
        if isinstance(op.target, Event):
            return self._wait_for(op, self._events.get(op.target))
        drained = Token()
        self._inboxes[op.target].put(drained.set)
        self._waits.wait(drained, op)
        return None

    def _wait_for(self, op: Wait | Sync, record: tuple[Token, Position] | None) -> Position | None:
        """Wait for the record of an event, if there was one; its place in the log."""
        if record is None:
            return None
        self._waits.wait(record[0], op)
        return record[1]

    def _await(self, op: SignalWait, value: int) -> Position | None:
        return self._signals.get((op.flag, self._waits.await_flag(op, value)))

    def _compute(self, op: Compute, base: int) -> None:
        memory, recorded = self.memories[op.device], self.recorded[op.device]
        started = time.perf_counter()
        with self._waits.computing():
            step = base + op.level
            kernel = self.within if self.within is not None and step + op.steps < self._last else self.kernel
            kernel(memory, Pass(op.box, op.source, op.target, step, op.steps, self._traces, recorded))
            if self._norms is not None:
                self._norms.add(memory, op, step)
        self._busy[op.queue] = self._busy.get(op.queue, 0.0) + time.perf_counter() - started

    def _reduce(self, op: Reduce, base: int) -> None:
        with self._waits.computing():
            self._reductions.add(self.memories[op.device], op, base + op.level)

    def _send(self, op: Send, position: Position) -> None:
        values = self.memories[op.source_device].block(op.field, op.slot).view(op.source_box)
        self._waits.poll(lambda: self._mail.sent(op, values, position), op)

    def _receive(self, op: Receive) -> Position | None:
        letters: list[Letter] = []

        def arrived() -> bool:
            letters.extend(filter(None, (self._mail.arrived(op),)))
            return bool(letters)

        self._waits.poll(arrived, op)
        values, position = letters[0]
        self.memories[op.target_device].block(op.field, op.slot).view(op.target_box)[...] = values
        self._waits.progress()
        return position

    def _enqueue(self, queue: Queue, position: Position, job: Job) -> None:
        def carry_out() -> None:
            self._recorder.start(queue, position)
            self._recorder.finish(queue, position, job())

        self._inboxes[queue].put(carry_out)

    def _drain(self) -> None:
        tokens = [Token() for _ in self._inboxes]
        for inbox, token in zip(self._inboxes.values(), tokens, strict=True):
            inbox.put(token.set)
        for token in tokens:
            self._guard(partial(self._waits.wait, token, None))
        self._waits.reraise()

    def _guard(self, job: Callable[[], object]) -> None:
        try:
            job()
        except Aborted:
            pass
        except BaseException as error:
            self._waits.abort(error)


def _start(thread: threading.Thread, devices: int) -> None:
    try:
        thread.start()
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise  # of a signal's handler, in the middle of it
        raise DoesNotFit(
            f"The system starts no more threads for {devices} virtual devices; use fewer devices, or raise the limit "
            "of processes ('ulimit -u')."
        ) from None

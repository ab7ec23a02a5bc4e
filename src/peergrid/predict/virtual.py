"""Forecasts for virtual devices: each kind of pass is timed, on all devices at once; the work of hosts, queues and
copies is simulated with costs measured on this machine.

`ThreadedExecutor` has a thread for each queue and each host; the interpreter lets one of them at a time issue or copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from queue import SimpleQueue
from statistics import median
from threading import Barrier, Thread

import numpy as np

from peergrid.costs.machine import Calls, Delays, Line, Machine
from peergrid.grid import Box
from peergrid.predict.kernels import Duration
from peergrid.predict.operations import Given, Timed
from peergrid.predict.simulation import simulate
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.devices import Devices
from peergrid.runtime.executors import executor_of
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import DeviceMemory
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.timeline import Span

TIMES = 3  # a pass is carried out, after once to warm up
IDLE = 8  # iterations
ROUNDS = 200  # of what takes microseconds
SMALL, LARGE = 1 << 12, 1 << 22  # bytes of copies


@dataclass(frozen=True, eq=False)
class VirtualForecaster:
    """Forecasts of schedules of one layout; executor: one with memory for it, before its run."""

    executor: ThreadedExecutor

    def seconds_per_step(self, schedule: Schedule) -> float:
        """Seconds of a step of a repeated schedule."""
        return simulate(schedule, self._input(schedule)).seconds / schedule.steps

    def spans(self, schedule: Schedule, interval: Schedule) -> tuple[Span, ...]:
        """The times of a schedule's operations; interval: the shortest schedule that it repeats."""
        return simulate(schedule, self._input(interval), iterations=1).spans

    def _input(self, schedule: Schedule) -> Given:
        given = Given(virtual_machine(), self.executor.layout.problem.itemsize, _no_work, lambda op: "copy")
        slower = self._idle(schedule) / simulate(schedule, given).seconds
        return replace(given, machine=_slowed(given.machine, slower), passes=cache(self._timed))

    def _idle(self, schedule: Schedule) -> float:
        """Seconds of an iteration with empty kernels, whose threads slow each other down."""
        executor = self.executor
        kernels = executor.kernel, executor.within
        executor.kernel, executor.within = _idle_kernel, None
        try:
            executor.execute(schedule, 1, 0)
            began = time.perf_counter()
            executor.execute(schedule, IDLE, 0)
            return (time.perf_counter() - began) / IDLE
        finally:
            executor.kernel, executor.within = kernels

    def _timed(self, device: int, steps: int, boxes: tuple[Box, ...]) -> tuple[Timed, ...]:
        seconds = sum(self._pass(device, steps, box) for box in boxes)
        return (Timed(Duration(seconds, seconds)),)

    def _pass(self, device: int, steps: int, box: Box) -> float:
        """Seconds of a pass over a box, while the other devices compute as well."""
        executor, devices = self.executor, range(self.executor.layout.devices)
        boxes = [box if other == device else self._equal_box(other, box) for other in devices]
        ready, traces, kernel = Barrier(len(devices)), executor.traces(), executor.within or executor.kernel

        def carry_out(one: int) -> float:
            memory, recorded = executor.memories[one], executor.recorded[one]
            ready.wait()
            began = time.perf_counter()
            kernel(memory, Pass(boxes[one], 0, 1, 0, steps, traces, recorded))
            return time.perf_counter() - began

        with ThreadPoolExecutor(len(devices)) as threads:
            each = [list(threads.map(carry_out, devices)) for _ in range(1 + TIMES)]
        return median(seconds[device] for seconds in each[1:])

    def _equal_box(self, device: int, box: Box) -> Box:
        """An equal box of another device."""
        owned = self.executor.layout.partition.owned(device)
        return owned.with_axis(0, owned.lo[0], min(owned.hi[0], owned.lo[0] + box.shape[0]))


@contextmanager
def virtual_forecaster(devices: Devices, plan: Layout) -> Iterator[VirtualForecaster]:
    """Forecasts of schedules of a layout, in memory of their own."""
    executor = executor_of(devices, plan, 2 * plan.depth, "compiled", None, None)
    assert isinstance(executor, ThreadedExecutor), "virtual devices of one process"
    with closing(executor):
        for name, described in plan.problem.fields.items():
            executor.load(name, described.first_values(), 0)
        yield VirtualForecaster(executor)


@cache
def virtual_machine() -> Machine:
    """This machine's processors as devices: the seconds to issue, to wake a thread, and to copy."""
    issue, wake = _issue_seconds(), _wake_seconds()
    small, large = (_copy_seconds(count) for count in (SMALL, LARGE))
    line = Line(small, (LARGE - SMALL) / max(large - small, 1e-9))
    return Machine(
        name="processors", gpu="processor", gpus=1, multiprocessors=1, clock=1.0, memory=0, bandwidth=line.bandwidth,
        copy=line, store=line, host=line, measured=True, source="measured at the start",
        calls=Calls(launch=issue, event=issue, words=issue, copy=issue, graph=0.0, sync=wake, barrier=wake),
        delays=Delays(
            start=0.0, node=0.0, arrival=wake, event=wake, engine=0.0, words=wake, grid=wake, neighbour=wake
        ),
    )  # fmt: skip


def _slowed(machine: Machine, factor: float) -> Machine:
    """The machine with threads whose work apart from computing takes `factor` times as long."""
    calls = Calls(**{name: value * factor for name, value in asdict(machine.calls).items()})
    delays = Delays(**{name: value * factor for name, value in asdict(machine.delays).items()})
    return replace(machine, calls=calls, delays=delays)


def _no_work(device: int, steps: int, boxes: tuple[Box, ...]) -> tuple[Timed, ...]:
    return (Timed(Duration(0.0, 0.0)),)


def _idle_kernel(memory: DeviceMemory, part: Pass) -> None:
    """A kernel without effect."""


def _issue_seconds() -> float:
    """Seconds of a host to issue an operation, and of a queue to take it."""
    inbox: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def serve() -> None:
        while (job := inbox.get()) is not None:
            job()

    worker = Thread(target=serve, daemon=True)
    worker.start()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        inbox.put(time.perf_counter)
    inbox.put(None)
    worker.join()
    return (time.perf_counter() - began) / ROUNDS


def _wake_seconds() -> float:
    """Seconds from the end of a wait to the moment when the thread continues."""
    there, back = SimpleQueue[bool](), SimpleQueue[bool]()

    def answer() -> None:
        while there.get():
            back.put(True)

    worker = Thread(target=answer, daemon=True)
    worker.start()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        there.put(True)
        back.get()
    seconds = (time.perf_counter() - began) / ROUNDS / 2
    there.put(False)
    worker.join()
    return seconds


def _copy_seconds(count: int) -> float:
    """Seconds of a copy of so many bytes."""
    source, target = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    rounds = max(3, ROUNDS * SMALL // count)

    def copied() -> float:
        began = time.perf_counter()
        target[...] = source
        return time.perf_counter() - began

    return min(copied() for _ in range(rounds))

"""Faults on virtual devices: a kernel that fails, a signal that never comes, a barrier that is not met."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest
from executions import load
from runtime_problems import heat_fixed

from peergrid import DeviceFault, DoesNotFit, Options, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu import executor as cpu_executor
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.cpu.sync import Barrier, Waits
from peergrid.runtime.reference import ReferenceKernel
from peergrid.schedule import Schedule, build, layout
from peergrid.schedule.ops import HostBarrier, SignalOp


def executor_and_schedule(strategy: str, timeout: float = 0.3) -> tuple[ThreadedExecutor, Schedule]:
    problem, options = heat_fixed(), Options(strategy)
    plan = layout(problem, Partition.over(problem.grid, 3), options)
    executor = ThreadedExecutor(plan, 4, ReferenceKernel(problem), timeout)
    load(executor)
    return executor, build(plan, options, 4)


@pytest.mark.parametrize("strategy", ["serial", "async", "threads", "overlap", "peer", "persistent"])
def test_a_failing_kernel_ends_the_run_with_its_own_error(strategy: str) -> None:
    executor, schedule = executor_and_schedule(strategy, timeout=20)

    def broken(*arguments: object) -> None:
        if arguments[0].device == 1:  # type: ignore[attr-defined]
            raise RuntimeError("planted")

    executor.kernel = broken  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="planted"):
        executor.execute(schedule, 1, 0)
    executor.close()


@pytest.mark.parametrize("strategy", ["serial", "async", "threads", "overlap", "peer", "persistent"])
def test_a_pass_may_take_longer_than_the_timeout(strategy: str) -> None:
    """It is one device's; all the others wait for it meanwhile."""
    executor, schedule = executor_and_schedule(strategy, timeout=0.2)
    kernel, slow = executor.kernel, threading.Event()

    def takes_long(*arguments: object) -> None:
        if arguments[0].device == 1 and not slow.is_set():  # type: ignore[attr-defined]
            slow.set()
            time.sleep(0.7)
        kernel(*arguments)  # type: ignore[arg-type]

    executor.kernel = takes_long  # type: ignore[assignment]
    executor.execute(schedule, 1, 0)
    assert slow.is_set()
    executor.close()


@pytest.mark.parametrize("allowed", [0, 1, 3, 4, 5])
def test_threads_that_the_system_does_not_start_are_one_sentence(allowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, schedule = executor_and_schedule("threads", timeout=20)
    begin, begun = threading.Thread.start, list[threading.Thread]()

    def start(thread: threading.Thread) -> None:
        if len(begun) == allowed:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    if allowed < 5:  # a thread for each queue, and for two of three hosts
        with pytest.raises(DoesNotFit, match="starts no more threads for 3 virtual devices; use fewer"):
            executor.execute(schedule, 1, 0)
    else:
        executor.execute(schedule, 1, 0)
    executor.close()
    assert not any(thread.is_alive() for thread in begun)


def test_a_barrier_that_is_not_met_is_named() -> None:
    waits, barrier = Waits(0.2), Barrier(2)
    with pytest.raises(DeviceFault, match=r"Nothing moved for 0\.2 s: "):
        waits.pass_barrier(barrier, HostBarrier((0, 1)))


def test_a_dropped_signal_is_named() -> None:
    executor, schedule = executor_and_schedule("peer")
    dropped = next(op for op in schedule.ops if isinstance(op, SignalOp))
    mutilated = replace(schedule, ops=tuple(op for op in schedule.ops if op is not dropped and not _later(op, dropped)))
    first, then = "1:halo from 0 = 1 in 1", "([02]):halo from 1 = 2 in \\2"  # who waits for the one that waits
    with pytest.raises(DeviceFault, match=rf"Nothing moved for 0\.3 s: 'SignalWait flag ({first}|{then}):boundary'"):
        executor.execute(mutilated, 1, 0)
    executor.close()


def test_a_long_run_is_issued_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    executor, schedule = executor_and_schedule("peer")
    issued: list[int] = []
    enqueue = executor._enqueue
    monkeypatch.setattr(
        executor, "_enqueue", lambda queue, place, job: (issued.append(queue.device), enqueue(queue, place, job))
    )
    drain, most = executor._drain, []
    monkeypatch.setattr(executor, "_drain", lambda: (drain(), most.append(len(issued)), issued.clear()))
    monkeypatch.setattr(cpu_executor, "AHEAD", 3 * len(schedule.ops))
    executor.kernel = lambda *arguments: None
    executor.execute(schedule, 7, 0)
    executor.close()
    assert most == [most[0], most[0], most[0] // 3]


def test_closed_by_another_thread_the_run_ends_with_an_error() -> None:
    executor, schedule = executor_and_schedule("overlap", timeout=60)
    entered = threading.Event()

    def closed_within(*arguments: object) -> None:
        if not entered.is_set():
            entered.set()
            threading.Thread(target=executor.close).start()

    executor.kernel = closed_within  # type: ignore[assignment]
    with pytest.raises(UsageError, match="closed while it was stepping"):
        executor.execute(schedule, 10**6, 0)


def test_nothing_is_left_behind() -> None:
    before = threading.active_count()
    executor, schedule = executor_and_schedule("overlap")
    executor.execute(schedule, 1, 0)
    executor.close()
    assert threading.active_count() == before


def _later(op: object, dropped: SignalOp) -> bool:
    return isinstance(op, SignalOp) and op.flag == dropped.flag

"""Several processes that work off a list of tasks in order; one that hangs or fails is ended and replaced."""

from __future__ import annotations

import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from gpu_checks.report import Case, carry_out

LIMIT = 60.0  # seconds of one task, and of a worker's beginning
BEGIN = ("a worker begins", None)
SPAWN = multiprocessing.get_context("spawn")
Work = Callable[[int, Any], Case]


@dataclass
class Worker:
    """A process, the line to it, and what it is at."""

    number: int
    process: Any
    line: Connection
    task: tuple[str, Any] | None = None
    since: float = 0.0


def work_off(
    tasks: Sequence[tuple[str, Any]], work: Work, workers: int, deadline: float, limit: float = LIMIT
) -> Iterator[Case]:
    """The cases of named tasks, as they end; none is begun after the deadline, by the monotonic clock.

    work: called in a worker with its number and a task; it must be importable. A case that fails costs its worker.
    """
    waiting = deque(tasks)
    crew = [_start(number, work) for number in range(min(workers, len(tasks)))]
    try:
        while (waiting and time.monotonic() < deadline) or any(worker.task for worker in crew):
            for worker in crew:
                if worker.task is None and waiting and time.monotonic() < deadline:
                    worker.task, worker.since = waiting.popleft(), time.monotonic()
                    worker.line.send(worker.task)
            ready = wait([worker.line for worker in crew if worker.task], timeout=1.0)
            for place, worker in enumerate(crew):
                case = _answer(worker, worker.line in ready, LIMIT if worker.task is BEGIN else limit)
                if case is None:
                    continue
                begun, worker.task = worker.task is BEGIN, None
                if not case["ok"]:
                    _end(worker)
                    crew[place] = _start(worker.number, work)
                if not (begun and case["ok"]):
                    yield case
    finally:
        for worker in crew:
            _end(worker)


def _start(number: int, work: Work) -> Worker:
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=_serve, args=(there, number, work), daemon=True)
    process.start()
    there.close()
    return Worker(number, process, here, BEGIN, time.monotonic())


def _end(worker: Worker) -> None:
    worker.process.kill()
    worker.process.join()
    worker.line.close()


def _answer(worker: Worker, ready: bool, limit: float) -> Case | None:
    """What came of a worker's task; None while it is at it."""
    if worker.task is None:
        return None
    seconds = round(time.monotonic() - worker.since, 3)
    failed = {"case": worker.task[0], "ok": False, "wall_s": seconds}
    if ready:
        try:
            found: Case = worker.line.recv()
            return found
        except EOFError:
            worker.process.join()
            return {**failed, "error": f"its process died with {worker.process.exitcode}"}
    return {**failed, "error": f"not done after {limit:g} s"} if seconds > limit else None


def _serve(line: Connection, number: int, work: Work) -> None:
    """The life of a worker."""
    line.send(carry_out(BEGIN[0], dict))
    while True:
        try:
            name, task = line.recv()
        except EOFError:
            return
        line.send(carry_out(name, lambda task=task: work(number, task)))

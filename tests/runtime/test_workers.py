"""Threads that work off jobs: in order, ended by whoever has them, of use after the main thread."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future

import pytest

from peergrid.runtime.workers import Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(1, "test")
    yield made
    made.close()


def test_jobs_in_order_with_what_they_return_or_raise(workers: Workers) -> None:
    done: list[int] = []
    found = [workers.submit(lambda n: done.append(n) or n, n) for n in range(50)]  # type: ignore[func-returns-value]
    assert [future.result() for future in found] == done == list(range(50))
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result()
    assert workers.submit(threading.current_thread).result().name == "test"


def test_as_many_threads_as_allowed() -> None:
    workers, barrier = Workers(3, "test"), threading.Barrier(3)
    places = {future.result() for future in [workers.submit(barrier.wait, 10) for _ in range(3)]}
    assert places == {0, 1, 2}
    before = threading.active_count()
    workers.close()
    assert threading.active_count() == before - 3


def test_the_end_waits_for_what_is_being_done_alone(workers: Workers) -> None:
    begun, go = threading.Event(), threading.Event()

    def job() -> int:
        begun.set()
        go.wait()
        return 7

    first, second = workers.submit(job), workers.submit(job)
    begun.wait()
    closing = threading.Thread(target=workers.close)
    closing.start()
    with pytest.raises(CancelledError):
        second.result()
    go.set()
    closing.join()
    assert first.result() == 7
    with pytest.raises(RuntimeError, match="any more"):
        workers.submit(job)
    workers.close()


def test_the_end_may_come_from_within(workers: Workers) -> None:
    workers.submit(workers.close).result()


def test_a_job_may_ask_for_more_while_the_end_waits_for_it(workers: Workers) -> None:
    begun, closing = threading.Event(), threading.Thread(target=workers.close)

    def job() -> None:
        begun.set()
        while not workers._closed:
            pass
        workers.submit(int)

    future = workers.submit(job)
    begun.wait()
    closing.start()
    with pytest.raises(RuntimeError, match="any more"):
        future.result(10)
    closing.join()


def test_what_is_forgotten_leaves_no_thread() -> None:
    before = threading.active_count()
    workers = Workers(2, "test")
    found: list[Future[int]] = [workers.submit(int) for _ in range(2)]
    assert [future.result() for future in found] == [0, 0]
    del workers
    gc.collect()
    assert threading.active_count() == before


LATE = """
import threading, time
from peergrid.runtime.workers import Workers

def late():
    threading.main_thread().join()
    print(Workers(2, "late").submit(int).result())

threading.Thread(target=late).start()
"""
FORGOTTEN = """
import threading, time
from peergrid.runtime.workers import Workers

workers, begun = Workers(1, "forgotten"), threading.Event()
for n in range(1000):
    workers.submit(lambda n: (begun.set(), time.sleep(0.2), print(n, flush=True)), n)
begun.wait()
"""


IMPATIENT = """
import signal, threading, time
from peergrid.runtime.workers import Workers

def job():
    begun.set()
    time.sleep(0.2)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    time.sleep(0.5)
    print("done", flush=True)

workers, begun = Workers(1, "compiler"), threading.Event()
workers.submit(job)
begun.wait()
try:
    workers.close()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    ("program", "printed"), [(LATE, b"0\n"), (FORGOTTEN, b"0\n"), (IMPATIENT, b"interrupted\ndone\n")]
)
def test_programs_that_end(program: str, printed: bytes) -> None:
    """Other threads are served after the main one; what is not begun does not hold up the end, what is begun does."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert done.stdout.replace(b"\r", b"") == printed
    assert not done.stderr

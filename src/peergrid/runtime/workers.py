"""Threads that work off jobs in the order in which they are given.

The pools of `concurrent.futures` refuse jobs once the main thread has ended, though other threads of a program go on,
and a program ends only when all that was given to them is done.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple[Future[Any], Callable[[], Any]]


class Workers:
    """At most so many threads, the next one begun with a job. `close` passes over what is not begun, and waits for the
    rest; what is left open is closed at the program's end, or when nobody has it any more.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._giving, self._closed = threading.Lock(), False
        self._end = weakref.finalize(self, _end, self._jobs, self._threads)

    def submit(self, job: Callable[..., T], *args: Any) -> Future[T]:
        """What a job will return or raise. Raises RuntimeError after the end."""
        future = Future[T]()
        with self._giving:
            if self._closed:
                raise RuntimeError(f"Nothing is done any more by '{self._name}'.")
            self._jobs.put((future, partial(job, *args)))
            if len(self._threads) < self._most:
                thread = threading.Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Begin nothing more, and wait for what is being done."""
        with self._giving:
            self._closed = True
        self._end()


def _work(jobs: SimpleQueue[Job | None]) -> None:
    while (given := jobs.get()) is not None:
        future, job = given
        if future.set_running_or_notify_cancel():
            try:
                found = job()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(found)
                del found
        del given, future, job  # nothing is kept while it waits for the next


def _end(jobs: SimpleQueue[Job | None], threads: list[threading.Thread]) -> None:
    with suppress(Empty):
        while True:
            if (given := jobs.get_nowait()) is not None and given[0].cancel():
                given[0].set_running_or_notify_cancel()
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        if thread is not threading.current_thread():  # which the garbage collector may have chosen to close from
            thread.join()

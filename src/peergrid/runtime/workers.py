"""Threads that run jobs in the order of submission.

The pools of `concurrent.futures` refuse jobs once the main thread has ended, even if other threads continue, and a
program ends only when all their jobs are done.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
Job = tuple[Future[Any], Callable[[], Any]]


@dataclass(frozen=True)
class _Line:
    """The waiting jobs, the threads that take them, and the job of each: the state that threads share with their
    `Workers`.
    """

    jobs: SimpleQueue[Job | None] = field(default_factory=SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)
    doing: dict[threading.Thread, Future[Any]] = field(default_factory=dict)

    def work(self) -> None:
        thread = threading.current_thread()
        while (given := self.jobs.get()) is not None:
            future, job = given
            self.doing[thread] = future
            if future.set_running_or_notify_cancel():
                try:
                    found = job()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(found)
                    del found
            del given, future, job, self.doing[thread]  # keep no reference to a job while waiting for the next

    def end(self) -> None:
        """Pass over what is not begun and wait for the rest, though not for the thread that asks: the garbage collector
        may do so from any. `join` alone, once cut short by Ctrl-C, would not wait again.
        """
        with suppress(Empty):
            while True:
                if (given := self.jobs.get_nowait()) is not None and given[0].cancel():
                    given[0].set_running_or_notify_cancel()
        here = threading.current_thread()
        others = [thread for thread in self.threads if thread is not here and thread.is_alive()]  # a fork has none
        for _ in self.threads:
            self.jobs.put(None)
        wait([future for thread, future in tuple(self.doing.items()) if thread in others])
        for thread in others:
            thread.join()


class Workers:
    """At most so many threads, the next one begun with a job. `close` passes over what is not begun, and waits for the
    rest; what is left open is closed when nobody has it any more, or at the program's end, which never comes while a
    job is being done: leaving a library in the midst of its work would end the program with a fault.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._line = _Line()
        self._giving, self._closed = threading.Lock(), False
        weakref.finalize(self, self._line.end)

    def submit(self, job: Callable[..., T], *args: Any) -> Future[T]:
        """The future of a job. Raises RuntimeError after the end."""
        future = Future[T]()
        with self._giving:
            if self._closed:
                raise RuntimeError(f"Nothing is done any more by '{self._name}'.")
            self._line.jobs.put((future, partial(job, *args)))
            if len(self._line.threads) < self._most:
                thread = threading.Thread(target=self._line.work, name=self._name, daemon=True)
                self._line.threads.append(thread)
                thread.start()
        return future

    def close(self) -> None:
        """Begin no more jobs, and wait for the running ones."""
        with self._giving:
            self._closed = True
        self._line.end()

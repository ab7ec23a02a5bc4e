"""Waits of threads with a timeout, which reports the operation that is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from peergrid.errors import DeviceFault
from peergrid.schedule.ops import Flag, Op, SignalWait, describe

SOON = 3e-4  # seconds for which a thread polls without pauses
PAUSE = 2e-5  # seconds between two polls then
SHARE, LONG = 0.25, 1e-3  # while others compute: a share of the time waited so far, and seconds at most
TICK = 0.05  # seconds between two looks at the abort flag and the clock

Token = threading.Event
"""Set once, when the point of a queue that an event was recorded at has been passed."""


class Barrier:
    """A barrier for a number of threads; see `Waits.pass_barrier`."""

    def __init__(self, parties: int) -> None:
        self.parties, self.arrived, self.passed = parties, 0, 0
        self.changed = threading.Condition()


class Aborted(Exception):
    """Another thread failed; this one stops quietly."""


class Waits:
    """Flags, the abort switch and the clock shared by all threads of an executor."""

    def __init__(self, timeout: float) -> None:
        self.aborted = False
        self._error: BaseException | None = None
        self._timeout = timeout
        self._last_progress = time.monotonic()
        self._changed = threading.Condition()
        self._flags: dict[Flag, int] = {}
        self._settled: dict[Flag, int] = {}
        self._waiting: dict[int, tuple[float, Op]] = {}
        self._computing = 0

    def progress(self) -> None:
        self._last_progress = time.monotonic()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """In the block a computation makes progress, however long it takes."""
        with self._changed:
            self._computing += 1
        try:
            yield
        finally:
            with self._changed:
                self._computing -= 1
            self.progress()

    def abort(self, error: BaseException) -> None:
        """Keep the first error and wake everybody."""
        with self._changed:
            if self._error is None:
                self._error = error
            self.aborted = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Aborted if another thread failed."""
        if self.aborted:
            raise Aborted

    def reraise(self) -> None:
        if self._error is not None:
            raise self._error

    def wait(self, token: Token, op: Op | None) -> None:
        """Wait until the token is set."""
        with self._noted(op):
            while not token.wait(TICK):
                self._check(op)

    def poll(self, ready: Callable[[], bool], op: Op) -> None:
        """Poll until the answer is true, less often if polling would slow down computations."""
        began = time.monotonic()
        with self._noted(op):
            while not ready():
                self._check(op)
                waited = time.monotonic() - began
                time.sleep(min(waited * SHARE, LONG) if self._computing else PAUSE if waited > SOON else 0)

    def pass_barrier(self, barrier: Barrier, op: Op) -> None:
        """Wait until all threads of a barrier have arrived."""
        self.check()
        with self._noted(op), barrier.changed:
            number = barrier.passed
            barrier.arrived += 1
            if barrier.arrived == barrier.parties:
                barrier.arrived, barrier.passed = 0, number + 1
                barrier.changed.notify_all()
            while barrier.passed == number:
                barrier.changed.wait(TICK)
                self._check(op)

    def set_flag(self, flag: Flag, value: int) -> None:
        with self._changed:
            self._flags[flag] = self._settled.get(flag, 0) + value
            self._changed.notify_all()

    def await_flag(self, op: SignalWait, value: int) -> int:
        """Wait until the flag has reached the value; returns the flag's value, which may be larger."""
        settled = self._settled.get(op.flag, 0)
        wanted = settled + value
        with self._noted(op), self._changed:
            while self._flags.get(op.flag, 0) < wanted:
                self._changed.wait(TICK)
                self._check(op)
            return self._flags.get(op.flag, 0) - settled

    def settle(self, increments: dict[Flag, int], times: int) -> None:
        """After `times` iterations of a schedule, let later flag values count from here."""
        for flag, count in increments.items():
            self._settled[flag] = self._settled.get(flag, 0) + count * times

    def _check(self, op: Op | None) -> None:
        self.check()
        moving = op is None or self._computing
        if not moving and time.monotonic() - self._last_progress > self._timeout:
            raise self._fault()

    @contextmanager
    def _noted(self, op: Op | None) -> Iterator[None]:
        """In the block the thread is registered as waiting for the operation."""
        me = threading.get_ident()
        if op is not None:
            self._waiting[me] = (time.monotonic(), op)
        try:
            yield
        finally:
            self._waiting.pop(me, None)

    def _fault(self) -> DeviceFault:
        """The error of the wait that began first, on which later ones depend."""
        _, op = min(self._waiting.values(), key=lambda entry: entry[0])
        return DeviceFault(
            f"Nothing moved for {self._timeout:g} s: '{describe(op)}' is still waiting; "
            "run 'peergrid verify' on the model to see which order is missing."
        )

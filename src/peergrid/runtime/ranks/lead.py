"""One rank decides for all: whatever it does with its executor the others do too, in the same order.

For programs that pause by the clock, answer signals and write files, as the command line does: they run on rank 0,
which lets the others know that it is still there while it does what takes long.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from peergrid.errors import DeviceFault
from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.executor import Views
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.ranks import Ranks
from peergrid.schedule import Schedule
from peergrid.schedule.timeline import Span
from peergrid.stencil.reduction import Series

STILL_HERE = "still here"
BEATS = 10  # in the time after which others no longer wait


class LeadingExecutor:
    """The executor of rank 0, whose calls `follow` repeats on the others. A schedule is sent once, later its number
    only.
    """

    def __init__(self, inner: RankedExecutor, ranks: Ranks) -> None:
        self.layout = inner.layout
        self._inner, self._ranks = inner, ranks
        self._numbers: dict[Schedule, int] = {}
        self._lock = threading.RLock()
        self._closed, self._failed = threading.Event(), False
        if shared_by_threads():
            threading.Thread(target=self._beat, name="still here", daemon=True).start()

    @property
    def notes(self) -> Sequence[str]:
        return self._inner.notes

    @property
    def host_seconds(self) -> float | None:
        return self._inner.host_seconds

    def carried_out(self, schedule: Schedule) -> Schedule:
        self.prepare(schedule)
        return self._inner.carried_out(schedule)

    def expect(self, schedules: Sequence[Schedule]) -> None:
        self._inner.expect(schedules)

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        with self._led("load", name, values, slot):
            self._inner.load(name, values, slot)

    def prepare(self, schedule: Schedule) -> None:
        if schedule not in self._numbers:
            self._numbers[schedule] = len(self._numbers)
            with self._led("prepare", schedule):
                self._inner.prepare(schedule)

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        self.prepare(schedule)
        with self._led("execute", self._numbers[schedule], times, step):
            self._inner.execute(schedule, times, step)

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        return self._inner.trace(schedule, step)

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        with self._led("gather", name, slot, box):
            return self._inner.gather(name, slot, box)

    def views(self, name: str, slot: int) -> Views:
        return self._inner.views(name, slot)

    def gather_own(self, name: str, slot: int, box: Box) -> Array:
        return self._inner.gather_own(name, slot, box)

    def traces(self) -> Array:
        with self._led("traces"):
            return self._inner.traces()

    def norms(self, steps: int) -> Array:
        with self._led("norms", steps):
            return self._inner.norms(steps)

    def reductions(self, steps: int) -> Mapping[str, Series]:
        with self._led("reductions", steps):
            return self._inner.reductions(steps)

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        with self._led("first_nonfinite", name, slot):
            return self._inner.first_nonfinite(name, slot)

    def busy_seconds(self) -> tuple[float, ...] | None:
        with self._led("busy_seconds"):
            return self._inner.busy_seconds()

    def close(self) -> None:
        if not self._closed.is_set():
            with self._led("close"):
                self._closed.set()
                self._inner.close()
                if not self._failed:  # else some may never come
                    self._ranks.gathered()  # MPI's own end would wait without a limit

    @contextmanager
    def _led(self, name: str, *arguments: object) -> Iterator[None]:
        """Have the others make the call that is made within."""
        with self._lock:
            try:
                self._ranks.decided(lambda: (name, arguments, self._failed))
                yield
            except BaseException:
                self._failed = True
                raise

    def _beat(self) -> None:
        """Now and then say that this rank is still there; where nobody hears it, the next call finds that out."""
        with suppress(DeviceFault):
            while not self._closed.wait(self._ranks.timeout / BEATS):
                if self._lock.acquire(blocking=False):
                    try:
                        if not self._closed.is_set():
                            self._ranks.decided(lambda: (STILL_HERE, (), False))
                    finally:
                        self._lock.release()


def follow(executor: RankedExecutor, ranks: Ranks) -> None:
    """Do as rank 0 does, until it closes its executor."""
    schedules: list[Schedule] = []
    while True:
        name, arguments, failed = ranks.decided(nothing)
        if name == STILL_HERE:
            continue
        if name == "prepare":
            schedules += arguments
        elif name == "execute":
            arguments = (schedules[arguments[0]], *arguments[1:])
        getattr(executor, name)(*arguments)
        if name == "close":
            if not failed:
                ranks.gathered()
            return


def nothing() -> tuple[str, tuple[Any, ...], bool]:
    """The call that other ranks than the first decide on."""
    raise AssertionError("rank 0 leads")


def shared_by_threads() -> bool:
    """True where several threads, one at a time, may call MPI."""
    from mpi4py import MPI

    return bool(MPI.Query_thread() >= MPI.THREAD_SERIALIZED)

"""One rank decides for all: whatever it does with its executor the others do too, in the same order.

For programs that pause by the clock, answer signals and write files, as the command line does: they run on rank 0.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.executor import Views
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.ranks import POLL, SOON, Communicator
from peergrid.schedule import Schedule
from peergrid.schedule.timeline import Span
from peergrid.stencil.reduction import Series


class LeadingExecutor:
    """The executor of rank 0, whose calls `follow` repeats on the others. A schedule is told once, later by number."""

    def __init__(self, inner: RankedExecutor, comm: Communicator) -> None:
        self.layout = inner.layout
        self._inner, self._comm = inner, comm
        self._numbers: dict[Schedule, int] = {}
        self._closed = False

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
        self._say("load", name, values, slot)
        self._inner.load(name, values, slot)

    def prepare(self, schedule: Schedule) -> None:
        if schedule not in self._numbers:
            self._numbers[schedule] = len(self._numbers)
            self._say("prepare", schedule)
            self._inner.prepare(schedule)

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        self.prepare(schedule)
        self._say("execute", self._numbers[schedule], times, step)
        self._inner.execute(schedule, times, step)

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        return self._inner.trace(schedule, step)

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        self._say("gather", name, slot, box)
        return self._inner.gather(name, slot, box)

    def views(self, name: str, slot: int) -> Views:
        return self._inner.views(name, slot)

    def gather_own(self, name: str, slot: int, box: Box) -> Array:
        return self._inner.gather_own(name, slot, box)

    def traces(self) -> Array:
        self._say("traces")
        return self._inner.traces()

    def norms(self, steps: int) -> Array:
        self._say("norms", steps)
        return self._inner.norms(steps)

    def reductions(self, steps: int) -> Mapping[str, Series]:
        self._say("reductions", steps)
        return self._inner.reductions(steps)

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        self._say("first_nonfinite", name, slot)
        return self._inner.first_nonfinite(name, slot)

    def busy_seconds(self) -> tuple[float, ...] | None:
        self._say("busy_seconds")
        return self._inner.busy_seconds()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._say("close")
            self._inner.close()

    def _say(self, name: str, *arguments: object) -> None:
        self._comm.Ibcast(np.zeros(1, np.int8)).Wait()
        self._comm.bcast((name, arguments))


def _heard(comm: Communicator) -> tuple[str, tuple[Any, ...]]:
    """The next call of rank 0, which may write files for minutes meanwhile: nobody keeps a processor busy then."""
    request, began = comm.Ibcast(np.empty(1, np.int8)), time.monotonic()
    while not request.Test():
        time.sleep(POLL if time.monotonic() - began > SOON else 0)
    found: tuple[str, tuple[Any, ...]] = comm.bcast(None)
    return found


def follow(executor: RankedExecutor, comm: Communicator) -> None:
    """Do as rank 0 does, until it closes its executor."""
    schedules: list[Schedule] = []
    while True:
        name, arguments = _heard(comm)
        if name == "prepare":
            schedules += arguments
        elif name == "execute":
            arguments = (schedules[arguments[0]], *arguments[1:])
        getattr(executor, name)(*arguments)
        if name == "close":
            return

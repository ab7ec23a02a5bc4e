"""One schedule over the devices of several ranks, of which each carries out what its own devices do.

Every method is collective: all ranks call it, in the same order, with the same arguments, and all get the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.executor import Executor, Views
from peergrid.runtime.ranks.ranks import Ranks
from peergrid.schedule import Schedule
from peergrid.schedule.passes.ranks import of_rank, over_ranks
from peergrid.schedule.serialise import digest
from peergrid.schedule.timeline import Span
from peergrid.stencil.reduction import Series


class PartExecutor(Executor, Protocol):
    """The executor of one rank's devices, with the layout of all; fields and records are those that these have."""

    @property
    def recorded(self) -> Sequence[Sequence[int]]:
        """The receivers that each device records."""

    def merge(self, others: Callable[[object], list[Any]]) -> None:
        """After steps: put together what all ranks have part in; others: what they give for what is given."""


class RankedExecutor:
    """An `Executor` whose devices are those of all ranks; inner: of this rank's.

    divides: whether inner takes schedules of all ranks, and carries its own part out; else it gets that part.
    """

    def __init__(self, inner: PartExecutor, ranks: Ranks, *, divides: bool = False) -> None:
        self.layout = inner.layout
        self._inner, self._ranks, self._comm = inner, ranks, ranks.comm
        self._divides = divides
        self._parts: dict[Schedule, Schedule] = {}
        self._wholes: dict[Schedule, Schedule] = {}  # with messages, of all ranks

    @property
    def notes(self) -> Sequence[str]:
        return self._inner.notes

    @property
    def host_seconds(self) -> float | None:
        return self._inner.host_seconds

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        self._inner.load(name, values, slot)
        self._ranks.gathered()  # before then nobody may store into ghost cells here

    def expect(self, schedules: Sequence[Schedule]) -> None:
        self._inner.expect(schedules)

    def prepare(self, schedule: Schedule) -> None:
        self._inner.prepare(self._part(schedule))

    def carried_out(self, schedule: Schedule) -> Schedule:
        return self._inner.carried_out(schedule) if self._divides else self._over_ranks(schedule)

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        self._inner.execute(self._part(schedule), times, step)
        self._ranks.gathered()  # until then neighbours store into ghost cells here
        self._inner.merge(self._others)

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        raise UsageError("The timeline of a run is taken of one process, not of several ranks; start it without them.")

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        whole = self._inner.gather(name, slot, box)
        self._ranks.gathered()
        wanted = box or self.layout.problem.fields[name].box
        for device, rank in enumerate(self._ranks.of_device):
            owned = self.layout.partition.owned(device) & wanted
            if not owned.empty:
                part = np.ascontiguousarray(whole[owned.slices(wanted.lo)])
                self._ranks.finish(self._comm.Ibcast(part, root=rank))
                whole[owned.slices(wanted.lo)] = part
        return whole

    def views(self, name: str, slot: int) -> Views:
        return self._inner.views(name, slot)

    def gather_own(self, name: str, slot: int, box: Box) -> Array:
        """The values on a box of cells that a device of this rank owns; no other rank is asked."""
        return self._inner.gather(name, slot, box)

    def traces(self) -> Array:
        found = self._inner.traces().copy()
        mine = [number for device in self._ranks.mine for number in self._inner.recorded[device]]
        for part in self._ranks.allgather({number: found[number] for number in mine}):
            for number, values in part.items():
                found[number] = values
        return found

    def norms(self, steps: int) -> Array:
        return self._inner.norms(steps)

    def reductions(self, steps: int) -> Mapping[str, Series]:
        return self._inner.reductions(steps)

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        found = self._ranks.allgather(self._inner.first_nonfinite(name, slot))
        return next((place for place in found if place is not None), None)

    def busy_seconds(self) -> tuple[float, ...] | None:
        found = self._inner.busy_seconds()
        return None if found is None else tuple(map(max, zip(*self._ranks.allgather(found), strict=True)))

    def close(self) -> None:
        self._inner.close()

    def _others(self, value: object) -> list[Any]:
        """The values of the other ranks, in exchange for one of this."""
        return [other for rank, other in enumerate(self._ranks.allgather(value)) if rank != self._comm.rank]

    def _part(self, schedule: Schedule) -> Schedule:
        """The part of this rank in a schedule that all have built alike."""
        if schedule not in self._parts:
            self._ranks.same("the schedule", digest(schedule))
            if self._divides:
                self._parts[schedule] = schedule
            else:
                whole = self._over_ranks(schedule)
                self._parts[schedule] = of_rank(whole, self._ranks.of_device, self._comm.rank)
        return self._parts[schedule]

    def _over_ranks(self, schedule: Schedule) -> Schedule:
        if schedule not in self._wholes:
            self._wholes[schedule] = over_ranks(schedule, self._ranks.of_device)
        return self._wholes[schedule]

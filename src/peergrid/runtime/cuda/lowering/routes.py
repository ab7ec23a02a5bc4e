"""The route of each halo: the requested one if the devices allow it, else the next best, with the reason; if none is
requested, the one that costs less.

Copies cost a call each, and a queue comes late out of a copy engine; one kernel stores all halos that a device sends
together, but finds no room beside tiles that stay for a whole pass. There copies are hidden, unless hosts issue for
longer than GPUs compute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from peergrid.costs.machine import Machine
from peergrid.runtime.cuda.lowering.items import joint
from peergrid.runtime.cuda.lowering.transfer import Transfer, transfer_of
from peergrid.runtime.cuda.memory.blocks import BlockLayout
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Compute, Copy, Op, Record, Route, SignalOp, SignalWait, Wait, hosts_of
from peergrid.stencil.cost import minimal_bytes


@dataclass(frozen=True)
class Choice:
    """The selected route; `reason` is empty if it is the requested one."""

    route: Route
    reason: str = ""


@dataclass(frozen=True)
class Routes:
    """The routes of a schedule's halos.

    blocks: the memory of every device, by field; machine: what things cost; streamed: whether passes of one step are
    made by tiles that stay for all of it, as those of several are; reaches: whether a device can store into the memory
    of another.
    """

    schedule: Schedule
    layout: Layout
    blocks: Sequence[Mapping[str, BlockLayout]]
    machine: Machine
    streamed: bool
    reaches: Callable[[int, int], bool]

    def of(self, op: Copy) -> Choice:
        """The route that a copy takes."""
        return self._found[_ends(op)]

    @property
    def reasons(self) -> set[str]:
        """The reasons for which halos take other routes than the requested ones."""
        return {choice.reason for choice in self._found.values()} - {""}

    @cached_property
    def _found(self) -> dict[tuple[object, ...], Choice]:
        found: dict[tuple[object, ...], Choice] = {}
        for ops in _together(self.schedule.ops):
            stored = self._stored(ops)
            for op in ops:
                found.setdefault(_ends(op), self._choice(op, stored))
        return found

    def bytes_of(self, op: Copy) -> int:
        """The bytes in whose time a copy engine moves a halo."""
        if id(op) not in self._known:
            self._known[id(op)] = in_time_of(transfer_of(op, self.blocks), self.machine)
        return self._known[id(op)]

    @cached_property
    def _known(self) -> dict[int, int]:
        return {}

    @cached_property
    def stay(self) -> bool:
        """True where tiles stay for a whole pass, beside which no kernel finds room."""
        return self.streamed or max(self.layout.blocks) > 1

    def _choice(self, op: Copy, stored: bool) -> Choice:
        ends = op.source_device, op.target_device
        if op.route != "host" and not all(self.reaches(op.queue.device, end) for end in ends):
            return Choice("host", f"'{op.route}' needs peer access, which these devices do not have")
        free = self.schedule.options.within is None and op.route == "copy"
        within = ends[0] == ends[1]  # one kernel copies all of those between two passes
        return Choice("store" if free and (within or stored) else op.route)

    def _stored(self, ops: Sequence[Copy]) -> bool:
        """True where storing the halos that go together costs less than copying them; `serial` sends one by one."""
        moved = [transfer_of(op, self.blocks) for op in ops if op.source_device != op.target_device]
        in_pieces = any(one.counts and one.run < self.machine.piece for one in moved)
        if not moved or not (in_pieces or self._in_the_way):
            return False
        return by_stores(self.machine, moved) <= by_copies(self.machine, moved)

    @cached_property
    def _in_the_way(self) -> bool:
        """False where copies travel while tiles compute beside which no kernel finds room, and under `serial`."""
        if self.schedule.options.strategy == "serial":
            return False
        return not self.stay or issue_seconds(self.schedule, self.machine) >= work_seconds(self.layout, self.machine)


def by_copies(machine: Machine, moved: Sequence[Transfer]) -> float:
    """Seconds of a host and a queue for copies one after the other."""
    each = (machine.calls.copy + machine.copy.seconds(in_time_of(one, machine)) for one in moved)
    return machine.delays.engine + sum(each)


def in_time_of(moved: Transfer, machine: Machine) -> int:
    """The bytes in whose time a copy engine moves a halo: what is shorter than a piece counts as one."""
    return moved.bytes // moved.run * max(moved.run, machine.piece) if moved.counts else moved.bytes


def by_stores(machine: Machine, moved: Sequence[Transfer]) -> float:
    """The same for one kernel that stores all."""
    seconds = machine.store.seconds(sum(one.bytes for one in moved))
    return machine.calls.launch + machine.delays.start + seconds


def issue_seconds(schedule: Schedule, machine: Machine) -> float:
    """Seconds for which the busiest host issues an iteration, a call for operations that go together."""
    calls, spent = machine.calls, defaultdict[int, float](float)
    seconds: dict[type[Op], float] = {Compute: calls.launch, Copy: calls.copy, Record: calls.event, Wait: calls.event}
    seconds |= dict.fromkeys((SignalOp, SignalWait), calls.words)
    for _, part in groupby(enumerate(schedule.ops), key=lambda numbered: joint(*numbered)):
        _, op = next(part)
        for host in hosts_of(op):
            spent[host] += seconds.get(type(op), 0.0)
    return max(spent.values(), default=0.0) * (calls.beside if len(spent) > 1 else 1.0)


def work_seconds(layout: Layout, machine: Machine) -> float:
    """Seconds for which memory moves what the largest device's passes have to, between two exchanges."""
    partition, whole = layout.partition, layout.problem.grid.box.size
    share = max(partition.owned(device).size for device in range(layout.devices)) / whole
    return len(layout.blocks) * share * minimal_bytes(layout.problem) / machine.bandwidth


def _together(ops: Iterable[Op]) -> Iterable[list[Copy]]:
    """The copies of a queue that follow one another."""
    for key, part in groupby(ops, key=lambda op: (op.queue, op.slot) if isinstance(op, Copy) else None):
        if key is not None:
            yield [op for op in part if isinstance(op, Copy)]


def _ends(op: Copy) -> tuple[object, ...]:
    return op.source_device, op.source_box, op.target_device, op.target_box, op.field

"""The log of kernels with fused exchange, from the notes of their tiles in one order.

An operation of `schedule.passes.fused` stands for a class of tiles. It begins with the first of them and ends with the
last: a class has waited when the first tile has, has signalled when the last one does, and computes from the first
tile's beginning to the last one's end. If that is no order in which a queue can run operations, tiles did not do what
their class should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from peergrid.grid import Box
from peergrid.runtime.trace.noted import completed
from peergrid.runtime.trace.recorder import Entry, Position, Recorded
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.faults import Fault
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Op,
    Queue,
    Record,
    SignalOp,
    SignalWait,
    Wait,
    describe,
    queues_of,
)
from peergrid.schedule.passes.fused import NAMES

AWAITED, BEGUN, COMPUTED, SIGNALLED, ARRIVED, MET = range(-1, -7, -1)
"""The events of a tile, or for the last two of a block: awaited the neighbour, begun, computed, is about to signal to
the neighbour, is about to come to the device's barrier; is past it.
"""


class TileNote(NamedTuple):
    """A note: its place in the order, what was done, by a tile of a device that has a box, on which side, in which pass
    of the run; seen: the value of the neighbour's counter, in passes.
    """

    place: int
    what: int
    device: int
    side: int
    number: int
    seen: int
    box: Box


def recorded_tiles(layout: Layout, schedule: Schedule, times: int, notes: Sequence[TileNote]) -> Recorded:
    """The log of iterations of a schedule with fused exchange."""
    made = _Classes(layout, schedule, times, notes)
    return Recorded(completed([schedule] * times, made.entries()), tuple(made.faults()))


Span = tuple[float, float]
"""The places at which an operation begins and ends in the order of notes."""


@dataclass(frozen=True)
class _Classes:
    layout: Layout
    schedule: Schedule
    times: int
    notes: Sequence[TileNote]

    def entries(self) -> Iterator[Entry]:
        """Beginnings and ends in queues, in order, without operations that have no notes."""
        found = list[tuple[float, int, Entry]]()
        for position, op, span in self._spans:
            saw = self._saw(position, op) if isinstance(op, SignalWait) else None
            for queue in queues_of(op):
                for place, entry in zip(
                    span, (Entry("start", queue, position, None), Entry("finish", queue, position, saw)), strict=True
                ):
                    found.append((place, len(found), entry))
        yield from (entry for _, _, entry in sorted(found))

    def faults(self) -> Iterator[Fault]:
        """Faults: overlapping operations of a queue, tiles with missing work, and cells of other tiles."""
        last: dict[Queue, tuple[float, Op]] = {}
        for (iteration, _), op, (begin, end) in self._spans:
            for queue in queues_of(op):
                until, before = last.get(queue, (-inf, op))
                if begin < until:
                    text = f"{describe(op)} of iteration {iteration} begins before {describe(before)} ends in {queue}."
                    yield Fault("undetermined", text, (before, op))
                last[queue] = max(until, end), op
        yield from self._incomplete()

    def _incomplete(self) -> Iterator[Fault]:
        for (device, number), notes in self._passes.items():
            begun, computed = ({note.box for note in notes if note.what == what} for what in (BEGUN, COMPUTED))
            owned = self.layout.partition.owned(device)
            if begun != computed or not all(owned.covers(box) for box in computed) or _any_left(owned, computed):
                yield Fault(
                    "undetermined", f"Tiles of device {device} make other cells than its own in pass {number}.", ()
                )
            for side in (0, 1):
                awaited, signalled = (
                    sorted(n.box.lo for n in notes if n.what == what and n.side == side)
                    for what in (AWAITED, SIGNALLED)
                )
                if awaited != signalled:
                    where = f"at the {NAMES[side]} end of device {device}"
                    yield Fault("undetermined", f"Tiles {where} await and signal differently in pass {number}.", ())

    @cached_property
    def _spans(self) -> list[tuple[Position, Op, Span]]:
        """All operations that have notes, in the order of the schedule."""
        found = []
        for iteration in range(self.times):
            number_of: dict[int, int] = {}
            for n, op in enumerate(self.schedule.ops):
                device = queues_of(op)[0].device
                if isinstance(op, SignalWait):
                    number_of[device] = op.value
                elif isinstance(op, Compute):
                    number_of[device] = self._levels.index(op.level)
                span = self._span(op, device, iteration * len(self._levels) + number_of[device])
                if span is not None:
                    found.append(((iteration, n), op, span))
        return found

    @cached_property
    def _levels(self) -> list[int]:
        """The level of each pass of an iteration."""
        return sorted({op.level for op in self.schedule.ops if isinstance(op, Compute)})

    @cached_property
    def _passes(self) -> dict[tuple[int, int], list[TileNote]]:
        found: dict[tuple[int, int], list[TileNote]] = {}
        for note in self.notes:
            found.setdefault((note.device, note.number), []).append(note)
        return found

    def _places(self, device: int, number: int, what: int, fits: Callable[[TileNote], bool]) -> list[int]:
        return [note.place for note in self._passes.get((device, number), ()) if note.what == what and fits(note)]

    def _at(self, device: int, number: int, what: int, side: int, pick: Callable[[list[int]], int]) -> Span | None:
        """The first or the last position at which tiles of a side did something."""
        places = self._places(device, number, what, lambda note: note.side == side)
        return (pick(places), pick(places)) if places else None

    def _span(self, op: Op, device: int, number: int) -> Span | None:
        """The place of an operation: none without notes."""
        match op:
            case SignalWait():
                return self._at(device, number, AWAITED, _side(op.queue), min)
            case Copy() | SignalOp():
                return self._at(device, number, SIGNALLED, _side(op.queue), max)
            case Record() | Wait() if op.queue.name.endswith("halo"):
                return self._at(device, number, SIGNALLED, _side(op.queue), max)
            case Compute():
                return self.computed(op, device, number)
            case Record():
                return self.came(op, device, number)
            case Wait():
                return self.met(device, number)
            case DeviceBarrier():
                return self.ended(device, number)
        raise ValueError(f"Fused kernels have no operation {describe(op)}.")

    def computed(self, op: Compute, device: int, number: int) -> Span | None:
        begins, ends = (
            self._places(device, number, what, lambda note: note.box.overlaps(op.box)) for what in (BEGUN, COMPUTED)
        )
        return (min(begins), max(ends)) if begins and ends else None

    def ended(self, device: int, number: int) -> Span | None:
        """Between all notes of a pass and those of the next: the ends of kernels."""
        here, after = (self._passes.get((device, n), ()) for n in (number, number + 1))
        last = max((note.place for note in here), default=None)
        return None if last is None else (last, min((note.place - 0.5 for note in after), default=inf))

    def came(self, op: Record, device: int, number: int) -> Span | None:
        """The tiles of a class are computed."""
        computes = (other for other in self.schedule.ops if isinstance(other, Compute) and other.queue == op.queue)
        mine = next(other.box for other in computes if other.level == self._levels[number % len(self._levels)])
        places = self._places(device, number, COMPUTED, lambda note: note.box.overlaps(mine))
        return (max(places), max(places)) if places else None

    def met(self, device: int, number: int) -> Span:
        """The first block that is past the barrier; at the end of a kernel there is none."""
        places = self._places(device, number + 1, MET, lambda note: True)
        return (min(places), min(places)) if places else (inf, inf)

    def _saw(self, position: Position, op: SignalWait) -> Position | None:
        """The signal that the first tile saw: the neighbour's last one so far."""
        number = position[0] * len(self._levels) + op.value
        seen = min(
            (n.seen for n in self._passes[op.queue.device, number] if n.what == AWAITED and n.side == _side(op.queue)),
        )
        if seen < 1:
            return None
        iteration, value = divmod(seen - 1, len(self._levels))
        found = (
            n for n, o in enumerate(self.schedule.ops)
            if isinstance(o, SignalOp) and o.flag == op.flag and o.value == value + 1
        )  # fmt: skip
        return iteration, next(found)


def _any_left(owned: Box, boxes: Iterable[Box]) -> bool:
    """A test for cells that are in none of the boxes: these may overlap."""
    missing = np.ones(owned.shape, np.bool_)
    for box in boxes:
        missing[box.slices(owned.lo)] = False
    return bool(missing.any())


def _side(queue: Queue) -> int:
    return NAMES.index(queue.name.split()[0])

"""The `persistent` strategy fused: one cooperative kernel on each device makes the passes of many turns.

No host works between passes: blocks of a device meet in its memory, devices await each other's rims (see
`codegen.cuda.linked.persistent`). What the schedule says of copies and barriers happens inside the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.program import Launch
from peergrid.codegen.cuda.linked.persistent import TURNS, PersistentKernel, Tables
from peergrid.codegen.cuda.suited import resident
from peergrid.grid import Box
from peergrid.runtime.cuda.linked.chain import PASSED, Chain, offset, passes
from peergrid.runtime.cuda.lowering.duration import AT_ONCE
from peergrid.runtime.cuda.lowering.kernels import UNFIT, kernels_of
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.lowering.station import Station
from peergrid.runtime.cuda.lowering.sweeps import SeveralSteps, Start
from peergrid.runtime.cuda.tapes.tape import Patch, TapeWriter
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Compute, Copy, DeviceBarrier, Flag, Queue

MET = Flag(0, "passes of persistent kernels")
MOST_PASSES = 4096  # in one launch


@dataclass(frozen=True)
class Repeated(Lowered):
    """One turn of a schedule, and a way to make several (at most `most`) at once."""

    most: int
    together: Callable[[int], Lowered]


def replays(lowered: Lowered, times: int) -> Iterator[tuple[Lowered, int]]:
    """What to replay, and how often, for so many turns."""
    if not isinstance(lowered, Repeated):
        yield lowered, times
        return
    whole, rest = divmod(times, lowered.most)
    for turns, count in ((lowered.most, whole), (rest, 1)):
        if turns and count:
            yield lowered.together(turns), count


def lower_persistent(station: Station, schedule: Schedule) -> Lowered | str:
    """One launch on each device for many turns of a schedule; else why it is queue-wise (empty: as expected)."""
    kernel = kernels_of(station).cooperative(schedule)
    if isinstance(kernel, str):
        return kernel
    room = _room(station, kernel)
    if not all(room):
        return UNFIT
    found = _row(station, schedule, kernel, room)
    one, together = found.lowered(1), lru_cache(maxsize=16)(found.lowered)
    return Repeated(one.schedule, one.tapes, one.queues, one.choices, one.raised, found.most, together)


def _boxes(station: Station) -> list[Box]:
    """What each device owns."""
    return [station.layout.partition.owned(device) for device in range(station.layout.devices)]


def _room(station: Station, kernel: PersistentKernel) -> list[int]:
    """How many blocks each device runs at once; those that share a GPU share its room.

    No more than the kernel was chosen for: a compiler that leaves registers for a third block makes nothing faster.
    """
    ordinals, sweep = station.devices.ordinals, SeveralSteps(station, kernel.made)
    return [
        min(sweep.room(device, kernel.program) // ordinals.count(ordinals[device]), resident(kernel) * multiprocessors)
        for device, multiprocessors in enumerate(station.multiprocessors)
    ]


def _row(station: Station, schedule: Schedule, kernel: PersistentKernel, room: Sequence[int]) -> _Row:
    sweep, boxes = SeveralSteps(station, kernel.made), _boxes(station)
    tables, starts = list[Tables](), list[Start]()
    for device, box in enumerate(boxes):
        plain, edge, receivers = kernel.tables(box, room[device], station.memory.recorded[device])
        launch = Launch(kernel.program, edge if len(edge) else plain, receivers)
        blocks = min(room[device], kernel.units(plain, edge))
        tables.append((plain, edge, receivers))
        starts.append(replace(sweep.start(device, launch, box), blocks=blocks))
    rims = [kernel.rim(box, plain, edge) for box, (plain, edge, _) in zip(boxes, tables, strict=True)]
    return _Row(schedule, Chain(station, kernel.dtype, rims), tables, starts)


@dataclass(frozen=True, eq=False)
class _Row:
    """What each device launches: its tiles and its start."""

    schedule: Schedule
    chain: Chain
    tables: Sequence[Tables]
    starts: Sequence[Start]

    @property
    def most(self) -> int:
        """Turns in one launch."""
        turn = self.chain.station.step_seconds * self.schedule.steps
        return max(1, min(int(AT_ONCE / turn), MOST_PASSES // len(passes(self.schedule))))

    def lowered(self, turns: int) -> Lowered:
        """So many turns in one launch on each device."""
        tape, count = TapeWriter(), turns * len(passes(self.schedule))
        for device in range(len(self.starts)):
            self._write(tape, device, count)
        queues = tuple(self._queue(device) for device in range(len(self.starts)))
        schedule = replace(self.schedule, steps=turns * self.schedule.steps)
        return Lowered(schedule, {0: tape.finish()}, queues, frozenset(), {PASSED: count, MET: count})

    def _write(self, tape: TapeWriter, device: int, count: int) -> None:
        station, start, first = self.chain.station, self.starts[device], passes(self.schedule)[0]
        values, links, turns = start.values.copy(), self.chain.links(device, self._missing), self._turns(device, count)
        values["source"], values["target"] = first.source, first.target
        shared = station.devices.ordinals.count(station.devices.ordinals[device]) > 1
        address = tape.launch(
            self._missing(device, None),
            station.devices.context(device),
            station.entry("cuLaunchKernel" if shared else "cuLaunchCooperativeKernel"),
            start.function,
            station.devices.stream(self._queue(device)),
            start.blocks,
            start.threads,
            values,
            start.shared,
            (links, turns),
        )
        tape.patches += [
            Patch(address + offset(values, "step"), 0, None),
            Patch(int(links.ctypes.data) + offset(links, "passed"), 0, PASSED),
            Patch(int(turns.ctypes.data) + offset(turns, "met"), 0, MET),
        ]

    def _turns(self, device: int, count: int) -> NDArray[Any]:
        devices, (plain, edge, _) = self.chain.station.devices, self.tables[device]
        turns = np.zeros(1, TURNS)
        turns["plain"], turns["plain_count"] = devices.constant(device, plain), len(plain)
        turns["edge"], turns["edge_count"] = devices.constant(device, edge), len(edge)
        turns["passes"], turns["arrived"] = count, self.chain.station.flag(Flag(device, MET.name))
        return turns

    def _queue(self, device: int) -> Queue:
        return next(op.queue for op in self.schedule.ops if isinstance(op, Compute) and op.device == device)

    def _missing(self, device: int, source: int | None) -> int:
        """The schedule's word for what a device waits for: a halo from another, or its own blocks at the barrier.

        Where halos go one way alone, the barrier tells that they may be overwritten.
        """
        ops = self.schedule.ops
        halos = (
            n for n, op in enumerate(ops)
            if isinstance(op, Copy) and (op.source_device, op.target_device) == (source, device)
        )  # fmt: skip
        return next(halos, next(n for n, op in enumerate(ops) if isinstance(op, DeviceBarrier)))

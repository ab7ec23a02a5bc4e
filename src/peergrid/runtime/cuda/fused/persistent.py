"""The `persistent` strategy fused: one cooperative kernel on each device makes the passes of many iterations.

No host works between passes: blocks of a device use a barrier in its memory, devices await each other's boundary tiles
(see `codegen.cuda.fused.persistent`). What `schedule.passes.fused` made of the schedule happens inside the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.program import Launch
from peergrid.codegen.cuda.fused.persistent import PASSES, PersistentKernel
from peergrid.codegen.cuda.persistent_choice import resident
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.fused.chain import Chain, passed
from peergrid.runtime.cuda.lowering.device_tiles import tiles_on
from peergrid.runtime.cuda.lowering.duration import IN_FLIGHT_SECONDS
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import UNFIT
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Compute, Flag, Queue, Wait

MANY = passed("persistent")
MET = Flag(0, "passes of persistent kernels")


@dataclass(frozen=True)
class Repeated(Lowered):
    """One iteration of a schedule, and a way to make several (at most `most`) in one launch."""

    most: int
    together: Callable[[int], Lowered]


def replays(lowered: Lowered, times: int) -> Iterator[tuple[Lowered, int]]:
    """The iterations to replay, and how often, for so many iterations."""
    if not isinstance(lowered, Repeated):
        yield lowered, times
        return
    whole, rest = divmod(times, lowered.most)
    for iterations, count in ((lowered.most, whole), (rest, 1)):
        if iterations and count:
            yield lowered.together(iterations), count


def lower_persistent(
    execution: ExecutionContext, schedule: Schedule, kernel: PersistentKernel, notes: int = 0
) -> Lowered | str:
    """One launch on each device for many iterations of a schedule (see `fuse_steps`); else the reason against it.

    notes: the address of a recorded run's list.
    """
    kernel = replace(kernel, recorded=bool(notes))
    room = _room(execution, kernel)
    if not all(room):
        return UNFIT
    found = _chain(execution, schedule, kernel, room, notes)
    one, together = found.lowered(1), lru_cache(maxsize=16)(found.lowered)
    return Repeated(one.schedule, one.buffers, one.queues, one.reasons, one.increments, found.most, together)


def _room(execution: ExecutionContext, kernel: PersistentKernel) -> list[int]:
    """The number of blocks that each device runs at once; those that share a GPU share its room.

    No more than the kernel was chosen for: a compiler that leaves registers for a third block makes nothing faster.
    """
    ordinals, programs = execution.devices.ordinals, execution.programs
    return [
        min(
            programs.resident(device, kernel.program) // ordinals.count(ordinals[device]),
            resident(kernel) * multiprocessors,
        )
        for device, multiprocessors in enumerate(execution.multiprocessors)
    ]


def _chain(
    execution: ExecutionContext, schedule: Schedule, kernel: PersistentKernel, room: Sequence[int], notes: int
) -> _PersistentChain:
    tiles, launches = tiles_on(execution, kernel.made), dict[int, KernelLaunch]()
    regions = list[tuple[NDArray[Any], NDArray[Any]]]()
    for device in range(execution.layout.devices):
        box = execution.layout.partition.owned(device)
        interior, boundary, receivers = kernel.tables(box, room[device], execution.memory.recorded[device])
        part = Launch(kernel.program, boundary if len(boundary) else interior, receivers)
        blocks = min(room[device], kernel.units(interior, boundary))
        regions.append((interior, boundary))
        if device in execution.devices.mine:
            launches[device] = replace(tiles.launch(device, part, box), blocks=blocks)
    return _PersistentChain(execution, schedule, kernel.links, regions, notes, launches)


@dataclass(frozen=True, eq=False)
class _PersistentChain(Chain):
    """The launch of each device."""

    launches: Mapping[int, KernelLaunch]

    @property
    def most(self) -> int:
        """Iterations in one launch."""
        iteration = self.execution.step_seconds * self.schedule.steps
        passes = self.execution.gpu.persistent_passes // len(self.schedule.passes)
        return max(1, min(int(IN_FLIGHT_SECONDS / iteration), passes))

    def lowered(self, iterations: int) -> Lowered:
        """Several iterations in one launch on each device."""
        commands, count = CommandWriter(self.execution.devices), iterations * len(self.schedule.passes)
        for device in self.launches:
            self._write(commands, device, count)
        queues = tuple(self._queue(device) for device in self.launches)
        schedule = replace(self.schedule, steps=iterations * self.schedule.steps)
        return Lowered(schedule, {0: commands.finish()}, queues, frozenset(), {MANY: count, MET: count})

    def _write(self, commands: CommandWriter, device: int, count: int) -> None:
        ordinals, launch, first = self.execution.devices.ordinals, self.launches[device], self.schedule.passes[0]
        barrier, queue, slots = self._barrier(device), self._queue(device), (first.source, first.target)
        links, arguments = self.links(device, 0, barrier), self._arguments(device, count)
        shared = ordinals.count(ordinals[device]) > 1
        whole = replace(launch, more=(links, arguments), cooperative=not shared)
        whole.write(commands, barrier, queue, slots, 0)
        commands.relocate(links["passed"], 0, MANY)
        commands.relocate(arguments["before"], 0, MET)

    def _arguments(self, device: int, count: int) -> NDArray[Any]:
        devices, (interior, boundary) = self.execution.devices, self.regions[device]
        arguments = np.zeros(1, PASSES)
        arguments["interior"], arguments["interior_count"] = devices.constant(device, interior), len(interior)
        arguments["boundary"], arguments["boundary_count"] = devices.constant(device, boundary), len(boundary)
        arguments["passes"], arguments["arrived"] = count, self.execution.flag(Flag(device, MET.name))
        return arguments

    def _queue(self, device: int) -> Queue:
        return Queue(device, "main")

    def _barrier(self, device: int) -> int:
        """The operation by which blocks of a device wait for each other."""
        ops = self.schedule.ops
        waits = (n for n, op in enumerate(ops) if isinstance(op, Wait) and op.queue.device == device)
        return next(waits, next(n for n, op in enumerate(ops) if isinstance(op, Compute) and op.device == device))

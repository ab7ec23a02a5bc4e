"""The log of a run on GPUs: before and after each operation its queue takes the next place of a list and notes there
that it came so far. The list lies in the first device's memory; its order is that in which it happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.items import Numbered
from peergrid.runtime.trace.noted import completed, joined
from peergrid.runtime.trace.recorder import Entry, Position, Recorded
from peergrid.runtime.trace.tiles import TileNote, recorded_tiles
from peergrid.schedule import Schedule
from peergrid.schedule.ops import (
    Flag,
    HostBarrier,
    Queue,
    Record,
    Semaphore,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    queues_of,
)
from peergrid.schedule.unroll import flag_spans

HEAD = 2  # words before the first place
MOST = 1 << 20  # places


class Site(NamedTuple):
    """A place of the commands where a queue begins, or ends, operations; they are carried out as one."""

    queue: Queue
    numbers: tuple[int, ...]
    begins: bool


@dataclass
class Notes:
    """The list of an execution, empty at first, and the sites that write to it.

    Raises UsageError where a device does not reach the first one's memory.
    """

    execution: ExecutionContext
    most: int = MOST
    sites: list[Site] = field(default_factory=list)

    def __post_init__(self) -> None:
        devices = self.execution.devices
        if devices.processes is not None:
            raise UsageError("A run is recorded in one process: start it without mpiexec.")
        for device in range(1, devices.count):
            if not self.execution.peers.reaches(device, 0):
                raise UsageError(
                    f"A run is recorded where all GPUs reach each other; device {device} does not reach 0."
                )
        self.address = devices.allocate(0, 8 * (HEAD + service.PLACE * self.most))
        devices.driver.upload(self.address, np.array([0, self.most], np.int64))

    def before(self, commands: CommandWriter, item: Sequence[Numbered]) -> None:
        """The queues of operations begin them."""
        self._note(commands, item, True)

    def after(self, commands: CommandWriter, item: Sequence[Numbered]) -> None:
        """They end them; for what awaits a flag, what that stood at."""
        self._note(commands, item, False)

    def rows(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """The places taken, in order. Raises UsageError where there were too few."""
        devices, head = self.execution.devices, np.zeros(HEAD, np.int64)
        devices.synchronize()
        devices.on(0).download(head, self.address)
        taken = int(head[0])
        if taken > self.most:
            raise UsageError(f"A recorded run has room for {self.most:,} notes, got {taken:,}: record fewer steps.")
        found = np.zeros((taken, service.PLACE), np.int64)
        if taken:
            devices.driver.download(found, self.address + 8 * HEAD)
        return found

    def queued(self, schedule: Schedule, times: int, flags: Mapping[Flag, int]) -> Recorded:
        """The log of iterations of a schedule that queues carried out; flags: what they stood at before."""
        return Recorded(completed([schedule] * times, self._entries(schedule, flags)))

    def fused(self, schedule: Schedule, times: int, passed: int) -> Recorded:
        """The same of kernels that exchange by themselves; passed: the passes that they had made before."""
        return recorded_tiles(self.execution.layout, schedule, times, list(self._tiles(passed)))

    def _tiles(self, passed: int) -> Iterator[TileNote]:
        for place, (what, record, side, number, seen, lo, hi, _) in enumerate(self.rows().tolist()):
            box = Box(*((corner >> 32, corner & 0xFFFFFFFF) for corner in (lo, hi)))
            device = record // service.REPORT - 1
            yield TileNote(place, what, device, side, number - passed, seen - passed, box)

    def _entries(self, schedule: Schedule, flags: Mapping[Flag, int]) -> Iterator[Entry]:
        raised = {(op.flag, op.value): n for n, op in enumerate(schedule.ops) if isinstance(op, SignalOp)}
        spans, seen = flag_spans(schedule.ops), Counter[int]()
        for site, value in self.rows()[:, :2].tolist():
            queue, numbers, begins = self.sites[site]
            iteration = seen[site]
            seen[site] += 1
            op = schedule.ops[numbers[0]]
            positions = [(iteration, number) for number in numbers]
            if isinstance(op, SignalWait) and not begins:
                count = value - flags.get(op.flag, 0)
                yield Entry("finish", queue, positions[0], _raised(op.flag, count, spans.get(op.flag, 0), raised))
            elif isinstance(op, Record | Wait):
                yield from (Entry("start", queue, positions[0], None), Entry("finish", queue, positions[0], None))
            else:
                yield from joined(queue, positions, begins)

    def _note(self, commands: CommandWriter, item: Sequence[Numbered], begins: bool) -> None:
        number, op = item[0]
        if isinstance(op, Sync | HostBarrier | (Wait if begins else Record)):
            return  # a queue of a graph has nothing before its first wait, and nothing behind its last record
        for queue in queues_of(op):
            self.sites.append(Site(queue, tuple(n for n, _ in item), begins))
            self._launch(
                commands, number, queue, 0 if begins or not isinstance(op, SignalWait) else self._word(op.flag)
            )

    def _word(self, flag: Flag) -> int:
        """The address of what a flag stands at."""
        semaphore = isinstance(flag, Semaphore)
        return self.execution.semaphores.address(flag) if semaphore else self.execution.flag(flag)

    def _launch(self, commands: CommandWriter, number: int, queue: Queue, word: int) -> None:
        execution, values = self.execution, np.zeros(1, service.NOTE)
        values["list"], values["site"], values["word"] = self.address, len(self.sites) - 1, word
        function = execution.programs.function(queue.device, service.NOTES, "note")
        commands.launch(number, queue, function, 1, 1, values)


def _raised(flag: Flag, count: int, span: int, numbers: dict[tuple[Flag, int], int]) -> Position | None:
    """The operation that raised a flag to a count; none where nobody did."""
    if count < 1 or not span:
        return None
    iteration, value = divmod(count - 1, span)
    found = numbers.get((flag, value + 1))
    return None if found is None else (iteration, found)

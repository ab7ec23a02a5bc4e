"""The writer of command buffers: driver calls in the queues of some devices, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.runtime.cuda.commands.buffer import BARRIER, CALL, COLUMNS, FIRST, POLL, CommandBuffer, Relocation, Words
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.schedule.ops import Event, Flag, Queue


@dataclass
class CommandWriter:
    """Writes a command buffer; keeps alive what its rows point at.

    Every row belongs to an operation of a schedule, `op` by its number, -1 to none.
    """

    devices: Devices
    rows: list[list[int]] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)
    keep: list[object] = field(default_factory=list)
    structs: list[tuple[int, int, int]] = field(default_factory=list)

    def call(self, op: int, queue: Queue, function: str, *words: int) -> None:
        """Call a function of the driver with the context of the queue's device current."""
        self.call_at(op, queue, self.devices.entry(function), *words)

    def call_at(self, op: int, queue: Queue, address: int, *words: int) -> None:
        """Call a function of another library, by its address."""
        self._row(op, CALL, self.devices.context(queue.device), address, words)

    def poll(self, op: int, target: Queue | Event, sleep: int = 0) -> None:
        """Ask until a queue is empty, or an event has happened; sleep: microseconds between two questions."""
        context = self.devices.context(target.device)
        if isinstance(target, Queue):
            self._row(op, POLL, context, self.devices.entry("cuStreamQuery"), (self.devices.stream(target), sleep))
        else:
            self._row(op, POLL, context, self.devices.entry("cuEventQuery"), (self.devices.event(target), sleep))

    def barrier(self, op: int, counter: int, parties: int) -> None:
        """Wait at a barrier of hosts; `counter` is the address of a word they share."""
        self._row(op, BARRIER, 0, 0, (counter, parties))

    def record(self, op: int, queue: Queue, event: Event, *, timing: bool = False) -> None:
        """The event stands for what the queue holds so far."""
        self.call(op, queue, "cuEventRecord", self.devices.event(event, timing), self.devices.stream(queue))

    def wait(self, op: int, queue: Queue, event: Event) -> None:
        """The following work of the queue waits for the event."""
        self.call(op, queue, "cuStreamWaitEvent", self.devices.stream(queue), self.devices.event(event), 0)

    def tie(self, op: int, before: Queue, after: Queue) -> None:
        """One queue of a device waits for what the other holds so far."""
        event = Event(before.device, f"from {before} to {after}")
        self.record(op, before, event)
        self.wait(op, after, event)

    def launch(
        self,
        op: int,
        queue: Queue,
        kernel: int,
        blocks: int,
        threads: int,
        values: NDArray[Any],
        *,
        shared: int = 0,
        more: tuple[NDArray[Any], ...] = (),
        rows: int = 1,
        cooperative: bool = False,
    ) -> None:
        """Launch `blocks` × `rows` blocks of a kernel whose parameters are the structs `values` and `more`."""
        pointers = np.array([int(struct.ctypes.data) for struct in (values, *more)], np.uint64)
        self.keep += [values, *more, pointers]
        self.structs += [(len(self.rows), int(s.ctypes.data), int(s.ctypes.data) + s.nbytes) for s in (values, *more)]
        function = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"
        grid, stream = (blocks, rows, 1), self.devices.stream(queue)
        self.call(op, queue, function, kernel, *grid, threads, 1, 1, shared, stream, int(pointers.ctypes.data), 0)

    def words(self, op: int, queue: Queue, words: Words) -> None:
        """Write and await words of memory in a queue, as `words` describes them, shape (number of them, 6)."""
        address = int(words.ctypes.data)
        self.keep.append(words)
        self.structs.append((len(self.rows), address, address + words.nbytes))
        self.call(op, queue, "cuStreamBatchMemOp", self.devices.stream(queue), len(words), address, 0)

    def relocate(self, word: NDArray[Any], offset: int, flag: Flag | None) -> None:
        """Set a word that a call reads, before each iteration, to the time step, or a flag's value, plus an offset."""
        self.relocations.append(Relocation(int(word.ctypes.data), offset, flag))

    def same(self, commands: CommandBuffer, row: int) -> None:
        """Copy a row of another command buffer with its relocations; `keep` has to contain what that buffer keeps."""
        self.relocations += [relocation for relocation in commands.relocations if commands.reader(relocation) == row]
        self.structs += [(len(self.rows), low, high) for reader, low, high in commands.structs if reader == row]
        self.rows.append([int(word) for word in commands.table[row]])
        self.ops.append(commands.ops[row])

    def finish(self) -> CommandBuffer:
        table = np.zeros((len(self.rows), COLUMNS), np.int64)
        for n, row in enumerate(self.rows):
            table[n, : len(row)] = [_signed(word) for word in row]
        return CommandBuffer(table, tuple(self.ops), tuple(self.relocations), tuple(self.keep), tuple(self.structs))

    def _row(self, op: int, kind: int, context: int, function: int, words: tuple[int, ...]) -> None:
        if len(words) > COLUMNS - FIRST:
            raise ValueError(f"A row holds {COLUMNS - FIRST} arguments, got {len(words)}.")
        self.rows.append([kind, context, function, *words])
        self.ops.append(op)


def _signed(word: int) -> int:
    """A 64-bit word as NumPy's signed integer."""
    return word - (1 << 64) if word >= 1 << 63 else word

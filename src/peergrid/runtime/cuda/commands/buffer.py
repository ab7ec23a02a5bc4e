"""The command buffer of one host: driver calls as the words that `replay` carries out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peergrid.runtime.cuda.commands.rows import BARRIER, CALL, COLUMNS, FIRST, POLL
from peergrid.schedule.ops import Flag

Words = np.ndarray[Any, np.dtype[np.int64]]
LINE = 16  # words from one to the next of those that others look at, so that no two share a cache line
NOTHING: Words = np.zeros((0, 3), np.int64)
"""Relocations of a command buffer that has none."""


@dataclass(frozen=True)
class Relocation:
    """A word to set before each iteration: the time step or a flag's value, plus `offset`."""

    address: int
    offset: int
    flag: Flag | None


@dataclass(frozen=True)
class CommandBuffer:
    """Rows of calls; `ops` gives for each row the schedule's operation it belongs to (-1: none).

    structs: (row, address, end) of the arguments that calls read.
    """

    table: Words
    ops: tuple[int, ...]
    relocations: tuple[Relocation, ...]
    keep: tuple[object, ...]
    structs: tuple[tuple[int, int, int], ...] = ()

    def reader(self, relocation: Relocation) -> int:
        """The row that reads a patched word; -1 where none does."""
        return next((row for row, low, high in self.structs if low <= relocation.address < high), -1)

    def relocation_table(
        self, step: int, steps: int, flag_values: dict[Flag, int], increments: dict[Flag, int]
    ) -> Words:
        """The words (address, first value, increment per iteration) for iterations that start at a time step."""
        rows = [
            (p.address, step + p.offset, steps)
            if p.flag is None
            else (p.address, flag_values.get(p.flag, 0) + p.offset, increments.get(p.flag, 0))
            for p in self.relocations
        ]
        return np.array(rows, np.int64).reshape(-1, 3)


@dataclass
class CommandWriter:
    """Writes a command buffer row by row; keeps alive what the rows point at."""

    rows: list[list[int]] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    relocations: list[Relocation] = field(default_factory=list)
    keep: list[object] = field(default_factory=list)
    structs: list[tuple[int, int, int]] = field(default_factory=list)

    def call(self, op: int, context: int, function: int, *words: int) -> None:
        """Call a function with a context current."""
        self._row(op, CALL, context, function, words)

    def poll(self, op: int, context: int, function: int, handle: int, sleep: int = 0) -> None:
        """Ask a function about a handle until it is ready; sleep: microseconds between two questions."""
        self._row(op, POLL, context, function, (handle, sleep))

    def barrier(self, op: int, counter: int, parties: int) -> None:
        """Wait at a barrier of hosts; `counter` is the address of a word they share."""
        self._row(op, BARRIER, 0, 0, (counter, parties))

    def launch(
        self,
        op: int,
        context: int,
        launcher: int,
        kernel: int,
        stream: int,
        grid: int,
        block: int,
        values: Any,
        shared: int = 0,
        more: tuple[Any, ...] = (),
        rows: int = 1,
    ) -> int:
        """Launch `grid` × `rows` blocks of a kernel whose parameters are the structs `values` and `more`.

        Returns the address of the first struct.
        """
        address = int(values.ctypes.data)
        pointers = np.array([address, *(int(struct.ctypes.data) for struct in more)], np.uint64)
        self.keep += [values, *more, pointers]
        self.structs += [(len(self.rows), int(s.ctypes.data), int(s.ctypes.data) + s.nbytes) for s in (values, *more)]
        self.call(
            op, context, launcher, kernel, grid, rows, 1, block, 1, 1, shared, stream, int(pointers.ctypes.data), 0
        )
        return address

    def same(self, commands: CommandBuffer, row: int) -> None:
        """Copy a row of another command buffer with its relocations; `keep` has to contain what that buffer keeps."""
        self.relocations += [relocation for relocation in commands.relocations if commands.reader(relocation) == row]
        self.structs += [(len(self.rows), low, high) for reader, low, high in commands.structs if reader == row]
        self.rows.append([int(word) for word in commands.table[row]])
        self.ops.append(commands.ops[row])

    def words(self, op: int, context: int, function: int, stream: int, words: Words) -> int:
        """Write and await words of memory in a stream, as `words` describes them, shape (number of them, 6).

        Returns the address of the description.
        """
        address = int(words.ctypes.data)
        self.keep.append(words)
        self.structs.append((len(self.rows), address, address + words.nbytes))
        self.call(op, context, function, stream, len(words), address, 0)
        return address

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

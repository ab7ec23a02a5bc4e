"""The command buffer of one host: driver calls as the words that `replay` carries out; known without a compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peergrid.schedule.ops import Flag

ARGUMENTS = 11
"""Every call passes this many 64-bit words: the most a function of the driver takes (`cuLaunchKernel`).

The calling conventions of Linux on x86-64 and AArch64 pass integers and pointers in 64-bit registers and stack slots
that the caller cleans up, so a function that takes fewer, or 32-bit ones, finds what it expects.
"""

CALL, POLL, BARRIER = 0, 1, 2
"""Kinds of rows: call a function; poll until it no longer answers 'not ready' (words: the handle, and microseconds to
sleep between two questions); wait at a barrier of hosts."""

KIND, CONTEXT, FUNCTION, FIRST = 0, 1, 2, 3
COLUMNS = FIRST + ARGUMENTS

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

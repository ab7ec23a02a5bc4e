"""The shadow memory of a replay: for each cell its last accesses with their times, and the level of its value.

A time is an entry of its actor's clock (an epoch): an access is ordered before another one whose clock includes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from peergrid.runtime.trace.cellmap import Cells
from peergrid.runtime.trace.recorder import Position
from peergrid.runtime.trace.usage import Usage, UsedCells
from peergrid.schedule import Schedule
from peergrid.schedule.faults import Fault
from peergrid.schedule.ops import Compute, Touching
from peergrid.schedule.unroll import Placed

Clock = NDArray[np.int32]
"""The vector clock of an actor: the progress of each actor, itself included, as far as it knows; shape (actors,)."""


class ShadowMemory:
    """The cells of all devices; actors are known by their row in the clocks. A level of -1: never written."""

    def __init__(self, usage: Usage, iterations: Sequence[Schedule], placed: Mapping[Position, Placed]) -> None:
        self.usage, self.map, self.iterations, self.placed = usage, usage.map, iterations, placed
        self.levels = np.full(self.map.size, -1, dtype=np.int64)
        self.levels[usage.starts[iterations[0].first if iterations else 0]] = 0
        self.writer = np.zeros(self.map.size, dtype=np.int64)
        self.written = np.zeros(self.map.size, dtype=np.int64)
        self.read = np.zeros(len(usage.readers.rows), dtype=np.int64)
        self.author = np.full(self.map.size, -1, dtype=np.int64)
        self.positions = list(placed)
        self.ordinal = {position: i for i, position in enumerate(self.positions)}

    def access(self, row: int, clock: Clock, placed: Placed, position: Position) -> list[Fault]:
        """Record the accesses of an operation that starts in the actor of a row at its clock; returns their faults."""
        op, access = placed.op, self.usage.cell_sets[id(placed.op)]
        assert isinstance(op, Touching)
        level = placed.base + op.level
        faults = [*self._after_writes(access, clock, placed), *self._after_reads(access, clock, placed)]
        faults += [*self._stale(access.reads, placed, level), *self._stale(access.previous, placed, level - 1)]
        self.read[access.readings] = clock[row]
        self.writer[access.writes], self.written[access.writes] = row, clock[row]
        self.author[access.writes] = self.ordinal[position]
        self.levels[access.writes] = level + (op.steps if isinstance(op, Compute) else 0)
        return faults

    def wrong_at_end(self) -> list[Fault]:
        """Devices that do not own the last level in the last slot."""
        if not self.iterations:
            return []
        steps, cells = sum(schedule.steps for schedule in self.iterations), self.usage.ends[self.iterations[-1].final]
        wrong = cells[self.levels[cells] != steps]
        if not len(wrong):
            return []
        what = f"{self.map.name(int(wrong[0]))} ends at level {self.levels[wrong[0]]}, needed is {steps}"
        return [Fault("stale read", f"Stale read: {what}.", ())]

    def _after_writes(self, access: UsedCells, clock: Clock, placed: Placed) -> Iterator[Fault]:
        """Cells whose last write is not certainly over."""
        for cells in (access.reads, access.previous, access.writes):
            late = cells[self.written[cells] > clock[self.writer[cells]]]
            if len(late):
                other = self.placed[self.positions[int(self.author[late[0]])]]
                text = f"Race on {self.map.name(int(late[0]))} between {other} and {placed}."
                yield Fault("race", text, (other.op, placed.op))

    def _after_reads(self, access: UsedCells, clock: Clock, placed: Placed) -> Iterator[Fault]:
        """Cells to write that someone may still read, the operation itself included."""
        readers = self.usage.readers
        still = access.others[self.read[access.others] > clock[readers.rows[access.others]]]
        if len(still) or len(access.clash):
            cell = readers.cells[still[0]] if len(still) else access.clash[0]
            text = f"Race on {self.map.name(int(cell))} between {placed} and who reads it."
            yield Fault("race", text, (placed.op,))

    def _stale(self, cells: Cells, placed: Placed, level: int) -> Iterator[Fault]:
        """Cells to read that have another level than the one needed."""
        wrong = cells[self.levels[cells] != level]
        if len(wrong):
            what = f"{self.map.name(int(wrong[0]))} at level {level}, finds {self.levels[wrong[0]]}"
            self.levels[wrong] = level  # one fault, without those that follow from it
            yield Fault("stale read", f"Stale read: {placed} needs {what}.", (placed.op,))

"""The shadow memory of a replay: for each cell who touched it last and when, and which level its value has.

A time is an entry of the clock that its actor had (an epoch): an access is ordered before another where the other's
clock has come so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from peergrid.runtime.trace.cellmap import CellMap, Cells, Touch, outside, read_sets, write_sets
from peergrid.runtime.trace.cells import cells_written
from peergrid.runtime.trace.recorder import Log, Place
from peergrid.schedule import Layout
from peergrid.schedule.faults import Fault
from peergrid.schedule.ops import Compute, Copy
from peergrid.schedule.unroll import Placed

Clock = NDArray[np.int64]
"""How far an actor knows each actor to have come, itself included; shape (actors,)."""


class ShadowMemory:
    """The cells of all devices; actors are known by their row in the clocks. A level of -1: never written."""

    def __init__(self, layout: Layout, log: Log, placed: Mapping[Place, Placed], actors: int) -> None:
        self.layout, self.log, self.placed = layout, log, placed
        ops = {id(p.op): p.op for p in placed.values() if isinstance(p.op, Compute | Copy)}
        self.sets = {key: (read_sets(layout, op), write_sets(layout, op)) for key, op in ops.items()}
        owned = [(d, cells_written(layout.problem, layout.partition.owned(d))) for d in range(layout.devices)]
        self.ends = [((d, n, slot), c) for d, found in owned for n, c in found.items() for slot in (0, 1)]
        self.map = CellMap([*self.ends, *(s for both in self.sets.values() for half in both for s in half)])
        self.touches = {k: Touch(self.map.numbers(r), self.map.numbers(w)) for k, (r, w) in self.sets.items()}
        self.levels = np.full(self.map.size, -1, dtype=np.int64)
        self.levels[self.map.in_slot(log.turns[0].first if log.turns else 0)] = 0
        self.writer = np.zeros(self.map.size, dtype=np.int64)
        self.written = np.zeros(self.map.size, dtype=np.int64)
        self.readings = np.zeros((actors, self.map.size), dtype=np.int64)
        self.author = np.full(self.map.size, -1, dtype=np.int64)
        self.places = list(placed)
        self.ordinal = {place: i for i, place in enumerate(self.places)}

    def misfits(self) -> Iterator[Fault]:
        """Operations that leave a device's memory, or bring cells to where they do not belong."""
        seen: set[int] = set()
        for each in self.placed.values():
            op = each.op
            if id(op) in seen or not isinstance(op, Compute | Copy):
                continue
            seen.add(id(op))
            for half in self.sets[id(op)]:
                if beyond := outside(self.layout, half):
                    yield Fault("outside", f"{each} touches {beyond}.", (op,))
            if isinstance(op, Copy) and not op.source_box.empty and not _same_cells(self.layout, op):
                yield Fault("stale read", f"{each} brings other cells than those of its target.", (op,))

    def touch(self, row: int, clock: Clock, placed: Placed, place: Place) -> list[Fault]:
        """Note the accesses of an operation that starts in the actor of a row at its clock; what is wrong with them."""
        op, touch = placed.op, self.touches[id(placed.op)]
        assert isinstance(op, Compute | Copy)
        level = placed.base + op.level
        faults = [*self._after_writes(touch, clock, placed), *self._after_reads(touch, clock, placed)]
        faults += self._stale(touch.reads, placed, level)
        self.readings[row, touch.reads] = clock[row]
        self.writer[touch.writes], self.written[touch.writes] = row, clock[row]
        self.author[touch.writes] = self.ordinal[place]
        self.levels[touch.writes] = level + (op.steps if isinstance(op, Compute) else 0)
        return faults

    def wrong_at_end(self) -> list[Fault]:
        """Devices that do not own the last level in the last slot."""
        if not self.log.turns:
            return []
        steps, final = sum(s.steps for s in self.log.turns), self.log.turns[-1].final
        cells = self.map.numbers([(where, found) for where, found in self.ends if where[2] == final])
        wrong = cells[self.levels[cells] != steps]
        if not len(wrong):
            return []
        what = f"{self.map.name(int(wrong[0]))} ends at level {self.levels[wrong[0]]}, needed is {steps}"
        return [Fault("stale read", f"Stale read: {what}.", ())]

    def _after_writes(self, touch: Touch, clock: Clock, placed: Placed) -> Iterator[Fault]:
        """Cells whose last write is not over for sure."""
        for cells in (touch.reads, touch.writes):
            late = cells[self.written[cells] > clock[self.writer[cells]]]
            if len(late):
                other = self.placed[self.places[int(self.author[late[0]])]]
                text = f"Race on {self.map.name(int(late[0]))} between {other} and {placed}."
                yield Fault("race", text, (other.op, placed.op))

    def _after_reads(self, touch: Touch, clock: Clock, placed: Placed) -> Iterator[Fault]:
        """Cells to write that someone may still read, the operation itself included."""
        still = (self.readings[:, touch.writes] > clock[:, np.newaxis]).any(axis=0)
        twice = np.intersect1d(touch.reads, touch.writes)
        if len(unsafe := np.concatenate((touch.writes[still], twice))):
            text = f"Race on {self.map.name(int(unsafe[0]))} between {placed} and who reads it."
            yield Fault("race", text, (placed.op,))

    def _stale(self, cells: Cells, placed: Placed, level: int) -> Iterator[Fault]:
        """Cells to read that have another level than the one needed."""
        wrong = cells[self.levels[cells] != level]
        if len(wrong):
            what = f"{self.map.name(int(wrong[0]))} at level {level}, finds {self.levels[wrong[0]]}"
            self.levels[wrong] = level  # one fault, not all that follow from it
            yield Fault("stale read", f"Stale read: {placed} needs {what}.", (placed.op,))


def _same_cells(layout: Layout, op: Copy) -> bool:
    """Whether every target cell is its source cell, or its image around a periodic edge."""
    grid = layout.problem.grid
    pairs = zip(op.source_box.lo, op.target_box.lo, grid.shape, grid.periodic, strict=True)
    return all((a - b) % n == 0 if wraps else a == b for a, b, n, wraps in pairs)

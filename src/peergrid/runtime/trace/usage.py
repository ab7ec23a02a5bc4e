"""The cells that the operations of some schedules really use, computed once for all runs of these operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from peergrid.runtime.trace.cellmap import CellMap, Cells, Sets, outside, previous_sets, read_sets, write_sets
from peergrid.runtime.trace.cells import cells_written
from peergrid.runtime.trace.recorder import Actor
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.faults import Fault, FaultKind
from peergrid.schedule.ops import Touching, Transfer, access_key, hosts_of, queues_of
from peergrid.schedule.unroll import Placed


@dataclass(frozen=True, eq=False)
class UsedCells:
    """The cells that an operation reads and writes, as places in the arrays of a `CellMap`.

    previous: those that it reads one step before; readings: its reads, as pairs of a `Readers`; others: the pairs of
    all readers of the cells that it writes; clash: the cells that it reads and writes.
    """

    reads: Cells
    previous: Cells
    writes: Cells
    readings: Cells
    others: Cells
    clash: Cells


class Usage:
    """Actors by their rows in the clocks, memory as a `CellMap`, and the cells of each operation.

    touches: of every operation that reads or writes fields, by its identity, `id(op)`; devices: those whose memory is
    checked, by default all.
    """

    def __init__(self, layout: Layout, schedules: Iterable[Schedule], devices: Iterable[int] | None = None) -> None:
        self.layout = layout
        self._devices = range(layout.devices) if devices is None else sorted(devices)
        ops = {id(op): op for schedule in schedules for op in schedule.ops}
        actors: Iterable[Actor] = chain.from_iterable((*hosts_of(op), *queues_of(op)) for op in ops.values())
        self.rows: Mapping[Actor, int] = {actor: row for row, actor in enumerate(dict.fromkeys(actors))}
        self._ops = {key: op for key, op in ops.items() if isinstance(op, Touching)}
        self._foot = {key: access_key(op) for key, op in self._ops.items()}
        alike = {self._foot[key]: op for key, op in self._ops.items()}
        self._sets = {
            foot: (read_sets(layout, op), previous_sets(layout, op), write_sets(layout, op))
            for foot, op in alike.items()
        }
        beyond = {foot: tuple(_outside(layout, *sets)) for foot, sets in self._sets.items()}
        wrong = {key: (*beyond[foot], *_misplaced(layout, self._ops[key])) for key, foot in self._foot.items()}
        self._wrong = {key: found for key, found in wrong.items() if found}
        self.map = CellMap([*self._owned, *(s for all_of in self._sets.values() for some in all_of for s in some)])
        self.readers, self.cell_sets = self._touched()

    @cached_property
    def starts(self) -> tuple[Cells, Cells]:
        """All cells of each slot."""
        return self.map.in_slot(0), self.map.in_slot(1)

    @cached_property
    def ends(self) -> tuple[Cells, ...]:
        """The cells that devices own in each slot."""
        return tuple(self.map.numbers([each for each in self._owned if each[0][2] == slot]) for slot in (0, 1))

    @cached_property
    def _owned(self) -> Sets:
        layout = self.layout
        owned = ((d, cells_written(layout.problem, layout.partition.owned(d))) for d in self._devices)
        return [((d, name, slot), cells) for d, found in owned for name, cells in found.items() for slot in (0, 1)]

    def out_of_bounds(self, program: Iterable[Placed]) -> Iterator[Fault]:
        """Operations that access cells outside a device's memory, or copy cells to wrong places, each once."""
        wrong = dict(self._wrong)
        for placed in program:
            for kind, what in wrong.pop(id(placed.op), ()):
                yield Fault(kind, f"{placed} {what}.", (placed.op,))

    def _touched(self) -> tuple[Readers, Mapping[int, UsedCells]]:
        cells = {foot: tuple(self.map.numbers(some) for some in sets) for foot, sets in self._sets.items()}
        kinds = {key: (self._foot[key], self.rows[op.queue]) for key, op in self._ops.items()}
        reading = ((row, np.concatenate(cells[foot][:2])) for foot, row in set(kinds.values()))
        readers = Readers(reading, len(self.rows))
        known = {(foot, row): _touch(readers, row, *cells[foot]) for foot, row in set(kinds.values())}
        return readers, {key: known[kind] for key, kind in kinds.items()}


class Readers:
    """Every cell with every actor that reads it: pairs, numbered cell by cell. cells, rows: those of the pairs."""

    def __init__(self, readings: Iterable[tuple[int, Cells]], actors: int) -> None:
        keys = [cells * actors + row for row, cells in readings]
        self._keys = np.unique(np.concatenate(keys)) if keys else np.empty(0, dtype=np.int64)
        self._actors = actors
        self.cells, self.rows = np.divmod(self._keys, max(1, actors))

    def of(self, cells: Cells, row: int) -> Cells:
        """The pairs of some cells with one actor."""
        return np.searchsorted(self._keys, cells * self._actors + row)

    def all_of(self, cells: Cells) -> Cells:
        """The pairs of some cells with all readers."""
        first, end = np.searchsorted(self._keys, (cells * self._actors, (cells + 1) * self._actors))
        lengths = end - first
        return np.repeat(end - lengths.cumsum(), lengths) + np.arange(lengths.sum())


def _touch(readers: Readers, row: int, reads: Cells, previous: Cells, writes: Cells) -> UsedCells:
    both = np.concatenate((reads, previous))
    return UsedCells(
        reads, previous, writes, readers.of(both, row), readers.all_of(writes), np.intersect1d(both, writes)
    )


def _outside(layout: Layout, *sets: Sets) -> Iterator[tuple[FaultKind, str]]:
    """The faults of what touches these cells in any program, in words that follow an operation's name."""
    for some in sets:
        if beyond := outside(layout, some):
            yield "outside", f"touches {beyond}"


def _misplaced(layout: Layout, op: Touching) -> Iterator[tuple[FaultKind, str]]:
    """The same of a copy or message to other cells, of which a rank touches one end alone."""
    if isinstance(op, Transfer) and not op.source_box.empty and not _same_cells(layout, op):
        yield "stale read", "brings other cells than those of its target"


def _same_cells(layout: Layout, op: Transfer) -> bool:
    """True if every target cell is its source cell, or its image around a periodic edge."""
    grid = layout.problem.grid
    pairs = zip(op.source_box.lo, op.target_box.lo, grid.shape, grid.periodic, strict=True)
    return all((a - b) % n == 0 if wraps else a == b for a, b, n, wraps in pairs)

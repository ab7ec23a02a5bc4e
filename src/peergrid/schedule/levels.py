"""The check that every read finds the time level that it needs, on every cell.

The operations are replayed in one of their possible orders; without races every other order gives the same. The level
of each cell is kept in the compressed coordinates of `planes`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box
from peergrid.schedule.access import Buffer
from peergrid.schedule.access_table import AccessTable
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import Order
from peergrid.schedule.ops import Compute, Touching
from peergrid.schedule.planes import Cells
from peergrid.schedule.unroll import Placed

NOTHING = -1
"""The level of cells that nobody wrote."""


def stale_reads(order: Order, table: AccessTable, first: int, final: int, steps: int) -> Iterator[Fault]:
    """Every read that does not find its level; at the end the cells of each device must have level `steps` in slot
    `final`.

    order: of computations and copies alone; first: the slot in which all cells, ghost cells included, start at level 0.
    """
    levels = np.full(table.planes.size, NOTHING, dtype=np.int64)
    levels[table.starts[first]] = 0
    for placed in order.done:
        op, sets = placed.op, table.cell_sets[table.use[id(placed.op)]]
        assert isinstance(op, Touching)
        level = placed.base + op.level
        if (levels[sets.reads] != level).any() or (levels[sets.previous] != level - 1).any():
            yield from _stale(table, levels, placed, level)
            levels[sets.reads], levels[sets.previous] = level, level - 1  # one fault, without those that follow from it
        levels[sets.writes] = level + op.steps if isinstance(op, Compute) else level
    if (levels[table.ends[final]] == steps).all():
        return
    for buffer, box in table.owned[final]:
        cells = table.planes.cells([(buffer, box)])
        if len(wrong := cells[levels[cells] != steps]):
            where, found = _where(table, buffer, wrong), _level_in_words(levels, wrong)
            message = f"Stale read: at the end {_named(buffer)} is needed at level {steps} in {where}, it is {found}."
            yield Fault("stale read", message, ())


def _stale(table: AccessTable, levels: NDArray[np.int64], placed: Placed, level: int) -> Iterator[Fault]:
    for access in table.accesses[table.use[id(placed.op)]]:
        cells, asked = table.planes.cells([(access.buffer, access.box)]), level - access.previous
        if not access.writes and len(wrong := cells[levels[cells] != asked]):
            needed = f"{_named(access.buffer)} at level {asked} in {_where(table, access.buffer, wrong)}"
            message = f"Stale read: {placed} needs {needed}, it finds {_level_in_words(levels, wrong)}."
            yield Fault("stale read", message, (placed.op,))


def _named(buffer: Buffer) -> str:
    device, name, slot = buffer
    return f"'{name}' slot {slot} of device {device}"


def _where(table: AccessTable, buffer: Buffer, wrong: Cells) -> Box:
    return table.planes.planes[buffer].box(int(wrong[0]))


def _level_in_words(levels: NDArray[np.int64], wrong: Cells) -> str:
    level = int(levels[wrong[0]])
    return "nothing that was ever written" if level == NOTHING else f"level {level}"

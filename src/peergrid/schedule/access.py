"""Accesses of operations: cells of a field in one slot of one device, at one time level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from peergrid.grid import Box
from peergrid.grid.box import subtract
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Compute, Op, Receive, Reduce, Send, Transfer, WrappedCompute
from peergrid.stencil import Problem, read_boxes, reduced_boxes, write_box
from peergrid.stencil.footprint import renewed_fields
from peergrid.stencil.remember import remembered

Buffer = tuple[int, str, int]
"""Memory that can conflict: device, state field, slot."""

Reads = Callable[[Problem, str, Box, int], tuple[Box, ...]]
"""The cells of a field that are read to advance a box by some steps, as boxes that do not overlap."""


@dataclass(frozen=True, slots=True)
class Access:
    """Cells read or written; `level` counts from the start of the iteration.

    previous: whether the operation reads their values one step before its level.
    """

    buffer: Buffer
    box: Box
    level: int
    writes: bool
    previous: bool = False


@remembered(1 << 14)
def declared(problem: Problem, name: str, box: Box, steps: int) -> tuple[Box, ...]:
    """The cells that an operation may read: the box of the footprint, for one step of a star stencil without
    corners.
    """
    return read_boxes(problem, name, box, steps)


def accesses(layout: Layout, op: Op, reads: Reads = declared) -> tuple[Access, ...]:
    """The accesses of an operation to state fields, reads first; none for operations that only order others."""
    if isinstance(op, Compute):
        return (*_read(layout, op, reads), *_written(layout.problem, op))
    if isinstance(op, Reduce):
        return tuple(_reduced(layout.problem, op))
    return tuple(_moved(op)) if isinstance(op, Transfer) and not op.source_box.empty else ()


def _moved(op: Transfer) -> Iterator[Access]:
    if not isinstance(op, Receive):
        yield Access((op.source_device, op.field, op.slot), op.source_box, op.level, False)
    if not isinstance(op, Send):
        yield Access((op.target_device, op.field, op.slot), op.target_box, op.level, True)


def _read(layout: Layout, op: Compute, reads: Reads) -> Iterator[Access]:
    """A field that is written without being read is declared as read on its own cells, too, as a norm compares old and
    new values.
    """
    renewed = renewed_fields(layout.problem) if reads is declared else frozenset()
    for name in layout.problem.state:
        boxes = reads(layout.problem, name, op.box, op.steps)
        if name in renewed:
            own = op.box & layout.partition.owned(op.device) & layout.problem.fields[name].box
            boxes = (*boxes, *_outside((own,), boxes))
        for box in layout.wrap(boxes) if isinstance(op, WrappedCompute) else boxes:
            yield Access((op.device, name, op.source), box, op.level, False)


def _outside(boxes: tuple[Box, ...], known: tuple[Box, ...]) -> Iterator[Box]:
    return (piece for piece in reduce(subtract, known, boxes) if not piece.empty)


def _reduced(problem: Problem, op: Reduce) -> Iterator[Access]:
    reduction = next(one for one in problem.reductions if one.name == op.reduction)
    for alias in reduction.described:
        name, previous = reduction.source(alias)
        if name in problem.state:
            slot, level = (1 - op.slot, op.level - 1) if previous else (op.slot, op.level)
            for box in reduced_boxes(problem, reduction, alias, op.box):
                yield Access((op.device, name, slot), box, level, False, previous)


def _written(problem: Problem, op: Compute) -> Iterator[Access]:
    for name in problem.state:
        box = write_box(problem, name, op.box)
        if not box.empty:
            yield Access((op.device, name, op.target), box, op.level + op.steps, True)

"""The value one step before, `u.prev`: a field that an update which reads it writes in its own cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from peergrid.errors import UsageError
from peergrid.grid import Box, Grid
from peergrid.grid.box import subtract
from peergrid.stencil.expr import Read
from peergrid.stencil.reduction import PREVIOUS

if TYPE_CHECKING:
    from peergrid.stencil.problem import Stage, Update


def check_previous(stages: Iterable[Stage], grid: Grid) -> None:
    """Raise UsageError if an update reads `u.prev` in cells where its stage does not keep it though `u` changes, or
    where another stage keeps it, too: it would find a value of another step.
    """
    stages = tuple(stages)
    for stage in stages:
        for update in stage.updates:
            for read in sorted(update.reads, key=lambda read: read.offset):
                if read.field.endswith(PREVIOUS) and _keeps(update, read.field, grid):
                    _check_read(stages, stage, update, read, grid)


def _keeps(update: Update, name: str, grid: Grid) -> bool:
    """True if an update gives the field the old value of the one that it is named after."""
    old = Read(name.removesuffix(PREVIOUS), (0,) * grid.ndim)
    return any(one.target == name and one.value == old for one in update.assignments)


def _check_read(stages: tuple[Stage, ...], stage: Stage, update: Update, read: Read, grid: Grid) -> None:
    before, now = read.field, read.field.removesuffix(PREVIOUS)
    elsewhere = [one for one in stages if one is not stage]
    for cells in () if update.box.empty else grid.folded(update.box.shift(read.offset)):
        if any(_written(elsewhere, before, cells, grid)):
            raise UsageError(
                f"{update.title} reads '{before}' in cells where another stage reads it, too, so that it would be the "
                "value before that stage; read it in one stage, or keep the value in a field of your own."
            )
        if subtract((*_written(stages, now, cells, grid),), *_written((stage,), before, cells, grid)):
            raise UsageError(
                f"{update.title} reads '{before}' at offset {read.offset} from {update.box}, beyond the cells in which "
                f"it keeps it, but '{now}' changes there; let it run in all cells that change, or keep the value in a "
                "field of your own."
            )


def _written(stages: Iterable[Stage], name: str, cells: Box, grid: Grid) -> Iterator[Box]:
    """The parts of `cells` in which some stage writes a field."""
    for stage in stages:
        for update, _ in stage.writers(name):
            yield from grid.images(update.box, cells)

"""Lagged fields that may share memory with the field that they follow."""

from __future__ import annotations

from collections.abc import Mapping

from peergrid.stencil.footprint import Growth, footprint
from peergrid.stencil.lagged import lagged_fields
from peergrid.stencil.problem import Problem
from peergrid.stencil.remember import remembered


@remembered()
def rotating_fields(problem: Problem) -> Mapping[str, str]:
    """The lagged fields that may share memory with the field that they follow: each slot with the other slot of that
    field.

    In a step a cell's value of the lagged field is then replaced by the new value of the field that it follows, and
    its own new value is where that field's old one was: nothing is copied. So nothing but the update of the same cell
    may read it, no cell may be computed twice, and the field that it follows must come into the stage as it was at the
    start of the step.
    """
    found: dict[str, str] = {}
    for name, followed in lagged_fields(problem).items():
        number = next(n for n, stage in enumerate(problem.stages) if name in stage.targets)
        untouched = all(followed not in stage.targets for stage in problem.stages[:number])
        reduced = any(one.source(alias)[0] == name for one in problem.reductions for alias in one.described)
        free = untouched and not reduced and followed not in found.values()
        if free and _read_in_place(problem, number, name, followed) and _read_once(problem, name):
            found[name] = followed
    return found


def _read_in_place(problem: Problem, number: int, name: str, followed: str) -> bool:
    """True if a field is read only where the same update of one stage writes another field, at the cell itself."""
    readers = [
        (n, update, read)
        for n, stage in enumerate(problem.stages)
        for update in stage.readers.get(name, ())
        for read in update.reads
        if read.field == name
    ]
    return all(n == number and followed in update.targets and not any(read.offset) for n, update, read in readers)


def _read_once(problem: Problem, name: str) -> bool:
    """True if a step reads a field only in the cells of its own box: no later stage reads results beside a cell, which
    are computed again, in ghost cells and at the edges of tiles, for each box that needs them.
    """
    return footprint(problem, 1).inputs[name] == Growth.none(problem.grid.ndim)

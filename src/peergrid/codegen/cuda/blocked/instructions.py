"""The instructions of a step where updates are not those of the interior, derived from the problem alone."""

from __future__ import annotations

from collections.abc import Iterable

from peergrid.grid import Box
from peergrid.stencil import Assignment, Problem
from peergrid.stencil.program import CellProgram
from peergrid.stencil.remember import remembered

MOVES = 1.2  # instructions beside arithmetic for each value that a tile makes: from lane to lane, into a window


@remembered(4096)
def placed(problem: Problem, box: Box) -> tuple[float, int]:
    """Instructions of one step for a cell of a box where updates are not those of the interior, and the fields of them:
    every update that reaches the box is asked whether it applies.
    """
    cells, fields = 0.0, set[str]()
    for reach, each, named in _updates(problem):
        share = (reach & box).size / max(1, box.size)
        if share > 0:
            cells += share * each
            fields |= named
    return cells * problem.itemsize / 4, len(fields)


@remembered(4096)
def slowest(problem: Problem, box: Box) -> tuple[float, int]:
    """The same for the lanes that have the most to do, for which the others wait."""
    here = [(each, named) for reach, each, named in _updates(problem) if reach.overlaps(box)]
    cells = sum(each for each, _ in here) * problem.itemsize / 4
    return cells, len(set[str]().union(*(named for _, named in here)))


@remembered()
def _updates(problem: Problem) -> tuple[tuple[Box, float, set[str]], ...]:
    """The box of each update, its instructions for a cell, and the fields that it reads and writes."""
    found = []
    for stage in problem.stages:
        for update in stage.updates:
            named = {read.field for read in update.reads} | {a.target for a in update.assignments}
            found.append((update.box, instructions(update.assignments), named))
    return tuple(found)


def instructions(assignments: Iterable[Assignment]) -> float:
    """Those for a cell, single precision, including those that are no arithmetic."""
    values = tuple(assignment.value for assignment in assignments)
    return CellProgram(values).operations + MOVES * len(values)

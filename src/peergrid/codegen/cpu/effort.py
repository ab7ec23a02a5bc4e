"""The arithmetic that a value takes: much of it pays for copies and for asking memory ahead, little does not."""

from __future__ import annotations

from peergrid.stencil import Problem
from peergrid.stencil.expr import ordered
from peergrid.stencil.remember import remembered

COSTLY = 24  # operations for a value: so long it takes to copy it, or to ask memory for a line


def is_costly(problem: Problem, stage: int, name: str) -> bool:
    """True if a stage's value of a field takes so many operations."""
    return _operations(problem, stage, name) >= COSTLY


@remembered()
def _operations(problem: Problem, stage: int, name: str) -> int:
    """The most operations that an update of a stage makes for a value of a field."""
    values = [a.value for update in problem.stages[stage].updates for a in update.assignments if a.target == name]
    return max((sum(bool(part.operands) for part in ordered((value,))) for value in values), default=0)

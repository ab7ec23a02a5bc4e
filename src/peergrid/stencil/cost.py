"""The least cost of one step: bytes through memory and arithmetic, counted from the expressions."""

from __future__ import annotations

from peergrid.stencil.problem import Problem
from peergrid.stencil.program import CellProgram
from peergrid.stencil.rotating import rotating_fields


def minimal_bytes(problem: Problem) -> int:
    """Bytes that one step moves without temporal blocking: state fields read and written once, coefficients read once.

    Coefficients count if some update reads them over the whole grid; profiles are negligible. In 3D, fields that rotate
    are only read: their place is overwritten by the next value of the field that they follow, which counts.
    """
    rotating = rotating_fields(problem) if problem.grid.ndim == 3 else ()
    state = sum((2 - (name in rotating)) * problem.fields[name].box.size for name in problem.state)
    fixed = sum(problem.fields[name].box.size for name in problem.coefficients if problem.fields[name].full)
    return (state + fixed) * problem.itemsize


def operations(problem: Problem) -> int:
    """Arithmetic operations of one step over the whole grid; common subexpressions of an update count once."""
    return sum(
        update.box.size * CellProgram(tuple(a.value for a in update.assignments)).operations
        for stage in problem.stages
        for update in stage.updates
    )

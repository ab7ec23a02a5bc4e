"""The least cost of one step: bytes through memory and arithmetic, counted from the expressions."""

from __future__ import annotations

from peergrid.stencil.lagged import rotating_fields
from peergrid.stencil.problem import Problem
from peergrid.stencil.program import CellProgram


def minimal_bytes(problem: Problem) -> int:
    """Bytes that one step moves without temporal blocking: state fields read and written once, coefficients read once.

    The coefficients count where some update reads them over the whole grid's extent; profiles are too small to count.
    In 3D fields that rotate are read alone: the next value of the one that they follow, which counts, takes their
    place.
    """
    rotating = rotating_fields(problem) if problem.grid.ndim == 3 else ()
    state = sum((2 - (name in rotating)) * problem.fields[name].box.size for name in problem.state)
    fixed = sum(problem.fields[name].box.size for name in problem.coefficients if problem.fields[name].full)
    return (state + fixed) * problem.itemsize


def operations(problem: Problem) -> int:
    """Arithmetic operations of one step over the whole grid; what the results of an update share counts once."""
    return sum(
        update.box.size * CellProgram(tuple(a.value for a in update.assignments)).operations
        for stage in problem.stages
        for update in stage.updates
    )

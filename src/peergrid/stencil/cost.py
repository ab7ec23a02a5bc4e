"""What one step must cost at least: bytes through memory and arithmetic, counted from the expressions."""

from __future__ import annotations

from peergrid.stencil.expr import Binary, Unary, walk
from peergrid.stencil.problem import Problem


def minimal_bytes(problem: Problem) -> int:
    """Bytes that one step moves without temporal blocking: state fields read and written once, coefficients read once.

    The coefficients count where some update reads them over the whole grid's extent; profiles are too small to count.
    """
    state = sum(2 * problem.fields[name].box.size for name in problem.state)
    fixed = sum(problem.fields[name].box.size for name in problem.coefficients if problem.fields[name].full)
    return (state + fixed) * problem.itemsize


def operations(problem: Problem) -> int:
    """Arithmetic operations of one step over the whole grid, as the expressions are written."""
    return sum(
        update.box.size * sum(isinstance(node, Binary | Unary) for node in walk(assignment.value))
        for stage in problem.stages
        for update in stage.updates
        for assignment in update.assignments
    )

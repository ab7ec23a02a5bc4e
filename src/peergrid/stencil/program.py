"""The values that a cell computes, in a form in which every back end computes equal values once.

As equal expressions are one object (see `expr`), the values of a program are expressions: each is an instruction whose
operands come before it. Only identical values are shared; nothing is reassociated, so bits never change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from peergrid.stencil.expr import LOGICAL, Binary, Entry, Expr, Unary, Where, ordered

if TYPE_CHECKING:
    from peergrid.stencil.problem import Problem


@dataclass(frozen=True)
class CellProgram:
    """The values of some results of one cell that are computed together."""

    results: tuple[Expr, ...]

    @cached_property
    def values(self) -> tuple[Expr, ...]:
        """Every distinct value in an order of evaluation."""
        return ordered(self.results)

    @cached_property
    def uses(self) -> Mapping[Expr, int]:
        """The number of uses of each value, as operand or result."""
        return Counter([*self.results, *(operand for value in self.values for operand in value.operands)])

    @property
    def operations(self) -> int:
        """The number of values that are computed rather than read."""
        return sum(is_operation(value) for value in self.values)


def is_operation(value: Expr) -> bool:
    """True for a value that is computed from others."""
    return isinstance(value, Unary | Binary | Where | Entry)


def slow_at_zero(values: Iterable[Expr]) -> bool:
    """True if some value takes a GPU much longer where operands are 0: a quotient or a square root."""
    return any(isinstance(value, Unary | Binary) and value.op in ("div", "sqrt") for value in ordered(tuple(values)))


def has_exponents(problem: Problem) -> bool:
    """True if some value of a problem is an exponent of a number, or a number from its exponent."""
    assigned = (a.value for stage in problem.stages for update in stage.updates for a in update.assignments)
    values = ordered((*assigned, *(one.value for one in problem.reductions)))
    return any(isinstance(value, Unary) and value.op in ("power_of_two", "exponent") for value in values)


def counts(value: Expr, place: int) -> bool:
    """True for an operand that is a condition in place of a number: it counts as 1 or 0."""
    if isinstance(value, Where):
        return place > 0 and value.operands[place].is_condition
    logical = isinstance(value, Unary | Binary) and value.op in LOGICAL
    return not logical and value.operands[place].is_condition


def composed(value: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """The value with some of its parts replaced by others."""
    made: dict[Expr, Expr] = {}
    for part in ordered((value,)):
        if part in known:
            made[part] = known[part]
        else:
            operands = tuple(made[operand] for operand in part.operands)
            made[part] = part if operands == part.operands else type(part)(*part.label, *operands)
    return made[value]

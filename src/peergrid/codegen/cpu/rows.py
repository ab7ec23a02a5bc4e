"""A row function: its text, and what its pointers stand for."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.grid import Index
from peergrid.stencil import Problem
from peergrid.stencil.expr import Expr, Now, Param, Read


@dataclass(frozen=True, slots=True)
class Write:
    """The new value of a field at the cell, or `ahead` rows from it; in place, an old value as well."""

    field: str
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample of a signal with slopes at the cell, or `ahead` rows from it."""

    signal: str
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Entries:
    """The first entry of a table; the others follow."""

    table: str


@dataclass(frozen=True, slots=True)
class Later:
    """The value of a field so many planes further, of which the cache line alone is asked for."""

    field: str
    planes: int


Operand = Write | Read | Param | Now | Sample | Entries | Later


@dataclass(frozen=True)
class RowCode:
    """A row function and what its pointers stand for.

    users[i]: the fields whose new values need operand `i`.
    """

    text: str
    operands: tuple[Operand, ...]
    users: tuple[frozenset[str], ...]


def slopes(problem: Problem, expr: Expr) -> Index:
    """The slopes of a signal's sample; zeros where all cells have the same, and for any other expression."""
    found = problem.signals[expr.signal].slopes if isinstance(expr, Now) else ()
    return found or (0,) * problem.grid.ndim

"""The language of stencils: the update of one cell, traced into expressions, and combined to the stages of a step.

The package is also the decorator: `peergrid.stencil` can be called, and its modules can be imported.
"""

import sys
from collections.abc import Callable
from types import ModuleType

from peergrid.errors import UsageError
from peergrid.stencil.expr import Expr, cos, equal, exp, log, maximum, minimum, sin, sqrt, tanh, where
from peergrid.stencil.footprint import (
    Footprint,
    Growth,
    advanced_box,
    boundary_depth,
    footprint,
    read_box,
    read_boxes,
    reduced_boxes,
    write_box,
)
from peergrid.stencil.problem import Assignment, Problem, Receiver, Stage, Step, Update, problem_of
from peergrid.stencil.reduction import Reduction
from peergrid.stencil.trace import Cell, Clock, Lookup, Reducer, Stencil, reduction, stencil

__all__ = [
    "Assignment",
    "Cell",
    "Clock",
    "Expr",
    "Footprint",
    "Growth",
    "Lookup",
    "Problem",
    "Receiver",
    "Reducer",
    "Reduction",
    "Stage",
    "Stencil",
    "Step",
    "Update",
    "advanced_box",
    "boundary_depth",
    "cos",
    "equal",
    "exp",
    "footprint",
    "log",
    "maximum",
    "minimum",
    "problem_of",
    "read_box",
    "read_boxes",
    "reduced_boxes",
    "reduction",
    "sin",
    "sqrt",
    "stencil",
    "tanh",
    "where",
    "write_box",
]


def _none() -> None:
    """The function of a decorator that is called without one."""


class _Package(ModuleType):
    """A package that can be called as the decorator of its name."""

    def __call__(self, function: Callable[..., None] = _none) -> Stencil:
        if function is _none:
            raise UsageError(
                "A stencil is made of a function of one cell, got none; write @stencil without (), above it."
            )
        return stencil(function)


sys.modules[__name__].__class__ = _Package

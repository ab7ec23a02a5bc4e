"""Reductions: a number computed from an expression over many cells, every so many steps, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.grid import Box, Field, Grid, Table
from peergrid.stencil.confine import answerable, check_reads, confined
from peergrid.stencil.expr import Expr, Read, reads

ReductionKind = Literal["sum", "mean", "max", "min", "l2"]
"""The kinds of results from the values of the cells; l2 is the square root of the sum of their squares."""

KINDS: tuple[ReductionKind, ...] = get_args(ReductionKind)
PREVIOUS = ".prev"
NOTHING = "there would be nothing to reduce"
NORM = "norm of the change"


@dataclass(frozen=True)
class Reduction:
    """The values of an expression on a box reduced to one number after every step at a multiple of `every`.

    name: its key in the results; previous: the names among the fields that mean the value before the step, such as
    'u.prev' of 'u', and are no fields of their own; fields, params, tables: those that the expression names.
    """

    name: str
    kind: ReductionKind
    value: Expr
    every: int
    box: Box
    fields: tuple[Field, ...] = field(compare=False, repr=False)
    params: tuple[tuple[str, float], ...] = field(compare=False, repr=False, default=())
    previous: frozenset[str] = frozenset()
    tables: tuple[Table, ...] = field(compare=False, repr=False, default=())

    def within(self, box: Box) -> Reduction:
        """The same reduction confined to `box`. Raises UsageError if no cell is left."""
        return replace(self, box=confined(self.title, NOTHING, self.box, box))

    @property
    def title(self) -> str:
        return f"Reduction '{self.name}'"

    @cached_property
    def reads(self) -> frozenset[Read]:
        return frozenset(reads(self.value))

    @cached_property
    def described(self) -> Mapping[str, Field]:
        """The fields that the expression names, by their names in it."""
        return {one.name: one for one in self.fields}

    def source(self, name: str) -> tuple[str, bool]:
        """The field of the problem for a field of the expression, and whether its value before the step is meant."""
        return (name.removesuffix(PREVIOUS), True) if name in self.previous else (name, False)


@dataclass(frozen=True, eq=False)
class Series:
    """A reduction over a run: `values[k]`, in double precision, is the result after step `steps[k]`."""

    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def norm_of(field: Field) -> Reduction:
    """The L2 norm of a state field's change in every step, over the field's box."""
    before = replace(field, name=f"{field.name}{PREVIOUS}")
    here = (0,) * field.grid.ndim
    value = Read(field.name, here) - Read(before.name, here)
    return Reduction(NORM, "l2", value, 1, field.box, (field, before), (), frozenset({before.name}))


def checked(reduction: Reduction, grid: Grid, previous: Iterable[str]) -> Reduction:
    """A reduction confined to the cells whose reads find values; previous: as in `Reduction`.

    Raises UsageError if there are none, or if it reads values that no device stores.
    """
    found = replace(reduction, previous=frozenset(previous))
    for read in sorted(found.reads, key=lambda read: (read.field, read.offset)):
        if read.field in found.previous and any(read.offset):
            raise UsageError(
                f"{found.title} reads '{read.field}' at offset {read.offset}, but the value before the step is kept at "
                f"the cell itself alone; read it at offset {(0,) * grid.ndim}, or keep it in a field of its own."
            )
    box = answerable(found.title, NOTHING, found.box, found.reads, grid, found.described)
    if box.empty:
        raise UsageError(f"{found.title} is confined to {found.box}, where no cell finds all that it reads.")
    check_reads(found.title, box, found.reads, grid, found.described)
    return replace(found, box=box)

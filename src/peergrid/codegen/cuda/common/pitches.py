"""Fields with the same pitches: kernels compute the place of a cell once for all of them."""

from __future__ import annotations

from typing import TypeAlias

from peergrid.grid import Field
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered
from peergrid.stencil.rotating import rotating_fields

LINE = 32
"""The values of a line of memory: a column whose number is a multiple of it begins a line."""

SHORT_LINE, NARROW_COLUMNS = 4, 24
"""The same for 3D fields of so few columns, at most: their rows follow each other almost without gaps."""

MORE_ROWS = 2
"""The rows, at most, by which planes of fields with the same pitches differ."""

Pitched: TypeAlias = tuple[tuple[str, str], ...]
"""Fields, each with the first field, in the order of the problem, whose pitches it has."""


@remembered()
def pitched_as(problem: Problem) -> Pitched:
    """The fields of all axes, as memory is laid out for a problem.

    Those with the same pitches have as many lines in a row and about as many rows in a plane, and all of them change or
    none does: some launches find those that change elsewhere (see `stream3d.remainder`).
    """
    found = dict[str, str]()
    for name, described in problem.fields.items():
        if described.full:
            firsts = (one for one, first in found.items() if one == first)
            found[name] = next((one for one in firsts if _alike(problem, one, name)), name)
    return tuple(found.items())


def line_of(field: Field) -> int:
    """The values of a line of a field's memory: a multiple of those of an access of 16 bytes."""
    columns, grid = field.box.shape[-1], field.grid
    narrow = field.full and grid.ndim == 3 and columns <= NARROW_COLUMNS and 4 * columns <= grid.shape[-1]
    return SHORT_LINE if narrow else LINE


def values_of_row(field: Field, first: int, count: int) -> int:
    """The values that a row of so many of a field's cells takes, from a column on."""
    line = line_of(field)
    return -(-(first % line + count) // line) * line


def _alike(problem: Problem, one: str, other: str) -> bool:
    followed = rotating_fields(problem)  # fields that share memory with others are laid out as these
    fields = [problem.fields[followed.get(name, name)] for name in (one, other)]
    rows = zip(*(field.box.shape[1:-1] for field in fields), strict=True)
    first, second = (values_of_row(field, field.box.lo[-1], field.box.shape[-1]) for field in fields)
    near = all(abs(few - many) <= MORE_ROWS for few, many in rows)
    return near and first == second and (one in problem.state) == (other in problem.state)

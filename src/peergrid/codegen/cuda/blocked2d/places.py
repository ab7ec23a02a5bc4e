"""The text of places in a grid: inside a box, across an edge, where a value lies in memory."""

from __future__ import annotations

from peergrid.codegen.cuda.blocked.reach import known
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.stencil import Problem, Update
from peergrid.stencil.expr import Read

AXES = "yx"


def inside(problem: Problem, update: Update, axis: int) -> str:
    """Whether the cell (y, x) lies in an update's box along an axis; where the grid wraps, the cell it stands for."""
    name, box = AXES[axis], update.box
    if problem.grid.periodic[axis]:
        if (box.lo[axis], box.hi[axis]) == (0, problem.grid.shape[axis]):
            return "true"
        name += "w"
    lo, hi = Arguments(problem).bounds(update, axis)
    return f"{name} >= {lo} && {name} < {hi}"


def wrapped(problem: Problem, axis: int) -> str | None:
    """The declaration of the coordinate that a cell stands for where the grid wraps; None where it does not."""
    name = AXES[axis]
    return f"const int {name}w = pg_wrap({name}, {problem.grid.shape[axis]});" if problem.grid.periodic[axis] else None


def mirrored(problem: Problem, text: str, axis: int) -> str:
    """A coordinate with what lies beyond a reflecting edge brought back."""
    if problem.grid.boundary[axis] != "reflecting":
        return text
    return f"pg_mirror({text}, {problem.grid.shape[axis]})"


def written(problem: Problem, name: str, axis: int) -> tuple[str, str]:
    """The bounds between which a tile writes a field: its own, and those of the field."""
    lo, hi = (("y0", "y1"), ("c0", "c1"))[axis]
    box = problem.fields[name].box
    if problem.grid.periodic[axis]:
        return lo, hi
    return f"max({lo}, {box.lo[axis]})", f"min({hi}, {box.hi[axis]})"


def in_memory(problem: Problem, read: Read, steps: int) -> str:
    """A coefficient read for the cell (y, x) straight from memory; where the device has none, its nearest.

    steps: of the pass. Cells for which there is none are never used.
    """
    described, number = problem.fields[read.field], Arguments(problem).fields.index(read.field)
    index = []
    for axis in described.axes:
        lo, hi = known(problem, steps, described, axis)
        index.append(f"pg_clamp({mirrored(problem, f'{AXES[axis]} + {read.offset[axis]}', axis)}, {lo}, {hi})")
    place = index[0] if len(index) == 1 else f"{index[0]} * a.fields[{number}].pitch[0] + {index[1]}"
    return f"a.fields[{number}].slot[0][{place}]"

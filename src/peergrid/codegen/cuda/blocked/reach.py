"""How far tiles reach beyond what they store."""

from __future__ import annotations

from functools import reduce

from peergrid.grid import Field
from peergrid.stencil import Growth, Problem, footprint


def reach(problem: Problem, steps: int) -> Growth:
    """How far beyond its cells a tile reads, of any field."""
    return reduce(Growth.__or__, footprint(problem, steps).inputs.values())


def row_reach(problem: Problem, steps: int) -> tuple[int, int]:
    """How many rows above and below its own a tile reads."""
    inputs = footprint(problem, steps).inputs.values()
    return max(g.below[0] for g in inputs), max(g.above[0] for g in inputs)


def known(problem: Problem, steps: int, described: Field, axis: int) -> tuple[str, str]:
    """The text of the bounds between which a device holds values of a field for a pass of so many steps."""
    growth = footprint(problem, steps).inputs.get(described.name)
    below, above = (growth.below[axis], growth.above[axis]) if growth else (0, 0)
    lo, hi = f"(a.lo[{axis}] - {below})", f"(a.hi[{axis}] + {above})"
    if problem.grid.periodic[axis]:
        return lo, hi
    return f"max({lo}, {described.box.lo[axis]})", f"min({hi}, {described.box.hi[axis]})"

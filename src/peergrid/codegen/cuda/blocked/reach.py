"""The extents of what tiles read beyond what they store."""

from __future__ import annotations

from functools import reduce

from peergrid.stencil import Growth, Problem, footprint
from peergrid.stencil.remember import remembered


@remembered()
def reach(problem: Problem, steps: int) -> Growth:
    """The extent of what a tile reads beyond its cells, of any field."""
    return reduce(Growth.__or__, footprint(problem, steps).inputs.values())


def row_reach(problem: Problem, steps: int) -> tuple[int, int]:
    """The rows above and below its own that a tile reads."""
    growth = reach(problem, steps)
    return growth.below[0], growth.above[0]


def overhead(problem: Problem, steps: int) -> int:
    """Rows that a tile streams beside its own."""
    return sum(row_reach(problem, steps))

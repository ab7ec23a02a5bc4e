"""The extents of what tiles read beyond what they store."""

from __future__ import annotations

from functools import reduce

from peergrid.stencil import Growth, Problem, footprint


def reach(problem: Problem, steps: int) -> Growth:
    """The extent of what a tile reads beyond its cells, of any field."""
    return reduce(Growth.__or__, footprint(problem, steps).inputs.values())


def row_reach(problem: Problem, steps: int) -> tuple[int, int]:
    """The rows above and below its own that a tile reads."""
    inputs = footprint(problem, steps).inputs.values()
    return max(g.below[0] for g in inputs), max(g.above[0] for g in inputs)

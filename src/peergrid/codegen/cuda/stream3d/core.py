"""The cells of a grid that tiles may hold: those that none but the usual updates reach within a pass."""

from __future__ import annotations

from peergrid.codegen.cuda.blocked.plain import FAR, core_of, obstacles
from peergrid.grid import Box
from peergrid.stencil import Problem, footprint
from peergrid.stencil.remember import remembered


@remembered()
def core(problem: Problem, steps: int) -> tuple[Box, tuple[Box, ...]]:
    """The cells of the grid without the layers that other updates reach within some steps, and what else bars tiles."""
    box = problem.grid.box
    barred = list(obstacles(problem, steps))
    inside, _ = core_of(problem.grid.box, barred)
    for axis in range(3):
        lo, hi = inside.lo[axis], inside.hi[axis]
        if problem.grid.periodic[axis]:
            lo, hi = (lo or -FAR), (hi if hi < problem.grid.shape[axis] else FAR)
        box = box.with_axis(axis, lo, hi)
    return box, tuple(bar for bar in barred if bar.overlaps(box))


def unmirrored(problem: Problem, steps: int) -> Box:
    """The cells that nothing beyond a reflecting edge is read for."""
    growth = footprint(problem, steps).inputs.values()
    box = Box((-FAR,) * 3, (FAR,) * 3)
    for axis, kind in enumerate(problem.grid.boundary):
        if kind == "reflecting":
            lo, hi = max(g.below[axis] for g in growth), max(g.above[axis] for g in growth)
            box = box.with_axis(axis, lo, problem.grid.shape[axis] - hi)
    return box

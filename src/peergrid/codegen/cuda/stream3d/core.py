"""The cells of a grid that tiles may hold: those that no updates but a kernel's own reach within a pass."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from peergrid.codegen.cuda.blocked.interior import core_of, obstacles
from peergrid.codegen.cuda.stream3d.corrections import corrections
from peergrid.codegen.regions import FAR, unmirrored
from peergrid.grid import Box
from peergrid.stencil import Problem, footprint
from peergrid.stencil.remember import remembered


@remembered()
def core(problem: Problem, steps: int, whole: bool = False) -> tuple[Box, tuple[Box, ...]]:
    """The cells of the grid without layers that other updates than a kernel's own reach within some steps; and boxes in
    it that no tile may touch, or that other kernels make before and after it. whole: with these layers, as such boxes.
    """
    box = problem.grid.box
    excluded = list(obstacles(problem, steps, tuple(chain.from_iterable(corrections(problem, steps)))))
    inside = problem.grid.box if whole else core_of(problem.grid.box, excluded)[0]
    for axis in range(3):
        lo, hi = inside.lo[axis], inside.hi[axis]
        if problem.grid.periodic[axis]:
            lo, hi = (lo or -FAR), (hi if hi < problem.grid.shape[axis] else FAR)
        box = box.with_axis(axis, lo, hi)
    return box, tuple(bar for bar in excluded if bar.overlaps(box))


def streamed(
    problem: Problem, steps: int, box: Box, besides: Iterable[Box] = (), whole: bool = False
) -> tuple[Box, list[Box]]:
    """The part of a box that tiles may hold, for which nothing beyond a reflecting edge is read, and the boxes in it
    that no tile may touch; besides: further such boxes; whole: as of `core`.
    """
    allowed, excluded = core(problem, steps, whole)
    found, points = box & allowed & unmirrored_by(problem, steps), [*excluded, *besides]
    return (found, points) if whole else core_of(found, points)


def unmirrored_by(problem: Problem, steps: int) -> Box:
    """The cells for which some steps read nothing beyond a reflecting edge."""
    growths = footprint(problem, steps).inputs.values()
    farthest = (offset for growth in growths for offset in (tuple(-n for n in growth.below), growth.above))
    return unmirrored(problem.grid, farthest)

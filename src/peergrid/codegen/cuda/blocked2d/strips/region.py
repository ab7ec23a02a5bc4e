"""The strips along a grid's sides in which the same confined updates apply from end to end, such as absorbing layers.

Between the core, which interior tiles cover, and a side of the grid lies a *strip*. There a cell's update depends on
its distance from the side alone, so that a kernel made for the strip (`layer`) can stream through it as through the
core. Corners, sources and receivers belong to no strip: they are left to `blocked2d.boundary`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.blocked.interior import computing, grown, unbounded
from peergrid.codegen.cuda.blocked2d.tiles import Cut, grid_core
from peergrid.grid import Box
from peergrid.grid.box import intersect
from peergrid.stencil import Problem, footprint
from peergrid.stencil.problem import Update
from peergrid.stencil.remember import remembered


@dataclass(frozen=True)
class Choice:
    """An update that may apply in a strip, with the bounds along the strip's axis that a cell has to be tested for."""

    update: Update
    least: int | None
    most: int | None


@dataclass(frozen=True)
class BoundaryStrip:
    """Cells of a grid along one side.

    axis: the one that the side is normal to; choices: for each stage the updates that may apply; excluded: cells that
    some other update reaches.
    """

    axis: int
    box: Box
    choices: tuple[tuple[Choice, ...], ...]
    excluded: tuple[Box, ...]


@remembered()
def boundary_strips(problem: Problem, steps: int, cut: Cut) -> tuple[BoundaryStrip, ...]:
    """The strips of a problem for passes of so many steps; none along an axis whose sides reflect."""
    grid, core = problem.grid.box, grid_core(problem, steps, cut)
    found = []
    for axis in (0, 1):
        if core.empty or "reflecting" in problem.grid.boundary:
            continue
        across = core.with_axis(axis, grid.lo[axis], grid.hi[axis])
        for lo, hi in ((grid.lo[axis], core.lo[axis]), (core.hi[axis], grid.hi[axis])):
            if lo < hi:
                found.append(_strip(problem, steps, axis, across.with_axis(axis, lo, hi)))
    return tuple(found)


def _strip(problem: Problem, steps: int, axis: int, box: Box) -> BoundaryStrip:
    choices: list[dict[Update, Choice]] = [{} for _ in problem.stages]
    excluded: list[Box] = []
    whole = [k for k in (0, 1) if k != axis or problem.grid.periodic[k]]
    for (stage, _), update, growth in grown(problem, steps):
        needed, reached = problem.grid.clip(growth.apply(box)), unbounded(problem, update.box)
        if not all(reached.lo[k] <= needed.lo[k] and needed.hi[k] <= reached.hi[k] for k in whole):
            excluded += intersect(computing(problem, update.box, growth), box)
        elif needed.overlaps(reached):
            computed = _computed(problem, steps, stage, box)
            least = update.box.lo[axis] if reached.lo[axis] > computed.lo[axis] else None
            most = update.box.hi[axis] if reached.hi[axis] < computed.hi[axis] else None
            choices[stage][update] = Choice(update, least, most)
    return BoundaryStrip(axis, box, tuple(tuple(found.values()) for found in choices), tuple(excluded))


@remembered(1024)
def _computed(problem: Problem, steps: int, stage: int, box: Box) -> Box:
    """The cells that a stage computes in any of the steps that advance a box."""
    growths = (growth for need in footprint(problem, steps).targets for growth in need[stage].values())
    return reduce(Box.hull, (problem.grid.clip(growth.apply(box)) for growth in growths))

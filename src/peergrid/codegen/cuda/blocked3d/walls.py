"""Where the usual updates of a problem apply: which cells a plain 3D tile may hold, which of them keep their value.

A cell that no update of a stage writes keeps its value there, such as those at a fixed edge. A plain tile may hold such
cells; the tests that tell them apart are made for the sides of the grid where plain tiles may lie alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.blocked.levels import plain_updates
from peergrid.codegen.cuda.blocked.plain import FAR, core_of, obstacles
from peergrid.grid import Box
from peergrid.stencil import Growth, Problem, footprint
from peergrid.stencil.remember import remembered


@dataclass(frozen=True)
class Sides:
    """The box of an update within that of its target, and along each axis at which ends a cell may lie outside."""

    box: Box
    target: Box
    ends: tuple[tuple[bool, bool], ...]

    def test(self, axis: int, here: str, element: int = 0, columns: int = 1) -> str:
        """The text that tells whether the coordinate `here` lies inside; empty where it always does.

        element, columns: the coordinate is `element` modulo `columns`.
        """
        (lo, hi), (first, last) = (self.box.lo[axis], self.box.hi[axis]), (self.target.lo[axis], self.target.hi[axis])
        below = self.ends[axis][0] and any((k - element) % columns == 0 for k in range(first, lo))
        above = self.ends[axis][1] and any((k - element) % columns == 0 for k in range(hi, last))
        return " && ".join([f"{here} >= {lo}"] * below + [f"{here} < {hi}"] * above)


def supported(problem: Problem) -> bool:
    """Whether plain tiles can serve a 3D problem: usual updates that span periodic axes, short reads on mirrors."""
    if problem.grid.ndim != 3 or not any(plain_updates(problem)):
        return False
    for stage in plain_updates(problem):
        for update, assignment in stage.values():
            for axis, kind in enumerate(problem.grid.boundary):
                if kind == "periodic" and update.box.shape[axis] != problem.grid.shape[axis]:
                    return False
                if kind == "reflecting" and any(abs(read.offset[axis]) > 1 for read in assignment.reads):
                    return False
    return True


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


@remembered()
def sides(problem: Problem, steps: int) -> Mapping[tuple[int, str], Sides]:
    """For the usual update of each stage and target, at which sides plain tiles have to tell cells apart."""
    inside, _ = core(problem, steps)
    needs = footprint(problem, steps).targets
    found: dict[tuple[int, str], Sides] = {}
    for number, stage in enumerate(plain_updates(problem)):
        for target, (update, _) in stage.items():
            growth = reduce(Growth.__or__, (need[number][target] for need in needs))
            reached = growth.apply(inside) & problem.fields[target].box
            ends = tuple(
                (reached.lo[axis] < update.box.lo[axis], reached.hi[axis] > update.box.hi[axis]) for axis in range(3)
            )
            found[number, target] = Sides(update.box, problem.fields[target].box, ends)
    return found

"""The part of a 3D pass that tiles leave, made step by step through memory: the boxes that each step advances.

A *remainder* is made by the kernels that make one step, over boxes that shrink from step to step to what the later ones
read. What steps in between leave goes to memory of its own: in that of the pass lie cells that tiles finish meanwhile.

Layers across rows are a few columns thick: a piece of every row, for each of which memory opens a page. They are
remainders of their own, whose steps in between are kept densely.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import scratch_fields
from peergrid.codegen.cuda.onestep.regions import Later
from peergrid.grid import Box
from peergrid.grid.box import disjoint
from peergrid.stencil import Growth, Problem, footprint

Boxes = tuple[Box, ...]
NARROW_COLUMNS = 24  # at most, of what is kept densely


@dataclass(frozen=True)
class Remainder:
    """The disjoint boxes that each step advances; around: the boxes that all remainders of the pass leave done lie in
    it; dense: what is kept of the steps in between, if not whole blocks.
    """

    steps: tuple[Boxes, ...]
    around: Box
    dense: Box | None = None

    def later(self, number: int) -> Later:
        """The steps that follow a step: fields reach unequally far, and boxes hold what the farthest one needs."""
        return Later(self.around, len(self.steps) - 1 - number)


def remainders(problem: Problem, steps: int, rest: Iterable[Box], gpu: GpuModel = H200) -> tuple[Remainder, ...]:
    """The remainders of `steps` steps after which all of `rest` is done; independent of one another."""
    rest = tuple(rest)
    narrow = tuple(box for box in rest if steps > 1 and not scratch_fields(problem) and _narrow(box, gpu))
    if not rest:
        return ()
    around = reduce(Box.hull, rest)
    found = [_steps(problem, steps, tuple(box for box in rest if box not in narrow))]
    made = [Remainder(found[0], around)] if found[0][-1] else []
    for box in narrow:
        parts = _steps(problem, steps, (box,))
        made.append(Remainder(parts, around, _written(problem, parts[0])))
    return tuple(made)


def blocks_between(steps: int) -> int:
    """The blocks of each state field that a remainder of so many steps needs beside the pass's own: one for each step
    but the last.

    None is used twice in a pass: the boundary region and the interior are made at the same time, and both compute some
    of the cells between them. Where these are of the same step both write the same values; where a block had two steps
    one after the other, one could overwrite what the other still has to read.
    """
    return steps - 1


def _written(problem: Problem, boxes: Boxes) -> Box:
    """The boxes that a step writes: a stage, beyond them, what later ones read."""
    within = [growth for needs in footprint(problem, 1).targets[0] for growth in needs.values()]
    return problem.grid.clip(reduce(Growth.__or__, within).apply(reduce(Box.hull, boxes)))


def _narrow(box: Box, gpu: GpuModel) -> bool:
    return box.shape[2] <= NARROW_COLUMNS and box.size >= gpu.narrow_cells


def _steps(problem: Problem, steps: int, rest: Boxes) -> tuple[Boxes, ...]:
    return tuple(_grown(problem, steps - 1 - step, rest) for step in range(steps))


def _grown(problem: Problem, later: int, rest: Boxes) -> Boxes:
    """The boxes of the state that are read to advance the boxes by `later` steps, as disjoint boxes."""
    needs = footprint(problem, later).inputs
    growth = reduce(Growth.__or__, (needs[name] for name in problem.state))
    return disjoint(problem.grid.clip(growth.apply(box)) for box in rest)

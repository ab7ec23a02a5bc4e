"""The part of a 3D pass that plain tiles leave, made step by step through memory: the boxes that each step advances.

Edge tiles keep every state field in shared memory, and compute much twice where layers are thick. A *shell* is made
instead by the kernels that make one step, over boxes that shrink from step to step to what the later ones read. What
steps in between leave goes to memory of its own: in that of the pass lie cells that plain tiles finish meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from peergrid.grid import Box
from peergrid.grid.box import subtract
from peergrid.stencil import Growth, Problem, footprint

Boxes = tuple[Box, ...]


def shells(problem: Problem, steps: int, rest: Iterable[Box]) -> tuple[Boxes, ...]:
    """The disjoint boxes that each of `steps` steps advances, so that all of `rest` is done after the last."""
    rest = tuple(rest)
    return tuple(_grown(problem, steps - 1 - step, rest) for step in range(steps))


def blocks_between(steps: int) -> int:
    """The blocks of each state field that a shell of so many steps needs beside the pass's own: two take turns."""
    return min(steps - 1, 2)


def _grown(problem: Problem, later: int, rest: Boxes) -> Boxes:
    """What is read of the state to advance the boxes by `later` steps, as disjoint boxes."""
    needs = footprint(problem, later).inputs
    growth = reduce(Growth.__or__, (needs[name] for name in problem.state))
    found: Boxes = ()
    for box in rest:
        fresh: Boxes = (problem.grid.clip(growth.apply(box)),)
        for known in found:
            fresh = subtract(fresh, known)
        found += fresh
    return found

"""Slabs along axis 0 that take GPUs equally long: the cost of each row, derived from the problem alone.

Most cells belong to interior tiles; those that a confined update reaches, or an edge of the grid, to boundary tiles and
strips, which cost more. So the devices at the ends of a grid with absorbers get fewer rows than those in between. As in
all of `choose`, no device is asked: every machine makes the same schedule, by the costs of an H200.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.instructions import placed
from peergrid.codegen.cuda.blocked.interior import interior_box, obstacles
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.gpu_model import USUAL
from peergrid.codegen.cuda.stream3d.core import core
from peergrid.codegen.norm import NORM_ROWS
from peergrid.costs.families import FAMILIES
from peergrid.grid import Box
from peergrid.grid.box import intersect
from peergrid.grid.partition import Partition, balanced_cuts
from peergrid.stencil import Problem
from peergrid.stencil.cost import minimal_bytes

BOUNDARIES = 2  # boundary regions of a slab in rows, at least; see `fused.exchange.supports`


def balanced(
    problem: Problem, devices: int, depth: int, norm: str | None = None, block: int | None = None
) -> Partition:
    """Slabs for that many devices with halos of `depth` steps; with a norm, at multiples of its blocks' rows.

    block: steps of a pass, if it is another number. The usual split where the grid has too few rows for slabs.
    """
    even = Partition.over(problem.grid, devices)
    if even.parts[0] != devices:
        return even
    align = NORM_ROWS if norm else 1
    least = max(1, min(BOUNDARIES * max(row_reach(problem, depth)), problem.grid.shape[0] // (devices * align) * align))
    return Partition.slabs(problem.grid, balanced_cuts(row_costs(problem, block or depth), devices, align, least))


def row_costs(problem: Problem, steps: int, edge: int | None = None) -> NDArray[np.int64]:
    """The cost of a pass of `steps` steps for each row, in cells of interior tiles.

    edge: how many of them any other cell costs (see `cell_cost`).
    """
    rows, across = problem.grid.shape[0], problem.grid.box.size // problem.grid.shape[0]
    costly = np.zeros(rows, np.int64)
    boxes = intersect(_costly(problem, steps), problem.grid.box)
    for box in boxes:
        costly[box.lo[0] : box.hi[0]] += box.size // box.shape[0]
    times = edge or (cell_cost(problem, boxes, steps) if boxes else 1)
    return across + (times - 1) * np.minimum(costly, across)


def cell_cost(problem: Problem, boxes: Sequence[Box], steps: int) -> int:
    """The cost of a cell of some boxes that no interior tile advances, in cells of interior tiles.

    A pass over interior tiles takes what memory moves, however many steps it makes; one over others takes the
    instructions of every step. In 3D, where interior tiles serve edges of the grid, the others take what memory moves,
    too.
    """
    if problem.grid.ndim == 3:
        return round(FAMILIES["streaming 3D"].memory / FAMILIES["one step, mixed 3D"].memory)
    instructions = sum(box.size * placed(problem, box)[0] for box in boxes) / sum(box.size for box in boxes)
    moved = minimal_bytes(problem) / problem.grid.box.size / USUAL.bandwidth
    spent = instructions / (USUAL.arithmetic * FAMILIES["strip 2D beside interior"].issue)
    return max(1, round(steps * spent / moved))


def _costly(problem: Problem, steps: int) -> tuple[Box, ...]:
    """The cells that no interior tile advances, but for those around sources: slabs stay while these are moved."""
    if problem.grid.ndim == 3:
        return problem.grid.box - core(problem, steps)[0]
    return (*obstacles(problem, steps, Arguments(problem).movable), *(problem.grid.box - interior_box(problem, steps)))

"""Slabs along axis 0 that take GPUs equally long: what each row costs, told from the problem alone.

Most cells belong to plain tiles; those that a confined update reaches, or an edge of the grid, to dearer ones. So the
devices at the ends of a grid with absorbers get fewer rows than those in between. As in all of `choose`, no device is
asked: every machine makes the same schedule.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.plain import obstacles, plain_box
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.stream3d.core import core
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Box
from peergrid.grid.partition import Partition, balanced_cuts
from peergrid.stencil import Problem, footprint

EDGE = 2.75  # times what a cell of a plain tile costs in a pass, any other does in each of its steps
"""From boxes of 2048 rows of a radar on an H200 (16384 columns, float32, 8 steps): 0.344 ms at an end with 18 rows of
absorber, 0.298 ms in the middle, 0.12 µs for each row more or less: the 18 rows cost as much as 380 others. A pass over
plain tiles takes what moving its rows takes, however many steps it makes; one over others takes as long for every step.
"""
EDGE_3D = 5  # times in all in 3D, where plain tiles serve edges of the grid
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
    reach = max(max(growth.below[0], growth.above[0]) for growth in footprint(problem, depth).inputs.values())
    least = max(1, min(BOUNDARIES * reach, problem.grid.shape[0] // (devices * align) * align))
    return Partition.slabs(problem.grid, balanced_cuts(row_costs(problem, block or depth), devices, align, least))


def row_costs(problem: Problem, steps: int, edge: int | None = None) -> NDArray[np.int64]:
    """The cost of a pass of `steps` steps for each row, in cells of plain tiles.

    edge: how many of them any other cell costs (see `EDGE`).
    """
    rows, across = problem.grid.shape[0], problem.grid.box.size // problem.grid.shape[0]
    dear = np.zeros(rows, np.int64)
    for box in _dear(problem, steps):
        inside = box & problem.grid.box
        if not inside.empty:
            dear[inside.lo[0] : inside.hi[0]] += inside.size // inside.shape[0]
    times = edge or (EDGE_3D if problem.grid.ndim == 3 else round(EDGE * steps))
    return across + (times - 1) * np.minimum(dear, across)


def _dear(problem: Problem, steps: int) -> tuple[Box, ...]:
    """The cells that no plain tile advances, but for those around sources: slabs stay while these are moved."""
    if problem.grid.ndim == 3:
        return problem.grid.box - core(problem, steps)[0]
    return (*obstacles(problem, steps, Arguments(problem).movable), *(problem.grid.box - plain_box(problem, steps)))

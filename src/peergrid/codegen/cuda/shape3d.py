"""How a pass over a 3D grid is cut, and how far its tiles reach beyond what they store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product

from peergrid.stencil import Growth, Problem, footprint
from peergrid.stencil.expr import Read


@dataclass(frozen=True)
class Shape3D:
    """Steps of a pass; columns and rows of a lane, warps of a thread block, planes loaded ahead.

    skew: planes between steps; blocks: thread blocks that shall fit on a multiprocessor at once, which bounds the
    registers (0: no bound); held: loaded planes are kept in registers, else read from shared memory when needed;
    turning: rings are lengthened so that their places are constants; joined: all nodes between two barriers are one
    text, else each is one (see `nodes3d`).
    """

    steps: int
    columns: int = 4
    rows: int = 2
    warps: int = 16
    ahead: int = 2
    skew: int = 0
    blocks: int = 0
    held: bool = True
    turning: bool = True
    joined: bool = False

    @property
    def width(self) -> int:
        """Columns of a tile, redundant ones included."""
        return 32 * self.columns

    @property
    def height(self) -> int:
        """Rows of a tile, redundant ones included."""
        return self.rows * self.warps

    @property
    def threads(self) -> int:
        return 32 * self.warps

    def align(self, itemsize: int) -> int:
        """Columns at multiples of which the columns of a tile begin: at least those of a copy of 16 bytes."""
        return max(self.columns, 16 // itemsize)


def reach(problem: Problem, steps: int) -> Growth:
    """How far beyond its cells a tile reads, of any field."""
    return reduce(Growth.__or__, footprint(problem, steps).inputs.values())


def meanings(problem: Problem, read: Read) -> Iterator[Read]:
    """What a read may mean: the cell at its offset or, beyond reflecting edges, the mirrored one.

    Where offsets along reflecting axes are at most 1, the mirrored cell is the one at offset 0.
    """
    choices = [
        (o, 0) if o and problem.grid.boundary[axis] == "reflecting" else (o,) for axis, o in enumerate(read.offset)
    ]
    for offset in product(*choices):
        yield Read(read.field, offset)

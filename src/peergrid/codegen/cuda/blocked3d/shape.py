"""How a pass over a 3D grid is cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape3D:
    """Steps of a pass; columns and rows of a lane, warps of a thread block, planes loaded ahead.

    skew: planes between steps; blocks: thread blocks that shall fit on a multiprocessor at once, which bounds the
    registers (0: no bound); held: loaded planes are kept in registers, else read from shared memory when needed;
    turning: rings are lengthened so that their places are constants; joined: all nodes between two barriers are one
    text, else each is one (see `stream.nodes`).
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

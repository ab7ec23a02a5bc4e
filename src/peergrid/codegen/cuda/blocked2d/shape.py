"""How a pass over a 2D grid is cut."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.stencil import Problem, footprint


@dataclass(frozen=True)
class Shape:
    """How a pass is cut: steps, columns per lane, rows loaded ahead, warps per block, rows between steps (`skew`).

    blocks: thread blocks that shall fit on a multiprocessor at once, which bounds the registers (0: no bound);
    rotate: rows keep their registers and the loop is unrolled; else they move from register to register, which costs
    instructions and saves registers.
    """

    steps: int
    columns: int = 4
    ahead: int = 4
    warps: int = 4
    skew: int = 0
    blocks: int = 0
    rotate: bool = True

    @property
    def width(self) -> int:
        """Columns that a warp loads."""
        return 32 * self.columns


def margin(problem: Problem, shape: Shape) -> int:
    """The columns that a strip loses on each side, a multiple of a memory sector and of a norm's blocks."""
    inputs = footprint(problem, shape.steps).inputs.values()
    reach = max(max(growth.below[1], growth.above[1]) for growth in inputs)
    return -(-reach // 8) * 8

"""The shape of a pass over a 2D grid."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.stencil import Problem

ROOMY = 200  # registers of a thread: two interior tiles of so many leave 112 to a tile of a boundary strip


@dataclass(frozen=True)
class Shape:
    """The cut of a pass: steps, columns per lane, rows loaded ahead, warps per block.

    blocks: thread blocks that shall fit on a multiprocessor at once, which bounds the registers (0: no bound);
    registers: the most of a thread of tiles that compute addresses, else (0: no bound);
    rotate: rows keep their registers and the loop is unrolled; else they move from register to register, which costs
    instructions and saves registers.
    """

    steps: int
    columns: int = 4
    ahead: int = 4
    warps: int = 4
    blocks: int = 0
    registers: int = 0
    rotate: bool = True

    @property
    def width(self) -> int:
        """Columns that a warp loads."""
        return 32 * self.columns

    @property
    def bounds(self) -> str:
        """The words of a kernel's text for its threads and registers."""
        if self.registers and not self.blocks:
            return f"__maxnreg__({self.registers})"
        return f"__launch_bounds__({32 * self.warps}{f', {self.blocks}' if self.blocks else ''})"


def margin(problem: Problem, shape: Shape) -> int:
    """The columns that a strip loses on each side, a multiple of a memory sector and of a norm's blocks."""
    growth = reach(problem, shape.steps)
    return -(-max(growth.below[1], growth.above[1]) // 8) * 8

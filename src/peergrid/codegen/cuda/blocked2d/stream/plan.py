"""The memory of a streaming kernel: rows that arrive in rings in shared memory, rows of every step in registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels, Version, levels
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Dtype
from peergrid.stencil import Problem

FEW = 4  # pointers that are kept in any case


@dataclass(frozen=True)
class Ring:
    """The rows of one input field in shared memory: `rows` of them, the first `start` bytes into the warp's part."""

    version: Version
    rows: int
    start: int


@dataclass(frozen=True)
class StreamPlan2D:
    """The plan of one problem and shape.

    name: of its struct; norm: a field whose change is summed up; pointers: whether they are kept for many fields: else
    addresses are computed, which is slower and takes fewer registers.
    """

    problem: Problem
    shape: Shape
    name: str = "Interior2D"
    norm: str | None = None
    pointers: bool = True

    @cached_property
    def levels(self) -> Levels:
        return levels(self.problem, self.shape.steps, self.norm)

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def dtype(self) -> Dtype:
        return self.problem.grid.dtype

    @property
    def pack(self) -> int:
        """The number of values that one load or store moves."""
        return min(self.shape.columns, 16 // self.problem.itemsize)

    @property
    def rotates(self) -> bool:
        """True where rows keep their registers; with norms, only if the rows of a block are whole periods of that."""
        return self.shape.rotate and not (self.norm and NORM_ROWS % self.levels.period)

    @property
    def period(self) -> int:
        return self.levels.period if self.rotates else 1

    @cached_property
    def rings(self) -> dict[int, Ring]:
        """The ring of every input version, by its number."""
        start = 0
        found: dict[int, Ring] = {}
        for version in self.levels.inputs:
            if self.problem.fields[version.field].full:
                rows = version.depth + self.shape.ahead
                found[version.number] = Ring(version, rows, start)
                start += rows * self.row_bytes
        return found

    @property
    def runs(self) -> bool:
        """True where there is a pointer for each field that runs down its rows."""
        return self.pointers or len(self.rings) + len(self.levels.finals) <= FEW

    @property
    def row_bytes(self) -> int:
        return self.shape.width * self.problem.itemsize

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.shape.warps * sum(ring.rows for ring in self.rings.values()) * self.row_bytes

    @property
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        return self.shared_bytes // self.shape.warps

    @cached_property
    def early(self) -> int:
        """Rows before its first with which a tile begins, as they lie in memory, so that sums end in few iterations."""
        if not self.norm:
            return 0
        above, _ = row_reach(self.problem, self.shape.steps)
        lags = [version.lag for version in self.levels.ends(self.norm)]
        choices = range(min(self.period, self.shape.ahead + 1))
        return min(choices, key=lambda k: len({(k + above + lag - 1) % NORM_ROWS // self.period for lag in lags}))

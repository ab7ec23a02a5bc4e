"""The tiles of a pass over a 1D grid: their size, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import usual_updates
from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.stencil import Problem, footprint

ALIGN = 4  # interior tiles begin and end at multiples: what an access moves lies in one of them


@dataclass(frozen=True)
class Shape1D:
    """steps: of a pass; cells: of a lane of an interior tile; warps: of a block; most: cells of a boundary tile."""

    steps: int
    cells: int = 16
    warps: int = 4
    most: int = 256

    @property
    def width(self) -> int:
        """Cells that a warp loads."""
        return 32 * self.cells


@dataclass(frozen=True)
class Tile1D:
    """The values of the tiles of a pass: ghost cells on both sides, and fields."""

    problem: Problem
    shape: Shape1D

    @cached_property
    def ghosts(self) -> tuple[int, int]:
        """The ghost cells below and above a tile."""
        growth = reach(self.problem, self.shape.steps)
        return growth.below[0], growth.above[0]

    @cached_property
    def margins(self) -> tuple[int, int]:
        """The same for interior tiles, which load whole accesses."""
        below, above = (-(-count // ALIGN) * ALIGN for count in self.ghosts)
        return below, above

    @property
    def useful(self) -> int:
        """Cells of an interior tile."""
        return self.shape.width - sum(self.margins)

    @property
    def segment(self) -> int:
        """Cells of a boundary tile with its ghost cells."""
        return self.shape.most + sum(self.ghosts)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields that boundary tiles hold: those that a pass reads, and those that receivers record."""
        kept = {*footprint(self.problem, self.shape.steps).inputs, *self.problem.receivers_of}
        return tuple(name for name in self.problem.fields if name in kept)

    @cached_property
    def reads(self) -> tuple[dict[str, tuple[int, int]], ...]:
        """For each stage, how far to the left and to the right the interior's updates read each field."""
        return tuple(self._reads(stage) for stage in range(len(self.problem.stages)))

    @cached_property
    def reach(self) -> int:
        """The largest reach of a stage."""
        return max((max(ends) for reads in self.reads for ends in reads.values()), default=0)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a boundary tile's block."""
        arrays = sum(2 if name in self.problem.state else 1 for name in self.fields)
        return arrays * self.segment * self.problem.itemsize

    def _reads(self, stage: int) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for _, assignment in usual_updates(self.problem)[stage].values():
            for read in sorted(assignment.reads, key=lambda read: (read.field, read.offset)):
                left, right = found.get(read.field, (0, 0))
                found[read.field] = max(left, -read.offset[0]), max(right, read.offset[0])
        return found

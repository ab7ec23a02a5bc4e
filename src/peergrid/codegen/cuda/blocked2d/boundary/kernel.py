"""The kernel of boundary tiles, by `skeletons/boundary2d.cuh`: rings, and which updates make a stage where.

The receivers of a tile are `count = variant` entries of `Arguments.receivers`, from `first` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.kernel import TileKernel
from peergrid.codegen.cuda.blocked.reach import reach, row_reach
from peergrid.codegen.cuda.blocked.updates import Applied, Updates, applied_in, ended
from peergrid.codegen.cuda.blocked2d.boundary.rings import BoundaryRings, Ring
from peergrid.codegen.cuda.common.structs import constants, numbers, plan
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.norm import NORM_COLUMNS
from peergrid.codegen.pipeline import PipelineNode, Value

FEW_REGISTERS = 72  # of a thread, that a tile can do with


@dataclass(frozen=True)
class Boundary2D(BoundaryRings):
    """The text of the kernel for the rings of one problem."""

    @property
    def kernel(self) -> TileKernel:
        """The kernel itself: a warp for each step, one to load; registers are bounded so that blocks hide each other's
        waits.
        """
        steps, threads = self.steps, 32 * (self.steps + 1)
        blocks = max(1, min(self.blocks, H200.registers // (FEW_REGISTERS * threads)))
        return TileKernel(
            steps,
            self.norm,
            "edge2d",
            ("boundary2d.cuh", "boundary_norm2d.cuh") if self.norm else ("boundary2d.cuh",),
            (self,),
            "BoundaryTiles<Boundary>",
            "block",
            f"__launch_bounds__({threads}, {blocks})",
            threads,
            self.shared_bytes,
        )

    @cached_property
    def beside(self) -> tuple[int, int]:
        """The columns that a tile loads on its left and right; for a norm, on the left in whole blocks."""
        growth = reach(self.problem, self.steps)
        left = -(-growth.below[1] // NORM_COLUMNS) * NORM_COLUMNS if self.norm else growth.below[1]
        return left, growth.above[1]

    @property
    def applied(self) -> tuple[Applied, ...]:
        """All updates of the stages."""
        return tuple(applied for node in self._nodes for applied in applied_in(self.problem.stages[node.stage]))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        return plan("Boundary", (self._stage(updates, node) for node in self._nodes), *self._members(updates))

    @cached_property
    def _nodes(self) -> tuple[PipelineNode, ...]:
        """The stages that do something: all but those that leave rows where and as they are."""
        return tuple(
            node
            for node in self.step.nodes
            if applied_in(self.problem.stages[node.stage])
            or any(made is not node.before[name] for name, made in node.after.items())
        )

    @cached_property
    def _numbered(self) -> tuple[Ring, ...]:
        """The rings that stages read and write, by their numbers in the text."""
        made = (rows for node in self.step.nodes for rows in node.after.values())
        keys: list[Value | str] = [*self.given.values(), *made, *self.coefficients]
        return tuple(dict.fromkeys(self.rings[key] for key in keys))

    def _number(self, key: Value | str) -> int:
        """The number of the ring of some rows, or of a coefficient."""
        return self._numbered.index(self.rings[key])

    def _stage(self, updates: Updates, node: PipelineNode) -> tuple[str, str]:
        reads, applied, targets = self._rows_read(node), applied_in(self.problem.stages[node.stage]), list(node.after)
        final, field = ended(self.problem, node.stage), updates.number
        writes = (
            (
                field(name),
                self._number(node.after[name]),
                [r[:2] for r in reads].index((name, 0)),
                int(name in final),
            )
            for name in targets
        )
        given = constants(
            LAG=node.lag,
            READS=len(reads),
            WRITTEN=len(targets),
            UPDATES=len(applied),
            ROWS_READ=[(field(name), offset, ring) for name, offset, ring in reads],
            WRITES=writes,
        )
        return given, updates.chosen(applied, targets)

    def _rows_read(self, node: PipelineNode) -> list[tuple[str, int, int]]:
        """The field, the offset and the ring of the rows that a stage reads."""
        offsets = {(read.field, read.offset[0]) for read in self.problem.stages[node.stage].reads}
        offsets |= {(target, 0) for target in node.after}
        found = []
        for name, offset in sorted(offsets):
            if name in node.before:
                found.append((name, offset, self._number(node.before[name])))
            elif name in self.coefficients:
                found.append((name, offset, self._number(name)))
        return found

    def _members(self, updates: Updates) -> tuple[str, ...]:
        number = updates.number
        above, below = row_reach(self.problem, self.steps)
        loads = [(number(name), *found) for name in self.problem.fields if (found := self.loaded(name)) is not None]
        given = constants(
            STEPS=self.steps,
            STAGES=len(self._nodes),
            WIDTH=self.width,
            AHEAD=self.ahead,
            LAG=self.lag,
            STRIDE=self.stride,
            PAD=self.pads[1],
            ROWS_BESIDE=self.pads[0],
            MOST_ROWS=self.rows,
            ABOVE=above,
            BELOW=below,
            LEFT=self.beside[0],
            RIGHT=self.beside[1],
            NORM=number(self.norm) if self.norm else -1,
            NORM_RING=self._number(self.given[self.norm]) if self.norm else -1,
            LOAD_COUNT=len(loads),
            LOADS=loads,
            PROFILE_START=[self.profile_starts.get(name, 0) for name in self.problem.fields],
        )
        return given, constants("Ring", RINGS=self._numbered), numbers(Profiles=map(number, self.profiles))

"""Interior tiles of several time steps in one pass over memory: a plan of `skeletons/stream2d.cuh`, and its kernel.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `blocked.levels`), kept in registers; neighbours
along the row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.boundary`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from peergrid.codegen.cuda.blocked.kernel import TileKernel
from peergrid.codegen.cuda.blocked.levels import Levels, Node, levels
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked.updates import Applied, Updates, applied_inside
from peergrid.codegen.cuda.blocked2d.shape import Shape, margin
from peergrid.codegen.cuda.common.structs import constants, numbers, plan
from peergrid.codegen.norm import NORM_ROWS
from peergrid.codegen.pipeline import Value
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read

FEW = 4  # pointers that are kept in any case
MOST_BYTES = 15 << 9  # of rows and of what is known of fields: compilers leave objects of more than 8 KiB in memory
FIELD_BYTES = 44  # of a thread for each field: pointers, bounds


@dataclass(frozen=True)
class Ring:
    """The rows of one input field in shared memory: `rows` of them, the first `start` bytes into the warp's part."""

    value: Value
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

    @property
    def kernel(self) -> TileKernel:
        """The kernel of the tiles."""
        return TileKernel(
            self.shape.steps,
            self.norm,
            "stream2d",
            ("stream2d.cuh", "norm2d.cuh") if self.norm else ("stream2d.cuh",),
            (self,),
            f"InteriorTiles<{self.name}>",
            "warp",
            self.shape.bounds,
            32 * self.shape.warps,
            self.shared_bytes,
            self.shape.warps,
        )

    # ------------------------------ memory

    @cached_property
    def levels(self) -> Levels:
        return levels(self.problem, self.shape.steps, self.norm)

    @property
    def rotates(self) -> bool:
        """True where rows keep their registers; with norms, only if the rows of a block are whole periods of that."""
        return self.shape.rotate and not (self.norm and NORM_ROWS % self.levels.period)

    @property
    def period(self) -> int:
        """Rows after which a row has the registers of another."""
        return self.levels.period if self.rotates else 1

    @cached_property
    def rings(self) -> dict[str, Ring]:
        """The ring of every field that is loaded."""
        start, found = 0, dict[str, Ring]()
        for value in self.levels.inputs:
            if self.problem.fields[value.field].full:
                rows = value.depth + self.shape.ahead
                found[value.field] = Ring(value, rows, start)
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
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        return sum(ring.rows for ring in self.rings.values()) * self.row_bytes

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.shape.warps * self.warp_bytes

    @cached_property
    def reach(self) -> int:
        """The columns that a cell reads to either side."""
        return max((1, *(abs(read.offset[1]) for node in self.nodes for read in self._reads(node))))

    @cached_property
    def loaded_rows(self) -> tuple[int, ...]:
        """The rows of each field that a thread has from the rings at once."""
        return tuple(self.rings[name].value.depth if name in self.rings else 0 for name in self.problem.fields)

    @property
    def in_registers(self) -> bool:
        """True where compilers keep a thread's rows in registers, with what it gets of its neighbours."""
        rows = len(self.levels.made) * self.levels.period + sum(self.loaded_rows)
        kept = rows * (self.shape.columns + 2 * self.reach) * self.problem.itemsize
        return kept + FIELD_BYTES * len(self.problem.fields) <= MOST_BYTES

    @cached_property
    def early(self) -> int:
        """Rows before its first with which a tile begins, as they lie in memory, so that sums end in few iterations."""
        if not self.norm:
            return 0
        above, _ = row_reach(self.problem, self.shape.steps)
        lags = [value.lag for value in self.levels.ends(self.norm)]
        choices = range(min(self.period, self.shape.ahead + 1))
        return min(choices, key=lambda k: len({(k + above + lag - 1) % NORM_ROWS // self.period for lag in lags}))

    # ------------------------------ text

    @property
    def applied(self) -> tuple[Applied, ...]:
        """The updates that apply, each with its assignments that do."""
        return tuple(applied for node in self.nodes for applied in self._applied(node))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        return plan(self.name, self._stages(updates), *self._members(updates))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of one step."""
        return tuple(node for node in self.levels.nodes if node.step == 0)

    @property
    def _count(self) -> int:
        """The stages; one that does nothing where interior tiles change nothing."""
        return max(1, len(self.nodes))

    def _applied(self, node: Node) -> Iterator[Applied]:
        yield from applied_inside(self.problem, node.stage)

    def _stages(self, updates: Updates) -> Iterator[tuple[str, ...]]:
        """The members of each stage."""
        first = 0
        for number, node in enumerate(self.nodes):
            yield constants(FIRST=first, WRITTEN=len(node.writes)), self._stage(updates, number, node)
            first += len(node.writes)
        if not self.nodes:
            yield constants(FIRST=0, WRITTEN=0), self._idle(updates)

    def _stage(self, updates: Updates, number: int, node: Node) -> str:
        """The further members of a stage: how a cell is updated."""
        return updates.at_once(self._applied(node), [write.new.field for write in node.writes])

    def _idle(self, updates: Updates) -> str:
        """The further members of a stage that does nothing."""
        return updates.at_once((), ())

    def _reads(self, node: Node) -> list[Read]:
        """The reads of a node of other rows and columns, in the order of its assignments."""
        reads = (r for write in node.writes for r in sorted(write.assignment.reads, key=str))
        return list(dict.fromkeys(r for r in reads if self.problem.fields[r.field].full))

    def _more(self) -> str:
        """Further constants."""
        return ""

    def _before(self) -> Iterator[Sequence[int]]:
        """For each stage, and for the end of a step, the result that a field's values are then; of the step before, if
        it is `RESULTS` or more; -1 for what no stage writes.
        """
        results = [(number, write.new.field) for number, node in enumerate(self.nodes) for write in node.writes]
        for stage in range(self._count + 1):
            found = []
            for name in self.problem.fields:
                own = [k for k, (number, target) in enumerate(results) if target == name and number < stage]
                last = [k + len(results) for k, (_, target) in enumerate(results) if target == name]
                found.append(own[-1] if own else last[-1] if last else -1)
            yield found

    def _members(self, updates: Updates) -> tuple[str, ...]:
        """The members of the plan."""
        fields, field, rings = tuple(self.problem.fields), updates.number, self.rings
        above, below = row_reach(self.problem, self.shape.steps)
        sizes = sorted({ring.rows for ring in rings.values()})
        reads = [self._reads(node) for node in self.nodes]
        every = [r for some in reads for r in some]
        steps = range(self.shape.steps)
        *first_loaded, loaded_rows = accumulate(self.loaded_rows, initial=0)
        given = constants(
            STEPS=self.shape.steps,
            STAGES=self._count,
            FIELDS=len(fields),
            RESULTS=max(1, sum(len(node.writes) for node in self.nodes)),
            RINGS=len(sizes),
            COLUMNS=self.shape.columns,
            REACH=self.reach,
            MARGIN=margin(self.problem, self.shape),
            ABOVE=above,
            BELOW=below,
            AHEAD=self.shape.ahead,
            KEPT=self.levels.period,
            LOADED_ROWS=max(1, loaded_rows),
            FIRST_LOADED=first_loaded,
            LAST_LAG=self.levels.lag,
            NORM=fields.index(self.norm) if self.norm else -1,
            EARLY=self.early,
            WARP_BYTES=self.warp_bytes,
            LAG=([node.lag for node in self.levels.nodes if node.step == step] or [0] for step in steps),
            BEFORE=self._before(),
            READS=[(field(r.field), *r.offset) for r in every] or [(-1, 0, 0)],
            FIRST_READ=[sum(map(len, reads[:k])) for k in range(self._count + 1)],
            STAGE_OF=[number for number, node in enumerate(self.nodes) for _ in node.writes] or [0],
            RING_ROWS=sizes,
            RING=[sizes.index(rings[name].rows) if name in rings else 0 for name in fields],
            START=[rings[name].start // self.row_bytes if name in rings else 0 for name in fields],
            ROTATES=self.rotates,
            POINTERS=self.runs,
        )
        stored = [field(value.field) for value in self.levels.finals]
        return given, self._more(), numbers(Loaded=map(field, rings), Stored=stored)

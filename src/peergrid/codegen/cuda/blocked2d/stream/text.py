"""A plan for `skeletons/stream2d.cuh`, as text: constants, and which updates make a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Node
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked.updates import Applied, Updates, applied_inside
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.common.structs import constants, numbers, picked, struct
from peergrid.stencil.expr import Read


@dataclass(frozen=True)
class PlanText2D:
    """The text of one plan."""

    plan: StreamPlan2D

    @property
    def applied(self) -> tuple[Applied, ...]:
        """The updates that apply, each with its assignments that do."""
        return tuple(applied for node in self.nodes for applied in self._applied(node))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        return "\n".join((*self._stages(updates), self._plan(updates)))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of one step."""
        return tuple(node for node in self.plan.levels.nodes if node.step == 0)

    @property
    def _count(self) -> int:
        """The stages; one that does nothing where interior tiles change nothing."""
        return max(1, len(self.nodes))

    def _applied(self, node: Node) -> Iterator[Applied]:
        yield from applied_inside(self.plan.problem, node.stage)

    def _stages(self, updates: Updates) -> Iterator[str]:
        first = 0
        for number, node in enumerate(self.nodes):
            given = constants(FIRST=first, WRITTEN=len(node.writes))
            yield struct(f"{self.plan.name}Stage{number}", given, self._stage(updates, number, node))
            first += len(node.writes)
        if not self.nodes:
            nothing = constants(FIRST=0, WRITTEN=0)
            yield struct(f"{self.plan.name}Stage0", nothing, updates.at_once((), ()))

    def _stage(self, updates: Updates, number: int, node: Node) -> str:
        """The further members of a stage: how a cell is updated."""
        return updates.at_once(self._applied(node), [write.new.field for write in node.writes])

    def _reads(self, node: Node) -> list[Read]:
        """The reads of a node of other rows and columns, in the order of its assignments."""
        full = self.plan.problem.fields
        reads = (r for write in node.writes for r in sorted(write.assignment.reads, key=str))
        return list(dict.fromkeys(r for r in reads if full[r.field].full))

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
            for name in self.plan.arguments.fields:
                own = [k for k, (number, target) in enumerate(results) if target == name and number < stage]
                last = [k + len(results) for k, (_, target) in enumerate(results) if target == name]
                found.append(own[-1] if own else last[-1] if last else -1)
            yield found

    def _plan(self, updates: Updates) -> str:
        plan, fields, names = self.plan, self.plan.arguments.fields, updates.names
        above, below = row_reach(plan.problem, plan.shape.steps)
        rings = {ring.version.field: ring for ring in plan.rings.values()}
        sizes = sorted({ring.rows for ring in rings.values()})
        reads = [self._reads(node) for node in self.nodes]
        every = [r for some in reads for r in some]
        lags = (
            [node.lag for node in plan.levels.nodes if node.step == step] or [0] for step in range(plan.shape.steps)
        )
        given = constants(
            STEPS=plan.shape.steps,
            STAGES=self._count,
            FIELDS=len(fields),
            RESULTS=max(1, sum(len(node.writes) for node in self.nodes)),
            RINGS=len(sizes),
            COLUMNS=plan.shape.columns,
            REACH=max((1, *(abs(r.offset[1]) for r in every))),
            MARGIN=margin(plan.problem, plan.shape),
            ABOVE=above,
            BELOW=below,
            AHEAD=plan.shape.ahead,
            KEPT=plan.levels.period,
            MOST_ROWS=max(version.depth for version in plan.levels.inputs),
            LAST_LAG=plan.levels.lag,
            NORM=fields.index(plan.norm) if plan.norm else -1,
            EARLY=plan.early,
            WARP_BYTES=plan.warp_bytes,
            LAG=lags,
            BEFORE=self._before(),
            READS=[(names[r.field], *r.offset) for r in every] or [(-1, 0, 0)],
            FIRST_READ=[sum(map(len, reads[:k])) for k in range(self._count + 1)],
            STAGE_OF=[number for number, node in enumerate(self.nodes) for _ in node.writes] or [0],
            RING_ROWS=sizes,
            RING=[sizes.index(rings[name].rows) if name in rings else 0 for name in fields],
            START=[rings[name].start // plan.row_bytes if name in rings else 0 for name in fields],
            ROTATES=plan.rotates,
            POINTERS=plan.runs,
        )
        lists = numbers(
            Loaded=[names[ring.version.field] for ring in plan.rings.values()],
            Stored=[names[version.field] for version in plan.levels.finals],
        )
        stages = picked("Stage", (f"{plan.name}Stage{number}" for number in range(self._count)))
        return struct(plan.name, given, self._more(), lists, stages)

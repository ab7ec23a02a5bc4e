"""A plan for `skeletons/stream2d.cuh`, as text: constants, and which updates make a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Node, plain_updates
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.updates import Applied, Updates
from peergrid.codegen.cuda.common.names import flag, listed
from peergrid.stencil.expr import Read

STAGE = """\
struct {name}Stage{number} {{
  static constexpr int FIRST = {first}, WRITTEN = {written};
  template <class C> __device__ __forceinline__ static void update(const C& cell, R* const next) {{
{calls}
  }}
}};
"""

PLAN = """\
struct {name} {{
  static constexpr int STEPS = {steps}, STAGES = {stages}, FIELDS = {fields}, RESULTS = {results}, RINGS = {rings};
  static constexpr int COLUMNS = {columns}, REACH = {reach}, MARGIN = {margin}, ABOVE = {above}, BELOW = {below};
  static constexpr int AHEAD = {ahead}, KEPT = {kept}, MOST_ROWS = {most_rows}, LAST_LAG = {last_lag};
  static constexpr int NORM = {norm}, EARLY = {early};
  static constexpr bool ROTATES = {rotates}, POINTERS = {pointers};
  static constexpr int LAG[STEPS][STAGES] = {{{lags}}};
  static constexpr int BEFORE[STAGES + 1][FIELDS] = {{{before}}};
  static constexpr int READS[][3] = {{{reads}}};
  static constexpr int FIRST_READ[STAGES + 1] = {{{first_read}}}, STAGE_OF[RESULTS] = {{{stage_of}}};
  static constexpr int RING_ROWS[RINGS] = {{{ring_rows}}};
  static constexpr int RING[FIELDS] = {{{ring}}}, START[FIELDS] = {{{start}}};
{more}  using Loaded = Numbers<{loaded}>;
  using Stored = Numbers<{stored}>;
  template <int NUMBER> using Stage = Pick<NUMBER, {structs}>;
}};
"""


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
        """The stages; one that does nothing where plain tiles change nothing."""
        return max(1, len(self.nodes))

    def _applied(self, node: Node) -> Iterator[Applied]:
        plain = plain_updates(self.plan.problem)[node.stage]
        for update in dict.fromkeys(update for update, _ in plain.values()):
            yield update, tuple(assignment for other, assignment in plain.values() if other is update)

    def _stages(self, updates: Updates) -> Iterator[str]:
        first = 0
        for number, node in enumerate(self.nodes):
            yield self._stage(updates, number, node, first)
            first += len(node.writes)
        if not self.nodes:
            yield STAGE.format(name=self.plan.name, number=0, first=0, written=0, calls="")

    def _stage(self, updates: Updates, number: int, node: Node, first: int) -> str:
        targets = [write.new.field for write in node.writes]
        calls = "\n".join(f"    {updates.call(applied, targets)}" for applied in self._applied(node))
        return STAGE.format(name=self.plan.name, number=number, first=first, written=len(targets), calls=calls)

    def _reads(self, node: Node) -> list[Read]:
        """The reads of a node of other rows and columns, in the order of its assignments."""
        full = self.plan.problem.fields
        reads = (r for write in node.writes for r in sorted(write.assignment.reads, key=str))
        return list(dict.fromkeys(r for r in reads if full[r.field].full))

    def _more(self) -> str:
        """Further constants."""
        return ""

    def _before(self) -> Iterator[str]:
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
            yield listed(found, "{}")

    def _plan(self, updates: Updates) -> str:
        plan, fields, names = self.plan, self.plan.arguments.fields, updates.names
        above, below = row_reach(plan.problem, plan.shape.steps)
        rings = {ring.version.field: ring for ring in plan.rings.values()}
        sizes = sorted({ring.rows for ring in rings.values()})
        reads = [self._reads(node) for node in self.nodes]
        every = [r for some in reads for r in some]
        lags = (
            listed([node.lag for node in plan.levels.nodes if node.step == step] or [0], "{}")
            for step in range(plan.shape.steps)
        )
        return PLAN.format(
            name=self.plan.name,
            steps=plan.shape.steps,
            stages=self._count,
            fields=len(fields),
            results=max(1, sum(len(node.writes) for node in self.nodes)),
            rings=len(sizes),
            columns=plan.shape.columns,
            reach=max((1, *(abs(r.offset[1]) for r in every))),
            margin=margin(plan.problem, plan.shape),
            ahead=plan.shape.ahead,
            above=above,
            below=below,
            kept=plan.levels.period,
            most_rows=max(version.depth for version in plan.levels.inputs),
            last_lag=plan.levels.lag,
            norm=fields.index(plan.norm) if plan.norm else -1,
            early=plan.early,
            rotates=flag(plan.rotates),
            pointers=flag(plan.runs),
            lags=listed(lags),
            before=listed(self._before()),
            reads=listed(f"{{{names[r.field]}, {r.offset[0]}, {r.offset[1]}}}" for r in every) or "{-1, 0, 0}",
            first_read=listed(sum(map(len, reads[:k])) for k in range(self._count + 1)),
            stage_of=listed([number for number, node in enumerate(self.nodes) for _ in node.writes] or [0]),
            ring_rows=listed(sizes),
            ring=listed(sizes.index(rings[name].rows) if name in rings else 0 for name in fields),
            start=listed(rings[name].start // plan.row_bytes if name in rings else 0 for name in fields),
            more=self._more(),
            loaded=listed(names[ring.version.field] for ring in plan.rings.values()),
            stored=listed(names[version.field] for version in plan.levels.finals),
            structs=listed(f"{self.plan.name}Stage{number}" for number in range(self._count)),
        )

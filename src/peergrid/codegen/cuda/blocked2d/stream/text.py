"""What is written for one problem beside the skeleton `stream2d.cuh`: names of its fields, its updates, a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Node, plain_updates
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.common.expressions import cell_text
from peergrid.codegen.cuda.common.names import identifiers
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment, Update

Applied = tuple[Update, tuple[Assignment, ...]]
"""An update, and those of its assignments that apply in the interior."""

ACCESS = """\
template <int I, int J, class Cell> __device__ __forceinline__ R {name}(const Cell& cell) {{
  return cell.template {how}, I, J>();
}}
"""

VALUE = """\
template <class Cell> __device__ __forceinline__ R {name}(const Cell& cell) {{ return {value}; }}
"""

UPDATE = """\
template <class Cell> __device__ __forceinline__ void {name}(const Cell& cell, {results}) {{
{lines}
}}
"""

STAGE = """\
struct Stage{number} {{
  static constexpr int READ = {read}, WRITTEN = {written};
  static constexpr Read READS[] = {{{reads}}};
  static constexpr int WRITES[] = {{{writes}}};
  template <class Cell> __device__ __forceinline__ static void update(const Cell& cell, R (&next)[WRITTEN]) {{
{calls}
  }}
}};
"""

PLAN = """\
struct Plan {{
  static constexpr int STEPS = {steps}, STAGES = {stages}, FIELDS = {fields};
  static constexpr int COLUMNS = {columns}, MARGIN = {margin}, AHEAD = {ahead}, ABOVE = {above}, BELOW = {below};
  static constexpr int KEPT = {kept}, NORM = {norm}, EARLY = {early};
  static constexpr bool ROTATES = {rotates}, POINTERS = {pointers};
  static constexpr int LAG[STEPS][STAGES] = {{{lags}}};
  static constexpr int RING_ROWS[FIELDS] = {{{rings}}};
  static constexpr bool STATE[FIELDS] = {{{state}}};
  template <int NUMBER> using Stage = Pick<NUMBER, {structs}>;
}};
"""


@dataclass(frozen=True)
class StreamText2D:
    """The text of one plan, in a namespace of its own."""

    plan: StreamPlan2D
    space: str

    @property
    def source(self) -> str:
        """The whole namespace."""
        parts = (*self._accesses(), *self._updates(), *self._stages(), self._plan())
        return f"namespace {self.space} {{\n" + "\n".join((self._fields(), *parts)) + f"}}  // namespace {self.space}\n"

    @cached_property
    def names(self) -> dict[str, str]:
        """Identifiers of fields."""
        return identifiers(self.plan.problem.fields)

    @cached_property
    def values(self) -> dict[str, str]:
        """Identifiers of parameters and signals."""
        return identifiers((*self.plan.arguments.params, *self.plan.arguments.signals), self.names.values())

    @cached_property
    def updates(self) -> dict[Applied, str]:
        """Identifiers of the updates that apply in the interior, each with its assignments there."""
        found: dict[Applied, str] = {}
        taken = {*self.names.values(), *self.values.values()}
        for node in self._nodes:
            for update, assignments in self._applied(node):
                if (update, assignments) not in found:
                    (name,) = identifiers((update.name,), taken).values()
                    found[update, assignments] = name
                    taken.add(name)
        return found

    @property
    def _nodes(self) -> tuple[Node, ...]:
        """The nodes of one step."""
        return tuple(node for node in self.plan.levels.nodes if node.step == 0)

    def _applied(self, node: Node) -> Iterator[Applied]:
        """The updates of a node, each with its assignments, in their order."""
        plain = plain_updates(self.plan.problem)[node.stage]
        updates = dict.fromkeys(update for update, _ in plain.values())
        for update in updates:
            yield update, tuple(assignment for other, assignment in plain.values() if other is update)

    def _fields(self) -> str:
        return f"namespace field {{\nenum {{ {', '.join(self.names.values())} }};\n}}\n"

    def _accesses(self) -> Iterator[str]:
        """How an update reads the fields and values that it names."""
        yield "// What an update reads: a field at an offset, a parameter, the sample of a signal at the step.\n"
        read = {r.field for node in self._nodes for write in node.writes for r in write.assignment.reads}
        for name in (name for name in self.plan.problem.fields if name in read):
            described = self.plan.problem.fields[name]
            number = f"field::{self.names[name]}"
            how = f"at<{number}" if described.full else f"profile<{number}, {described.axes[0]}"
            yield ACCESS.format(name=self.names[name], how=how)
        for place, key in enumerate(self.plan.arguments.params):
            yield VALUE.format(name=self.values[key], value=f"cell.a.params[{place}]")
        for place, key in enumerate(self.plan.arguments.signals):
            yield VALUE.format(name=self.values[key], value=f"cell.signal({place})")

    def _updates(self) -> Iterator[str]:
        for (_, assignments), name in self.updates.items():
            results = ", ".join(f"R& next_{self.names[a.target]}" for a in assignments)
            yield UPDATE.format(name=name, results=results, lines="\n".join(self._lines(assignments)))

    def _lines(self, assignments: Sequence[Assignment]) -> Iterator[str]:
        """The statements of an update."""
        names = [f"next_{self.names[assignment.target]}" for assignment in assignments]
        results = cell_text(
            [assignment.value for assignment in assignments],
            lambda read: f"{self.names[read.field]}<{read.offset[0]}, {read.offset[1]}>(cell)",
            lambda key: f"{self.values[key]}(cell)",
            lambda signal: f"{self.values[signal]}(cell)",
            self.plan.dtype,
            "value_",
            names,
        )
        for name, result in zip(names, results, strict=True):
            yield from (f"  {line}" for line in result.declarations)
            yield f"  {name} = {result.value};"

    def _stages(self) -> Iterator[str]:
        for number, node in enumerate(self._nodes):
            targets = [write.new.field for write in node.writes]
            reads = self._reads(node)
            calls = (self._call(applied, targets) for applied in self._applied(node))
            yield STAGE.format(
                number=number,
                read=len(reads),
                written=len(targets),
                reads=", ".join(f"{{field::{self.names[r.field]}, {r.offset[0]}, {r.offset[1]}}}" for r in reads)
                or "{-1, 0, 0}",
                writes=", ".join(f"field::{self.names[name]}" for name in targets),
                calls="\n".join(calls),
            )

    def _call(self, applied: Applied, targets: list[str]) -> str:
        results = ", ".join(f"next[{targets.index(assignment.target)}]" for assignment in applied[1])
        return f"    {self.updates[applied]}(cell, {results});"

    def _reads(self, node: Node) -> list[Read]:
        """What a node reads of other rows and columns, in the order of its assignments."""
        full = self.plan.problem.fields
        reads = (r for write in node.writes for r in sorted(write.assignment.reads, key=str))
        return list(dict.fromkeys(r for r in reads if full[r.field].full))

    def _plan(self) -> str:
        plan, fields = self.plan, self.plan.arguments.fields
        above, below = row_reach(plan.problem, plan.shape.steps)
        rings = {ring.version.field: ring.rows for ring in plan.rings.values()}
        lags = [
            "{" + ", ".join(str(node.lag) for node in plan.levels.nodes if node.step == step) + "}"
            for step in range(plan.shape.steps)
        ]
        return PLAN.format(
            steps=plan.shape.steps,
            stages=len(self._nodes),
            fields=len(fields),
            columns=plan.shape.columns,
            margin=margin(plan.problem, plan.shape),
            ahead=plan.shape.ahead,
            above=above,
            below=below,
            kept=plan.levels.period,
            norm=fields.index(plan.norm) if plan.norm else -1,
            early=plan.early,
            rotates=str(plan.rotates).lower(),
            pointers=str(plan.runs).lower(),
            lags=", ".join(lags),
            rings=", ".join(str(rings.get(name, 0)) for name in fields),
            state=", ".join(str(name in plan.problem.state).lower() for name in fields),
            structs=", ".join(f"Stage{number}" for number in range(len(self._nodes))),
        )

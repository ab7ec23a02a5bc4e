"""A plan for `skeletons/strip2d.cuh`, as text: that of interior tiles, and which updates apply how far from the
side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.interior import FAR
from peergrid.codegen.cuda.blocked.levels import Node
from peergrid.codegen.cuda.blocked.updates import Applied, Updates
from peergrid.codegen.cuda.blocked2d.stream.text import PlanText2D
from peergrid.codegen.cuda.blocked2d.strips.plan import StripPlan2D
from peergrid.codegen.cuda.blocked2d.strips.region import Choice
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.common.structs import constants
from peergrid.stencil.expr import Read

UPDATE = """\
template <int CHOICE, class C> __device__ __forceinline__ static void update(const C& cell) {{
{calls}
}}
"""


@dataclass(frozen=True)
class StripText2D(PlanText2D):
    """The text of the plan of a strip's tiles."""

    plan: StripPlan2D

    def _choices(self, node: Node) -> tuple[Choice, ...]:
        """The updates that may apply to a cell, of which one does or none."""
        return self.plan.strip.choices[node.stage]

    def _applied(self, node: Node) -> Iterator[Applied]:
        for choice in self._choices(node):
            yield choice.update, choice.update.assignments

    def _stage(self, updates: Updates, number: int, node: Node) -> str:
        choices, targets = self._choices(node), [write.new.field for write in node.writes]
        given = constants(
            CHOICES=len(choices),
            FIRST_CHOICE=sum(len(self._choices(other)) for other in self.nodes[:number]),
            BOUNDS=[(-FAR if c.least is None else c.least, FAR if c.most is None else c.most) for c in choices],
            FIELD_OF=[updates.names[name] for name in targets],
            CARRIED=[_carried(choices, name) for name in targets],
        )
        calls = (
            f"  if constexpr (CHOICE == {place}) {self._call(updates, choice, targets)}"
            for place, choice in enumerate(choices)
        )
        return "\n".join((given, UPDATE.format(calls="\n".join(calls))))

    def _call(self, updates: Updates, choice: Choice, targets: list[str]) -> str:
        name = updates.functions[choice.update, choice.update.assignments]
        results = listed(f"cell.template next<{targets.index(target)}>()" for target in choice.update.targets)
        return f"{name}(cell, {results});"

    def _reads(self, node: Node) -> list[Read]:
        full = self.plan.problem.fields
        reads = {r for choice in self._choices(node) for r in choice.update.reads if full[r.field].full}
        return sorted(reads, key=str)

    def _more(self) -> str:
        """The side and the choices of a strip, and its profiles along columns."""
        fields = self.plan.problem.fields
        reads = {r for node in self.nodes for choice in self._choices(node) for r in choice.update.reads}
        profiles = [r for r in sorted(reads, key=str) if fields[r.field].axes == (1,)]
        return constants(
            AXIS=self.plan.strip.axis,
            ALL_CHOICES=sum(len(self._choices(node)) for node in self.nodes),
            PROFILE_COUNT=len(profiles),
            MOST_PROFILES=max(1, len(profiles)),
            PROFILES=[(self.plan.arguments.fields.index(r.field), r.offset[1]) for r in profiles] or [(0, 0)],
        )


def _carried(choices: Sequence[Choice], target: str) -> bool:
    """True where there are cells where no update changes a result."""
    found = (choice for choice in choices if target in choice.update.targets)
    return all(choice.least is not None or choice.most is not None for choice in found)

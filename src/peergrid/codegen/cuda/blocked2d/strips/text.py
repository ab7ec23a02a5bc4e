"""A plan for `skeletons/strip2d.cuh`, as text: that of plain tiles, and which updates apply how far from the side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Node
from peergrid.codegen.cuda.blocked.plain import FAR
from peergrid.codegen.cuda.blocked2d.stream.text import PlanText2D
from peergrid.codegen.cuda.blocked2d.strips.plan import StripPlan2D
from peergrid.codegen.cuda.blocked2d.strips.region import Choice
from peergrid.codegen.cuda.blocked2d.updates import Applied, Updates
from peergrid.codegen.cuda.common.names import flags, listed
from peergrid.stencil.expr import Read

STAGE = """\
struct {name}Stage{number} {{
  static constexpr int FIRST = {first}, WRITTEN = {written}, CHOICES = {choices}, FIRST_CHOICE = {first_choice};
  static constexpr int BOUNDS[CHOICES][2] = {{{bounds}}}, FIELD_OF[WRITTEN] = {{{fields}}};
  static constexpr bool CARRIED[WRITTEN] = {{{carried}}};
  template <int CHOICE, class C> __device__ __forceinline__ static void update(const C& cell) {{
{calls}
  }}
}};
"""

MORE = """\
  static constexpr int AXIS = {axis}, ALL_CHOICES = {choices};
  static constexpr int PROFILE_COUNT = {count}, MOST_PROFILES = {most}, PROFILES[MOST_PROFILES][2] = {{{profiles}}};
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

    def _stage(self, updates: Updates, number: int, node: Node, first: int) -> str:
        choices, targets = self._choices(node), [write.new.field for write in node.writes]
        return STAGE.format(
            name=self.plan.name,
            number=number,
            first=first,
            written=len(targets),
            choices=len(choices),
            first_choice=sum(len(self._choices(other)) for other in self.nodes[:number]),
            bounds=listed(
                f"{{{-FAR if c.least is None else c.least}, {FAR if c.most is None else c.most}}}" for c in choices
            ),
            fields=listed(updates.names[name] for name in targets),
            carried=flags(_carried(choices, name) for name in targets),
            calls="\n".join(
                f"    if constexpr (CHOICE == {place}) {self._call(updates, choice, targets)}"
                for place, choice in enumerate(choices)
            ),
        )

    def _call(self, updates: Updates, choice: Choice, targets: list[str]) -> str:
        name = updates.functions[choice.update, choice.update.assignments]
        results = listed(f"cell.template next<{targets.index(target)}>()" for target in choice.update.targets)
        return f"{name}(cell, {results});"

    def _reads(self, node: Node) -> list[Read]:
        full = self.plan.problem.fields
        reads = {r for choice in self._choices(node) for r in choice.update.reads if full[r.field].full}
        return sorted(reads, key=str)

    def _more(self) -> str:
        fields = self.plan.problem.fields
        reads = {r for node in self.nodes for choice in self._choices(node) for r in choice.update.reads}
        profiles = [r for r in sorted(reads, key=str) if fields[r.field].axes == (1,)]
        places = [f"{{{self.plan.arguments.fields.index(r.field)}, {r.offset[1]}}}" for r in profiles]
        return MORE.format(
            axis=self.plan.strip.axis,
            choices=sum(len(self._choices(node)) for node in self.nodes),
            count=len(profiles),
            most=max(1, len(profiles)),
            profiles=listed(places),
        )


def _carried(choices: Sequence[Choice], target: str) -> bool:
    """True where there are cells where no update changes a result."""
    found = (choice for choice in choices if target in choice.update.targets)
    return all(choice.least is not None or choice.most is not None for choice in found)

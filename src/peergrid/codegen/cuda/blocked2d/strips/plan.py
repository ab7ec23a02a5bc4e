"""Several time steps of a 2D problem in one pass over memory: the tiles of a strip along one of the grid's sides.

As in `blocked2d.stream` one warp streams down the rows of a strip and holds the rows of every step in registers; where
the interior has one update for a cell, a strip has a few, selected by the distance from the side (see `region`): rows
of a strip along axis 0 branch together, columns of a strip along axis 1 select. All strips are in one kernel (see
`kernel`); `variant` of a tile says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.blocked.levels import Levels, Node, levels_of
from peergrid.codegen.cuda.blocked.updates import Applied, Updates
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.strips.region import BoundaryStrip, Choice
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.common.structs import constants
from peergrid.codegen.pipeline import StageAccess, pipeline, span_of
from peergrid.codegen.regions import FAR
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment
from peergrid.stencil.remember import remembered

UPDATE = """\
template <int CHOICE, class C> __device__ __forceinline__ static void update(const C& cell) {{
{calls}
}}
"""


@dataclass(frozen=True)
class StripPlan2D(StreamPlan2D):
    """The plan of one strip's tiles."""

    strip: BoundaryStrip = field(kw_only=True)

    @cached_property
    def levels(self) -> Levels:
        return strip_levels(self.problem, self.shape.steps, self.strip, self.norm)

    @cached_property
    def useful(self) -> int:
        """Columns of a tile: what a strip leaves when it loses its margins; one that reaches the side loses one, unless
        columns wrap.
        """
        lost, strip = margin(self.problem, self.shape), self.strip
        side = strip.axis == 1 and not self.problem.grid.periodic[1]
        alone = side and strip.box.shape[1] <= self.shape.width - lost
        return self.shape.width - (lost if alone else 2 * lost)

    def _choices(self, node: Node) -> tuple[Choice, ...]:
        """The updates that may apply to a cell, of which one does or none."""
        return self.strip.choices[node.stage]

    def _applied(self, node: Node) -> Iterator[Applied]:
        for choice in self._choices(node):
            yield choice.update, choice.update.assignments

    def _stage(self, updates: Updates, number: int, node: Node) -> str:
        choices, targets = self._choices(node), [write.new.field for write in node.writes]
        given = constants(
            CHOICES=len(choices),
            FIRST_CHOICE=sum(len(self._choices(other)) for other in self.nodes[:number]),
            BOUNDS=[(-FAR if c.least is None else c.least, FAR if c.most is None else c.most) for c in choices],
            FIELD_OF=map(updates.number, targets),
            CARRIED=[_carried(choices, name) for name in targets],
        )
        calls = (
            f"  if constexpr (CHOICE == {place}) {self._call(updates, choice, targets)}"
            for place, choice in enumerate(choices)
        )
        return "\n".join((given, UPDATE.format(calls="\n".join(calls))))

    def _idle(self, updates: Updates) -> str:
        return constants(CHOICES=0, FIRST_CHOICE=0)

    def _call(self, updates: Updates, choice: Choice, targets: list[str]) -> str:
        name = updates.functions[choice.update, choice.update.assignments]
        results = listed(f"cell.template next<{targets.index(target)}>()" for target in choice.update.targets)
        return f"{name}(cell, {results});"

    def _reads(self, node: Node) -> list[Read]:
        full = self.problem.fields
        reads = {r for choice in self._choices(node) for r in choice.update.reads if full[r.field].full}
        return sorted(reads, key=str)

    def _more(self) -> str:
        """The side and the choices of a strip, and its profiles along columns."""
        fields = list(self.problem.fields)
        reads = {r for node in self.nodes for choice in self._choices(node) for r in choice.update.reads}
        profiles = [r for r in sorted(reads, key=str) if self.problem.fields[r.field].axes == (1,)]
        return constants(
            AXIS=self.strip.axis,
            ALL_CHOICES=max(1, sum(len(self._choices(node)) for node in self.nodes)),
            PROFILE_COUNT=len(profiles),
            MOST_PROFILES=max(1, len(profiles)),
            PROFILES=[(fields.index(r.field), r.offset[1]) for r in profiles] or [(0, 0)],
        )


@remembered(256)
def strip_levels(problem: Problem, steps: int, strip: BoundaryStrip, norm: str | None) -> Levels:
    """The nodes of a strip: as `blocked.levels`, with several updates to a stage.

    One of these is selected cell by cell, so every value keeps what any of them reads, and the row that a cell
    which none of them changes is carried over from.

    norm: a field whose rows before each step are kept until its row after the step is known.
    """
    accesses = [_access(problem, number, choices) for number, choices in enumerate(strip.choices) if choices]
    made = pipeline(_fields(problem, strip), accesses, steps, carry=True, kept=norm)
    return levels_of(problem, made, list(map(_assignments, strip.choices)))


def _access(problem: Problem, number: int, choices: tuple[Choice, ...]) -> StageAccess:
    """The rows that any of a stage's updates reads."""
    reads = (r for choice in choices for r in choice.update.reads if problem.fields[r.field].full)
    return StageAccess(number, span_of((r.field, r.offset[0]) for r in reads), tuple(_assignments(choices)))


def _assignments(choices: tuple[Choice, ...]) -> dict[str, Assignment]:
    return {a.target: a for choice in choices for a in choice.update.assignments}


def _fields(problem: Problem, strip: BoundaryStrip) -> list[str]:
    """The fields that the strip reads, and those whose values it has to hand on."""
    named = {name for name in problem.state if unbounded(problem, problem.fields[name].box).overlaps(strip.box)}
    named |= {r.field for stage in strip.choices for c in stage for r in c.update.reads if problem.fields[r.field].full}
    named |= {target for stage in strip.choices for c in stage for target in c.update.targets}
    return [name for name in problem.fields if name in named]


def _carried(choices: Sequence[Choice], target: str) -> bool:
    """True where there are cells where no update changes a result."""
    found = (choice for choice in choices if target in choice.update.targets)
    return all(choice.least is not None or choice.most is not None for choice in found)

"""Several time steps of a 2D problem in one pass over memory: the tiles of a strip along one of the grid's sides.

As in `blocked2d.stream` one warp streams down the rows of a strip and holds the rows of every step in registers; where
the interior has one update for a cell, a strip has a few, selected by the distance from the side (see `region`): rows
of a strip along axis 0 branch together, columns of a strip along axis 1 select. All strips are in one kernel (see
`kernel`); `variant` of a tile says whose it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.blocked.levels import Levels, node_of
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.strips.region import BoundaryStrip, Choice
from peergrid.codegen.pipeline import StageAccess, pipeline, span_of
from peergrid.stencil import Problem
from peergrid.stencil.problem import Assignment
from peergrid.stencil.remember import remembered


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


@remembered(256)
def strip_levels(problem: Problem, steps: int, strip: BoundaryStrip, norm: str | None = None) -> Levels:
    """The nodes of a strip: as `blocked.levels`, with several updates to a stage.

    One of these is selected cell by cell, so every version keeps what any of them reads, and the row that a cell
    which none of them changes is carried over from.

    norm: a field whose rows before each step are kept until its row after the step is known.
    """
    accesses = [_access(problem, number, choices) for number, choices in enumerate(strip.choices) if choices]
    made = pipeline(_fields(problem, strip), accesses, steps, carry=True, kept=norm)
    nodes = tuple(node_of(node, _assignments(strip.choices[node.stage])) for node in made.nodes)
    finals = tuple(made.finals[name] for name in problem.state if name in made.finals)
    return Levels(steps, nodes, made.inputs, finals, made.starts)


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

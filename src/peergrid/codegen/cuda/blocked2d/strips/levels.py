"""Streaming through a strip with several time steps at once: as `blocked.levels`, with several updates to a stage.

Which of a stage's updates applies is told cell by cell, so every version keeps what any of them reads, and the row that
a cell which none of them changes is carried over from.
"""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.codegen.cuda.blocked.levels import Levels, Node, writes_of
from peergrid.codegen.cuda.blocked.plain import unbounded
from peergrid.codegen.cuda.blocked2d.strips.region import BoundaryStrip, Choice
from peergrid.codegen.pipeline import PipelineNode, StageAccess, pipeline, span_of
from peergrid.stencil import Problem
from peergrid.stencil.problem import Assignment
from peergrid.stencil.remember import remembered


@dataclass(frozen=True)
class StripNode(Node):
    """A node of a strip: one of several updates applies to a cell, or none."""

    choices: tuple[Choice, ...] = ()


@remembered(256)
def strip_levels(problem: Problem, steps: int, strip: BoundaryStrip, norm: str | None = None) -> Levels:
    """The nodes of a strip; every version keeps the row that a cell which no update changes is carried over from.

    norm: a field whose rows before each step are kept until its row after the step is known.
    """
    accesses = [_access(problem, number, choices) for number, choices in enumerate(strip.choices) if choices]
    made = pipeline(_fields(problem, strip), accesses, steps, carry=True, kept=norm)
    nodes = tuple(_node(node, strip.choices[node.stage]) for node in made.nodes)
    finals = tuple(made.finals[name] for name in problem.state if name in made.finals)
    return Levels(steps, nodes, made.inputs, finals, made.starts)


def _access(problem: Problem, number: int, choices: tuple[Choice, ...]) -> StageAccess:
    """The rows that any of a stage's updates reads."""
    reads = (r for choice in choices for r in choice.update.reads if problem.fields[r.field].full)
    return StageAccess(number, span_of((r.field, r.offset[0]) for r in reads), tuple(_assignments(choices)))


def _node(made: PipelineNode, choices: tuple[Choice, ...]) -> StripNode:
    writes = writes_of(made, _assignments(choices))
    return StripNode(made.step, made.stage, made.lag, made.before, made.after, writes, choices)


def _assignments(choices: tuple[Choice, ...]) -> dict[str, Assignment]:
    return {a.target: a for choice in choices for a in choice.update.assignments}


def _fields(problem: Problem, strip: BoundaryStrip) -> list[str]:
    """The fields that the strip reads, and those whose values it has to hand on."""
    named = {name for name in problem.state if unbounded(problem, problem.fields[name].box).overlaps(strip.box)}
    named |= {r.field for stage in strip.choices for c in stage for r in c.update.reads if problem.fields[r.field].full}
    named |= {target for stage in strip.choices for c in stage for target in c.update.targets}
    return [name for name in problem.fields if name in named]

"""The pipeline of the interior's updates: which node computes which row when, and by which assignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from peergrid.codegen.pipeline import Pipeline, PipelineNode, StageAccess, Value, pipeline, span_of
from peergrid.grid import Box
from peergrid.stencil import Problem
from peergrid.stencil.problem import Assignment, Update
from peergrid.stencil.remember import remembered


@dataclass(frozen=True)
class Write:
    """One assignment of a node: the value it makes, and the value before it."""

    assignment: Assignment
    new: Value
    old: Value


@dataclass(frozen=True)
class Node(PipelineNode):
    """A node with what it computes."""

    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Levels:
    """The nodes of some steps in order, the input value of every field read, and the final ones of the state.

    A final value that is an input is carried over: the interior does not change it.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    finals: tuple[Value, ...]
    starts: tuple[Mapping[str, Value], ...] = field(repr=False)
    """For each step, the values of the state fields before it; one more entry for the end."""

    @cached_property
    def made(self) -> tuple[Value, ...]:
        """The values that nodes make."""
        return tuple(write.new for node in self.nodes for write in node.writes)

    def ends(self, name: str) -> tuple[Value, ...]:
        """The value of a field after each step."""
        return tuple(values[name] for values in self.starts[1:])

    @property
    def moved(self) -> int:
        """The values of a cell that a pass reads and writes."""
        return len(self.inputs) + len(self.finals)

    @property
    def lag(self) -> int:
        """The rows that the slowest result lies behind the newest input row."""
        return max(value.lag for value in self.finals)

    @property
    def period(self) -> int:
        """After how many rows the places of all kept rows repeat, each row in a place of its own."""
        return max((value.depth for value in self.made), default=1)


def in_most_cells(problem: Problem, box: Box) -> bool:
    """True for a box of more than half of the grid."""
    return box.size > problem.grid.box.size / 2


@remembered()
def usual_updates(problem: Problem) -> tuple[dict[str, tuple[Update, Assignment]], ...]:
    """For each stage and target, the update of most cells: what the interior does (none where no update has half)."""
    found: list[dict[str, tuple[Update, Assignment]]] = []
    for stage in problem.stages:
        assigned: dict[str, tuple[Update, Assignment]] = {}
        for target in stage.targets:
            best = max(stage.writers(target), key=lambda pair: pair[0].box.size)
            if in_most_cells(problem, best[0].box):
                assigned[target] = best
        found.append(assigned)
    return tuple(found)


@remembered()
def usual_fields(problem: Problem) -> tuple[str, ...]:
    """The fields that the interior reads, writes, or carries over because they change elsewhere."""
    found = {name for name in problem.state if in_most_cells(problem, problem.fields[name].box)}
    for stage in usual_updates(problem):
        for target, (_, assignment) in stage.items():
            found |= {target, *(read.field for read in assignment.reads)}
    return tuple(name for name in problem.fields if name in found)


@remembered()
def levels(problem: Problem, steps: int, norm: str | None = None) -> Levels:
    """The nodes of the interior's updates; norm: a field whose rows before each step are kept until its row after the
    step is known.
    """
    stages = usual_updates(problem)
    accesses = [_access(number, assigned) for number, assigned in enumerate(stages) if assigned]
    made = pipeline(usual_fields(problem), accesses, steps, kept=norm)
    assignments = [{t: assignment for t, (_, assignment) in assigned.items()} for assigned in stages]
    return levels_of(problem, made, assignments)


def levels_of(problem: Problem, made: Pipeline, assignments: Sequence[Mapping[str, Assignment]]) -> Levels:
    """The nodes of a pipeline with the assignments of each stage's targets."""
    nodes = tuple(_node_of(node, assignments[node.stage]) for node in made.nodes)
    finals = tuple(made.finals[name] for name in problem.state if name in made.finals)
    return Levels(nodes, made.inputs, finals, made.starts)


def _access(number: int, assigned: Mapping[str, tuple[Update, Assignment]]) -> StageAccess:
    """The rows that the interior's updates of a stage read."""
    reads = {read for _, assignment in assigned.values() for read in assignment.reads}
    return StageAccess(number, span_of((read.field, read.offset[0]) for read in reads), tuple(assigned))


def _node_of(made: PipelineNode, assignments: Mapping[str, Assignment]) -> Node:
    """A node with the assignments of its targets."""
    writes = (Write(assignments[t], new, made.before[t]) for t, new in made.after.items())
    return Node(made.step, made.stage, made.lag, made.before, made.after, tuple(writes))

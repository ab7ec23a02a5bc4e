"""The stages of a step in groups that one kernel carries out, and the block of memory each field is in between them.

A stage joins the group before it when it reads what that group wrote at its own cell only: both then run in one
thread, and the value between them stays in a register.

No kernel writes what it reads: a field that only one group writes goes from the pass's source slot to its target
slot; a field that several groups write passes through a scratch block after each of them but the last. So kernels of
one pass on neighbouring boxes may overlap: where both compute a cell, both store the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.stencil import Problem, Stage
from peergrid.stencil.problem import Assignment

SOURCE, TARGET = -1, -2
"""Versions that live in the slots of a pass; versions from 0 on live in a scratch block of that number."""


@dataclass(frozen=True, order=True)
class Member:
    """An assignment with its place in the problem: stage, update, assignment."""

    stage: int
    update: int
    place: int

    def of(self, problem: Problem) -> Assignment:
        return problem.stages[self.stage].updates[self.update].assignments[self.place]


@dataclass(frozen=True)
class Group:
    """Consecutive stages in one kernel; `before` and `after` give the version of each state field around it."""

    stages: tuple[int, ...]
    before: dict[str, int]
    after: dict[str, int]

    def members(self, problem: Problem) -> tuple[Member, ...]:
        """All assignments of the group in the order in which they are made."""
        return tuple(
            Member(s, u, a)
            for s in self.stages
            for u, update in enumerate(problem.stages[s].updates)
            for a in range(len(update.assignments))
        )

    def targets(self, problem: Problem) -> tuple[str, ...]:
        """The fields that the group writes."""
        return _targets(problem, self.stages)

    def found(self, field: str) -> int:
        """The version of a field, or coefficient, that the group reads."""
        return self.before.get(field, SOURCE)

    def last_stage(self, problem: Problem, field: str) -> int:
        """The last stage of the group that writes the field."""
        return max(s for s in self.stages if field in problem.stages[s].targets)


def groups(problem: Problem) -> tuple[Group, ...]:
    """The groups of one step in order."""
    parts = _fused(problem)
    last = {f: g for g, stages in enumerate(parts) for f in _targets(problem, stages)}
    version = dict.fromkeys(problem.state, SOURCE)
    scratch = 0
    found: list[Group] = []
    for number, stages in enumerate(parts):
        before = dict(version)
        for name in _targets(problem, stages):
            if last[name] == number:
                version[name] = TARGET
            else:
                version[name] = scratch
                scratch += 1
        found.append(Group(stages, before, dict(version)))
    return tuple(found)


def scratch_fields(problem: Problem) -> tuple[str, ...]:
    """The field of each scratch block."""
    found: dict[int, str] = {}
    for group in groups(problem):
        found |= {version: name for name, version in group.after.items() if version >= 0}
    return tuple(found[number] for number in sorted(found))


def _fused(problem: Problem) -> list[tuple[int, ...]]:
    parts: list[tuple[int, ...]] = []
    for number, stage in enumerate(problem.stages):
        if parts and _pointwise(stage, _targets(problem, parts[-1])):
            parts[-1] = (*parts[-1], number)
        else:
            parts.append((number,))
    return parts


def _pointwise(stage: Stage, written: tuple[str, ...]) -> bool:
    """True where the stage reads the written fields at its own cell only."""
    return all(read.field not in written or not any(read.offset) for read in stage.reads)


def _targets(problem: Problem, stages: tuple[int, ...]) -> tuple[str, ...]:
    """The fields that stages write, in the order of the problem: texts do not depend on how sets are hashed."""
    return tuple(dict.fromkeys(t for s in stages for t in problem.stages[s].targets))

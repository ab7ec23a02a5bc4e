"""Streaming through the rows of a grid with several time steps at once: which node computes which row when.

A *node* is one stage of one step. While rows arrive one by one, each node computes the row that lies its *lag*
behind the newest. What a node writes is a new *version* of a field; a version keeps the rows that its readers ask for.
The lags follow from the offsets along axis 0 alone: Jacobi's step lags one row, so does Yee's whole step (H, then E).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

from peergrid.codegen.cuda.blocked.reach import meanings
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment, Update
from peergrid.stencil.remember import remembered


@dataclass(eq=False)
class Version:
    """A field as it stands after some node. Row `age` is the one that lies `lag + age` behind the newest input row."""

    number: int
    field: str
    lag: int
    depth: int = 1
    source: bool = False

    def reach(self, age: int) -> int:
        """Make sure that the row of that age is kept."""
        self.depth = max(self.depth, age + 1)
        return age


@dataclass(frozen=True)
class Write:
    """One assignment of a node: the version it makes, and the version before it."""

    assignment: Assignment
    new: Version
    old: Version


@dataclass(frozen=True)
class Node:
    """One stage of one step, `lag` rows behind the input; `before` gives the version of each field that it reads."""

    step: int
    stage: int
    lag: int
    writes: tuple[Write, ...]
    before: Mapping[str, Version]

    def row(self, read: Read) -> tuple[Version, int]:
        """The version and age of the row that a read asks for."""
        version = self.before[read.field]
        return version, self.lag - read.offset[0] - version.lag


@dataclass(frozen=True)
class Levels:
    """The nodes of `steps` steps in order, the input version of every field read, and the final ones of the state.

    A final version that is an input is carried over: the interior does not change it.
    """

    steps: int
    nodes: tuple[Node, ...]
    inputs: tuple[Version, ...]
    finals: tuple[Version, ...]
    starts: tuple[Mapping[str, Version], ...] = field(repr=False)
    """For each step, the versions of the state fields before it; one more entry for the end."""

    @cached_property
    def versions(self) -> tuple[Version, ...]:
        """The versions that nodes make."""
        return tuple(write.new for node in self.nodes for write in node.writes)

    def ends(self, name: str) -> tuple[Version, ...]:
        """The version of a field after each step."""
        return tuple(versions[name] for versions in self.starts[1:])

    @cached_property
    def last_reader(self) -> dict[Version, int]:
        """The place in `nodes` of the last node that reads a version."""
        found: dict[Version, int] = {}
        for place, node in enumerate(self.nodes):
            for write in node.writes:
                found |= {node.before[read.field]: place for read in write.assignment.reads}
                found[self.starts[node.step].get(write.new.field, write.old)] = place
        return found

    @property
    def lag(self) -> int:
        """How many rows the slowest result lies behind the newest input row."""
        return max(version.lag for version in self.finals)

    @property
    def period(self) -> int:
        """After how many rows the places of all kept rows repeat, each row in a place of its own."""
        return max((version.depth for version in self.versions), default=1)


@remembered()
def plain_updates(problem: Problem) -> tuple[dict[str, tuple[Update, Assignment]], ...]:
    """For each stage and target, the update of most cells: what the interior does (none where no update has half)."""
    half = problem.grid.box.size / 2
    found: list[dict[str, tuple[Update, Assignment]]] = []
    for stage in problem.stages:
        plain: dict[str, tuple[Update, Assignment]] = {}
        for target in stage.targets:
            best = max(stage.writers(target), key=lambda pair: pair[0].box.size)
            if best[0].box.size > half:
                plain[target] = best
        found.append(plain)
    return tuple(found)


def levels(problem: Problem, steps: int, skew: int = 0, norm: str | None = None, walls: bool = False) -> Levels:
    """The nodes of the interior's updates. skew: additional rows between steps, so that steps become
    independent; norm: a field whose rows before each step are kept until its row after the step is known; walls: cells
    may keep their value, and reads may mean mirrored cells.
    """
    work = _Levelling(problem, skew, walls)
    inputs = tuple(work.current.values())
    for _ in range(steps):
        work.step()
        if norm is not None:
            work.keep(norm)
    finals = tuple(work.current[name] for name in problem.state if name in work.current)
    return Levels(steps, tuple(work.nodes), inputs, finals, (*work.starts, dict(work.current)))


class _Levelling:
    """The newest version of each field while steps are added, one after the other; the nodes that made them."""

    def __init__(self, problem: Problem, skew: int, walls: bool) -> None:
        self.problem, self.skew, self.walls = problem, skew, walls
        self.stages = plain_updates(problem)
        self.numbers = count()
        self.nodes: list[Node] = []
        self.starts: list[Mapping[str, Version]] = []
        self.current = {name: self._version(name, 0, source=True) for name in _read_or_carried(problem, self.stages)}

    def step(self) -> None:
        """The nodes of one more step."""
        self.starts.append(dict(self.current))
        for number, plain in enumerate(self.stages):
            if plain:
                self.nodes.append(self._node(number, plain))

    def keep(self, name: str) -> None:
        """A field's rows before the last step are kept until those after it are known."""
        known = self.starts[-1][name]
        known.reach(self.current[name].lag - known.lag)

    def _version(self, name: str, lag: int, source: bool = False) -> Version:
        return Version(next(self.numbers), name, lag, source=source)

    def _node(self, number: int, plain: Mapping[str, tuple[Update, Assignment]]) -> Node:
        """One stage: it lags so far that all it reads is there, and no less than what it writes did before."""
        reads = {read for _, assignment in plain.values() for read in assignment.reads}
        if self.walls:
            reads = {meaning for read in reads for meaning in meanings(self.problem, read)}
        lag = max([*map(self._needed, reads), *(self.current[target].lag for target in plain)])
        before = dict(self.current)
        writes = tuple(self._write(target, assignment, lag) for target, (_, assignment) in plain.items())
        node = Node(len(self.starts) - 1, number, lag, writes, before)
        for read in reads:
            version, age = node.row(read)
            version.reach(age)
        return node

    def _write(self, target: str, assignment: Assignment, lag: int) -> Write:
        old, new = self.current[target], self._version(target, lag)
        if self.walls:
            old.reach(lag - old.lag)
        self.current[target] = new
        return Write(assignment, new, old)

    def _needed(self, read: Read) -> int:
        """The smallest lag at which a read finds its row; one that an earlier step made, `skew` rows later."""
        known = self.current[read.field]
        earlier = not known.source and self.starts[-1].get(read.field) is known
        return known.lag + read.offset[0] + (self.skew if earlier else 0)


def _read_or_carried(problem: Problem, stages: tuple[dict[str, tuple[Update, Assignment]], ...]) -> list[str]:
    """The fields that the interior reads or writes, and those it has to carry over because they change elsewhere."""
    half = problem.grid.box.size / 2
    named: dict[str, None] = {name: None for name in problem.state if problem.fields[name].box.size > half}
    for plain in stages:
        for target, (_, assignment) in plain.items():
            named[target] = None
            named.update(dict.fromkeys(sorted(read.field for read in assignment.reads)))
    return [name for name in problem.fields if name in named]

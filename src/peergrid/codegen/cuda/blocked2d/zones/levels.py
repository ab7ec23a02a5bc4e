"""Streaming through a zone with several time steps at once: as `blocked.levels`, with several updates to a stage.

Which of a stage's updates applies is told cell by cell, so every version keeps what any of them reads, and the row that
a cell which none of them changes is carried over from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels, Node, Version, Write
from peergrid.codegen.cuda.blocked.plain import unbounded
from peergrid.codegen.cuda.blocked2d.zones.zone import Choice, Zone
from peergrid.stencil import Problem


@dataclass(frozen=True)
class LayerNode(Node):
    """A node of a zone: one of several updates applies to a cell, or none."""

    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class LayerLevels(Levels):
    """The nodes of a zone: what a cell may read, whichever update applies."""

    @cached_property
    def last_reader(self) -> dict[Version, int]:
        found: dict[Version, int] = {}
        for place, node in enumerate(self.nodes):
            assert isinstance(node, LayerNode)
            reads = {read for choice in node.choices for read in choice.update.reads if read.field in node.before}
            found |= {node.before[read.field]: place for read in reads}
            found |= {write.old: place for write in node.writes}
            found |= {self.starts[node.step][write.new.field]: place for write in node.writes}
        return found


def layer_levels(problem: Problem, steps: int, zone: Zone, norm: str | None = None) -> LayerLevels:
    """The nodes of a zone; every version keeps the row that a cell which no update changes is carried over from.

    norm: a field whose rows before each step are kept until its row after the step is known.
    """
    count = 0

    def version(name: str, lag: int, source: bool = False) -> Version:
        nonlocal count
        count += 1
        return Version(count - 1, name, lag, source=source)

    current = {name: version(name, 0, source=True) for name in _fields(problem, zone)}
    inputs, starts, nodes = tuple(current.values()), [], list[Node]()
    for step in range(steps):
        starts.append(dict(current))
        for number, choices in enumerate(zone.choices):
            if not choices:
                continue
            assignments = {a.target: a for choice in choices for a in choice.update.assignments}
            reads = {r for c in choices for r in c.update.reads if problem.fields[r.field].full}
            before = dict(current)
            lag = max([before[r.field].lag + r.offset[0] for r in reads] + [before[t].lag for t in assignments])
            for target in assignments:
                before[target].reach(lag - before[target].lag)
                current[target] = version(target, lag)
            writes = tuple(Write(a, current[target], before[target]) for target, a in assignments.items())
            node = LayerNode(step, number, lag, writes, before, choices)
            for read in reads:
                kept, age = node.row(read)
                kept.reach(age)
            nodes.append(node)
        if norm is not None:
            starts[-1][norm].reach(current[norm].lag - starts[-1][norm].lag)
    starts.append(dict(current))
    finals = tuple(current[name] for name in problem.state if name in current)
    return LayerLevels(steps, tuple(nodes), inputs, finals, tuple(starts))


def _fields(problem: Problem, zone: Zone) -> list[str]:
    """The fields that the zone reads, and those whose values it has to hand on."""
    named = {name for name in problem.state if unbounded(problem, problem.fields[name].box).overlaps(zone.box)}
    named |= {r.field for stage in zone.choices for c in stage for r in c.update.reads if problem.fields[r.field].full}
    named |= {target for stage in zone.choices for c in stage for target in c.update.targets}
    return [name for name in problem.fields if name in named]

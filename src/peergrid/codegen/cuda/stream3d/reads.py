"""The reads of a pipeline, whatever the shape of its tiles: which node reads which plane of which value, and how far
beyond a tile nodes work.

Planes are counted from the clock, the plane that the slowest node makes, the last one as a rule: a node makes the plane
`lead` ahead of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.blocked.levels import Levels, Node, Write, levels, usual_updates
from peergrid.codegen.cuda.stream3d.corrections import corrections
from peergrid.codegen.pipeline import Value
from peergrid.grid import Box
from peergrid.stencil import Growth, Problem, footprint
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update
from peergrid.stencil.remember import remembered


@dataclass(frozen=True)
class Use:
    """A read of a value by a node, `plane` after the clock."""

    value: Value
    plane: int
    row: int
    column: int

    @property
    def beside(self) -> bool:
        """True where it is one of another thread's cells."""
        return bool(self.row or self.column)

    @property
    def next_column(self) -> bool:
        """True where it is of the same row, one column away."""
        return not self.row and abs(self.column) == 1


@dataclass(frozen=True)
class Reads:
    """The reads of some steps of a problem."""

    problem: Problem
    steps: int

    @cached_property
    def levels(self) -> Levels:
        """The nodes, each a stage of one of the steps."""
        return levels(self.problem, self.steps)

    def lead(self, node: Node) -> int:
        """The planes that a node works ahead of the clock."""
        return max(other.lag for other in self.levels.nodes) - node.lag

    @cached_property
    def needs(self) -> dict[tuple[int, int], Growth]:
        """The cells beyond a tile that each node, by step and stage, has to make of its plane."""
        found = {}
        for node in self.levels.nodes:
            needed = footprint(self.problem, self.steps).targets[node.step][node.stage]
            found[node.step, node.stage] = reduce(Growth.__or__, (needed[w.new.field] for w in node.writes))
        return found

    @cached_property
    def growth(self) -> Growth:
        """The cells beyond a tile that any node makes."""
        return reduce(Growth.__or__, self.needs.values())

    def keeps(self, node: Node, write: Write) -> bool:
        """True where cells outside the update's box are asked for the value they keep: not where they never change and
        nobody reads them here, since both slots of a field have such values from the start. Then they are stored again
        only where the box cuts an access of 16 bytes, as stores of parts of it are slow.
        """
        asked = not write.old.source or any(
            node.before[read.field] is write.new
            for node in self.levels.nodes
            for other in node.writes
            for read in (*other.assignment.reads, Read(other.new.field, (0, 0, 0)))
        )
        box, home = self.box(node, write), unbounded(self.problem, self.problem.fields[write.new.field].box)
        return (asked or self._cut(box, home, write)) and not box.covers(home)

    def _cut(self, box: Box, home: Box, write: Write) -> bool:
        """True if a box cuts accesses of cells that its update reads, too."""
        width = 16 // self.problem.itemsize
        low, high = box.lo[-1] % width and box.lo[-1] > home.lo[-1], box.hi[-1] % width and box.hi[-1] < home.hi[-1]
        return bool(low or high) and Read(write.new.field, (0, 0, 0)) in write.assignment.reads

    def box(self, node: Node, write: Write) -> Box:
        """The cells to which an update applies, without bounds along periodic axes."""
        update, _ = usual_updates(self.problem)[node.stage][write.new.field]
        return unbounded(self.problem, update.box)

    def corrections(self, node: Node) -> tuple[Update, ...]:
        """The updates that a node makes on a part of the grid after the usual ones."""
        return corrections(self.problem, self.steps)[node.stage]

    def uses(self, node: Node) -> tuple[Use, ...]:
        """The reads of full fields by a node, in order."""
        return self.of_node[node.step, node.stage]

    @cached_property
    def of_node(self) -> dict[tuple[int, int], tuple[Use, ...]]:
        """The same by step and stage."""
        return {(node.step, node.stage): tuple(dict.fromkeys(self._uses(node))) for node in self.levels.nodes}

    @cached_property
    def of_value(self) -> dict[Value, list[Use]]:
        """The reads of every value, node by node."""
        found: dict[Value, list[Use]] = {}
        for node in self.levels.nodes:
            for use in self.uses(node):
                found.setdefault(use.value, []).append(use)
        return found

    def _uses(self, node: Node) -> Iterator[Use]:
        for write in node.writes:
            reads = sorted(write.assignment.reads, key=str)
            if self.keeps(node, write):
                reads.append(Read(write.new.field, (0, 0, 0)))
            for read in reads:
                if self.problem.fields[read.field].full:
                    value = node.before[read.field]
                    yield Use(value, self.lead(node) + read.offset[0], read.offset[1], read.offset[2])
        written = {write.new.field for write in node.writes}
        for update in self.corrections(node):
            for read in sorted(update.reads, key=str):
                full = self.problem.fields[read.field].full
                if full and read.field in node.before and read.field not in written:
                    where = self.lead(node) + read.offset[0], read.offset[1], read.offset[2]
                    yield Use(node.before[read.field], *where)


@remembered()
def reads(problem: Problem, steps: int) -> Reads:
    """The reads of some steps."""
    return Reads(problem, steps)

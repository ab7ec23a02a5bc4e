"""The planes of each value of a field that a thread block keeps: in rings in shared memory, or in registers.

Planes are counted from the clock (see `reads`): a node makes the plane `lead` ahead of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from peergrid.codegen.cuda.blocked.levels import Levels, Node, usual_updates
from peergrid.codegen.cuda.onestep.groups import SOURCE, TARGET, groups
from peergrid.codegen.cuda.stream3d.reads import Reads, Use, reads
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.codegen.pipeline import Value
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

BARRIER_BYTES = 16


@dataclass(frozen=True)
class Ring:
    """The planes `oldest` to `newest` of a value and, of one that is loaded, those on their way.

    left, right: columns beside the tile; above, below: rows; kept: planes that threads keep of their own cells, from
    place `kept_from` on, the newest of them `youngest`; start: the first value in shared memory.
    """

    value: Value
    oldest: int
    newest: int
    planes: int
    left: int
    right: int
    above: int
    below: int
    kept: int
    kept_from: int
    youngest: int
    start: int

    def values(self, shape: StreamShape, line: int) -> int:
        """The values of all its planes, each of which begins at a multiple of `line` values."""
        return self.planes * -(-prod(self.extents(shape)) // line) * line

    def extents(self, shape: StreamShape) -> tuple[int, int]:
        """The rows and columns of its planes."""
        return self.above + shape.rows + self.below, self.left + shape.columns + self.right


@remembered()
def part(problem: Problem, stages: tuple[int, ...]) -> Problem:
    """The problem whose step is some stages of a problem's step, with the same fields in the same order."""
    chosen = tuple(problem.stages[number] for number in stages)
    return Problem(problem.grid, problem.fields, problem.signals, problem.params, problem.tables, chosen)


@dataclass(frozen=True)
class Rings:
    """The rings of a pipeline in one shape; whole, stages: it is made of those stages of a larger problem's step, and
    finds the fields that earlier ones write where the pass leaves them.
    """

    whole: Problem
    steps: int
    shape: StreamShape
    stages: tuple[int, ...]

    @property
    def problem(self) -> Problem:
        """The problem whose steps the pipeline makes."""
        return part(self.whole, self.stages) if len(self.stages) < len(self.whole.stages) else self.whole

    def version(self, field: str, *, after: bool) -> int:
        """The block of memory that has a field before or after these stages (see `onestep.groups`): in tiles, where
        later groups whose other updates write the field change nothing.
        """
        if field not in self.whole.state:
            return SOURCE
        made, usual = groups(self.whole), usual_updates(self.whole)
        writing = [group for group in made if any(field in usual[stage] for stage in group.stages)]
        if not writing:
            found = [group for group in made if set(group.stages) <= set(self.stages)]
            return found[-1].after[field] if after else found[0].before[field]
        end = self.stages[-1] + 1 if after else self.stages[0]
        done = [group for group in writing if group.stages[-1] < end]
        if not done:
            return SOURCE
        return TARGET if done[-1] is writing[-1] else done[-1].after[field]

    @cached_property
    def reads(self) -> Reads:
        return reads(self.problem, self.steps)

    @cached_property
    def levels(self) -> Levels:
        return self.reads.levels

    @cached_property
    def beside(self) -> tuple[Use, ...]:
        """The reads of its nodes in other rows and columns."""
        return tuple(use for node in self.levels.nodes for use in self.reads.uses(node) if use.beside)

    @cached_property
    def reuses(self) -> bool:
        """True if some value is read in several places, or made by one node for another."""
        return len(self.levels.nodes) > 1 or any(len(set(uses)) > 1 for uses in self.reads.of_value.values())

    @cached_property
    def layered(self) -> bool:
        """True if some node makes layers at the ends of rows, too."""
        return any(map(self.reads.corrections, self.levels.nodes))

    @cached_property
    def width(self) -> int:
        """Values of a 16-byte access."""
        return 16 // self.problem.itemsize

    @property
    def line(self) -> int:
        """Values of which planes have multiples: those that whole warps copy, or 128 bytes of a tensor copy."""
        return (8 if self.shape.tensor else 32) * self.width

    @cached_property
    def rings(self) -> dict[Value, Ring]:
        """The ring of every value that is read, in the order in which values come to be."""
        found: dict[Value, Ring] = {}
        start = kept_from = 0
        for value in (*self.levels.inputs, *self.levels.made):
            uses = self._uses_of(value)
            if not uses:
                continue
            ring = self._ring(value, uses, start, kept_from)
            found[value] = ring
            start += ring.values(self.shape, self.line)
            kept_from += ring.kept
        return found

    @property
    def border(self) -> float:
        """The most values of a ring that a block loads for a cell of its tile."""
        cells = self.shape.rows * self.shape.columns
        return max((prod(ring.extents(self.shape)) / cells for ring in self.loaded), default=1.0)

    @property
    def ring_values(self) -> int:
        """Values of all rings in shared memory."""
        return max(ring.start + ring.values(self.shape, self.line) for ring in self.rings.values())

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: the rings and, behind them, a barrier if it is split, or those of tensor copies."""
        barriers = BARRIER_BYTES * self.split_barrier + 8 * (self.shape.ahead + 1) * self.shape.tensor
        return self.ring_values * self.problem.itemsize + barriers

    @property
    def fits(self) -> bool:
        """True if a tile stores any cells, and reads any: without fields to read there is nothing to stream."""
        lost = [self.reads.growth.below[axis] + self.reads.growth.above[axis] for axis in (1, 2)]
        return bool(self.loaded) and self.shape.rows > lost[0] and self.shape.columns >= lost[1] + 16

    @property
    def kept(self) -> int:
        """Planes that a thread keeps of its cells."""
        return sum(ring.kept for ring in self.rings.values())

    @cached_property
    def early(self) -> int:
        """Clocks before the first plane of a tile at which a block begins."""
        found = 0
        for node in self.levels.nodes:
            first = self.reads.needs[node.step, node.stage].below[0] + self.reads.lead(node)
            back = max((self._youngest(use.value) - use.plane for use in self.reads.uses(node)), default=0)
            found = max(found, first + max(0, back))
        return found

    def _youngest(self, value: Value) -> int:
        """The plane that threads begin to keep their cells of, of a value that is loaded."""
        ring = self.rings[value]
        return ring.newest if self.shape.own and value.source else ring.oldest

    def waits(self, node: Node) -> bool:
        """True if a node reads what other threads make at the same clock."""
        for use in self.reads.uses(node):
            made = not use.value.source and self._maker_lead(use.value) == use.plane
            if made and self._shared(use):
                return True
        return False

    @cached_property
    def around(self) -> bool:
        """True if threads keep the cells around their own of all planes: they find each in shared memory once."""
        near = (max(abs(use.row), abs(use.column)) < 2 for node in self.levels.nodes for use in self.reads.uses(node))
        return self.shape.around and self.shape.own and len(self.levels.nodes) == 1 and all(near)

    @cached_property
    def split_barrier(self) -> bool:
        """True if threads arrive at a barrier well before they wait there: where no node reads what others have made
        at the same clock, and each clock of the loop's body finds the planes that nodes make in places of its own.

        With other places the kernel gave wrong values on an H200 (NVRTC 13.0), not on the host.
        """
        nodes = self.levels.nodes
        if not (self.shape.split_barrier and self.shape.own and len(nodes) > 1) or any(map(self.waits, nodes)):
            return False
        seen = self.shape.tensor or self.shape.ahead > 1  # copies by threads are seen a clock after they are there
        if not seen or not self._late_reads_are_safe:
            return False
        for value in self.levels.made:
            planes = [use.plane for use in self._uses_of(value) if self._shared(use)]
            if planes and self._maker_lead(value) - min(planes) + 2 != self.shape.unroll:
                return False
        return True

    @property
    def _late_reads_are_safe(self) -> bool:
        """True if nothing is written over that the last node reads of other threads after it has arrived: no planes
        that are loaded, since copies come there, and nothing of the first node, unless that waits as there are two.
        Own cells that a thread does not keep are read there, too.
        """
        first, *rest, last = self.levels.nodes
        safe = [write.new for node in rest or [first] for write in node.writes]
        found = (use for use in self.reads.uses(last) if self._shared(use) or self._once(use.value))
        return all(use.value in safe for use in found)

    def _shared(self, use: Use) -> bool:
        """True if threads find in shared memory what other threads have."""
        if self.shape.own and use.next_column and not self.shape.split(self.problem.itemsize):
            return use.value.source
        return use.beside

    def _ring(self, value: Value, uses: list[Use], start: int, kept_from: int) -> Ring:
        shape, shared = self.shape, [use for use in uses if self._shared(use)]
        newest = max(use.plane for use in uses) if value.source else self._maker_lead(value)
        all_oldest = min(use.plane for use in uses)
        oldest = newest if self.around else min([newest, *(use.plane for use in shared)])
        planes = newest - oldest + 1 + (shape.ahead if value.source else 0)
        if shape.own:
            youngest = newest
            kept = 0 if self._once(value) else newest - all_oldest + 1
            more = not value.source and self.split_barrier  # read by some while others make the next but one
            planes = planes + more if value.source or shared else 0
        else:
            youngest, kept = oldest - 1, max(0, oldest - all_oldest)
        columns, rows = [use.column for use in shared], [use.row for use in shared]
        return Ring(
            value,
            oldest,
            newest,
            planes,
            -(min(0, *columns, 0) // self.width) * self.width,
            -(-max(0, *columns, 0) // self.width) * self.width,
            -min(0, *rows, 0),
            max(0, *rows, 0),
            kept,
            kept_from,
            youngest,
            start,
        )

    def _once(self, value: Value) -> bool:
        """True if threads find their own cells of a value where copies bring them, and nobody asks for others."""
        uses = self._uses_of(value)
        return value.source and len({use.plane for use in uses}) == 1 and not any(use.beside for use in uses)

    def _maker_lead(self, value: Value) -> int:
        return next(self.reads.lead(node) for node in self.levels.nodes for w in node.writes if w.new is value)

    def _uses_of(self, value: Value) -> list[Use]:
        return list(self.reads.of_value.get(value, ()))

    @cached_property
    def loaded(self) -> tuple[Ring, ...]:
        """The rings that are filled from memory."""
        return tuple(ring for ring in self.rings.values() if ring.value.source)

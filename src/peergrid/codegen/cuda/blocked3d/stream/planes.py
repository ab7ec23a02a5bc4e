"""Which planes a thread block of a 3D pass keeps, and where: those of a lane's own cells in registers, those that are
loaded or read by other warps in rings in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels, Node, Version, levels
from peergrid.codegen.cuda.blocked.reach import meanings
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.remember import remembered


@remembered()
def levels3d(problem: Problem, steps: int, skew: int) -> Levels:
    """The nodes of a pass, whatever the rest of its shape."""
    return levels(problem, steps, skew, walls=True)


@dataclass(frozen=True)
class Ring:
    """The planes of one version in shared memory: `count` of them, the first `start` bytes into the block's part."""

    version: Version
    count: int
    start: int


@dataclass(frozen=True)
class Planes3D:
    """The planes of one problem and shape."""

    problem: Problem
    shape: Shape3D

    @property
    def levels(self) -> Levels:
        return levels3d(self.problem, self.shape.steps, self.shape.skew)

    @property
    def pack(self) -> int:
        """How many of a lane's values one access of shared memory or store moves."""
        return min(self.shape.columns, 16 // self.problem.itemsize)

    @property
    def pack_bytes(self) -> int:
        return self.pack * self.problem.itemsize

    @property
    def row_bytes(self) -> int:
        return self.shape.width * self.problem.itemsize

    @property
    def plane_bytes(self) -> int:
        return self.shape.height * self.row_bytes

    @cached_property
    def period(self) -> int:
        """Planes after which registers are used alike."""
        kept = (version.depth for version in (*self.levels.inputs, *self.levels.versions) if self.held(version))
        return max(kept, default=1)

    def held(self, version: Version) -> bool:
        """Whether a lane keeps the planes of its cells in registers."""
        return self.problem.fields[version.field].full and (self.shape.held or not version.source)

    def reads(self, node: Node) -> list[tuple[Read, Version, int]]:
        """What the reads of a node in full fields may mean, each once, with the version and the age of its plane."""
        every = (read for write in node.writes for read in sorted(write.assignment.reads, key=str))
        found = dict.fromkeys(meaning for read in every for meaning in meanings(self.problem, read))
        return [(read, *node.row(read)) for read in found if self.problem.fields[read.field].full]

    def parts(self) -> Iterator[list[Node]]:
        """The nodes between two barriers: rows that other warps made in the same turn need one."""
        fresh: set[Version] = set()
        part: list[Node] = []
        for node in self.levels.nodes:
            if any(read.offset[1] and age == 0 and version in fresh for read, version, age in self.reads(node)):
                yield part
                part, fresh = [], set()
            part.append(node)
            fresh.update(write.new for write in node.writes)
        yield part

    @cached_property
    def crossing(self) -> dict[Version, tuple[int, int, int]]:
        """Of the versions that are read in other rows: the oldest plane, the rows above and below."""
        found: dict[Version, tuple[int, int, int]] = {}
        for node in self.levels.nodes:
            for read, version, age in self.reads(node):
                if row := read.offset[1]:
                    oldest, above, below = found.get(version, (0, 0, 0))
                    found[version] = (max(oldest, age), max(above, -row), max(below, row))
        return found

    @cached_property
    def rings(self) -> dict[Version, Ring]:
        """The planes in shared memory: of every input, and of what is read in other rows."""
        start = self.pad
        found: dict[Version, Ring] = {}
        for version in (*self.levels.inputs, *self.levels.versions):
            if not self.problem.fields[version.field].full or (not version.source and version not in self.crossing):
                continue
            oldest = self.crossing.get(version, (0, 0, 0))[0]
            if version.source:
                oldest = (oldest if self.shape.held else version.depth - 1) + self.shape.ahead
            count = max(oldest + 1, self.period) if self.shape.turning else oldest + 1
            found[version] = Ring(version, count, start)
            start += count * self.plane_bytes
        return found

    @property
    def loaded(self) -> list[Ring]:
        """The rings that are filled from memory."""
        return [ring for ring in self.rings.values() if ring.version.source]

    @property
    def pad(self) -> int:
        """Bytes before the first plane and after the last that rows outside the block's would have."""
        return max((max(above, below) for _, above, below in self.crossing.values()), default=0) * self.row_bytes

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return 2 * self.pad + sum(ring.count for ring in self.rings.values()) * self.plane_bytes

    def fixed(self, count: int) -> bool:
        """Whether the places of a ring of so many planes repeat with the turns of the loop."""
        return count == self.period

    def counts(self, *, source: bool) -> list[int]:
        """The lengths of rings, of loaded planes or of others, whose places are variables of the loop."""
        rings = (ring for ring in self.rings.values() if ring.version.source is source)
        return sorted({ring.count for ring in rings if not self.fixed(ring.count)})

    def offset(self, ring: Ring, row: int, part: int, part_bytes: int) -> int:
        """Bytes from a lane's place in a plane to a part of one of its rows; rows of other warps count on."""
        return ring.start - self.pad + row * self.row_bytes + part * 32 * part_bytes

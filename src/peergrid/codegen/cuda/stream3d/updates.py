"""Updates as text: their statements, the names by which they read values of fields, the places of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.blocked.levels import Node, Write
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import PACKED, cell_text
from peergrid.codegen.cuda.common.names import letters, listed
from peergrid.codegen.cuda.stream3d.bounds import bounds, reach
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.pipeline import Value
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment

MOST_OF_PROFILES = 16  # registers of a thread for profiles that it keeps
NONE: Mapping[Read, str] = MappingProxyType({})

UPDATE = """\
  template <class At>
  static __device__ __forceinline__ void update(const At& at, const Arguments& a, long long step, Cells* next) {{
{statements}
  }}
}};
"""


def ring_name(value: Value) -> str:
    """The type of a value's ring."""
    return f"Ring_{value.number}"


def read_name(value: Value) -> str:
    """The name of a value in updates: its field and, of one that a node made, its number."""
    name = "f_" + letters(value.field)
    return name if value.source else f"{name}_{value.number}"


@dataclass(frozen=True)
class Updates:
    """The updates of a pipeline, as text for a kernel with some arguments."""

    rings: Rings
    arguments: Arguments

    @cached_property
    def profiles(self) -> Mapping[Read, str]:
        """The reads of profiles along rows or columns by usual updates that threads keep, as types `Profile`: those for
        which there are registers, each for a value of a row, or of all columns, of a thread.
        """
        found: dict[Read, str] = {}
        registers = 0
        for read in self._profile_reads():
            described = self.rings.problem.fields[read.field]
            axis, size = described.axes[0], self.rings.problem.itemsize // 4
            registers += size * (self.rings.shape.rows_each if axis == 1 else self.rings.width)
            if registers > MOST_OF_PROFILES:
                break
            found[read] = f"Profile<{self.arguments.fields.index(read.field)}, {axis}, {read.offset[axis]}>"
        return found

    def _profile_reads(self) -> Iterator[Read]:
        """Those reads, in order."""
        fields = self.rings.problem.fields
        writes = (write for node in self.rings.levels.nodes for write in node.writes)
        reads = (read for write in writes for read in sorted(write.assignment.reads, key=str))
        yield from dict.fromkeys(read for read in reads if fields[read.field].axes in ((1,), (2,)))

    def made(self, node: Node) -> Iterator[str]:
        """The places of all values that a node makes: the types `Made`."""
        return (self._made(node, number, write) for number, write in enumerate(node.writes))

    def statements(self, node: Node, assignments: Sequence[Assignment], known: Mapping[Read, str] = NONE) -> str:
        """The body of `update`; known: the types by which some reads are found, in place of the usual ones."""
        step = f"step + {node.step}" if node.step else "step"
        names = [f"next[{number}]" for number in range(len(assignments))]
        results = cell_text(
            [assignment.value for assignment in assignments],
            lambda read: f"at({known.get(read) or self.read(node, read)}{{}})",
            self.arguments.param,
            lambda signal: self.arguments.now(signal, step),
            self.arguments.entry,
            self.rings.problem.grid.dtype,
            names=names,
            style=PACKED,
        )
        lines: list[str] = []
        for assignment, name, result in zip(assignments, names, results, strict=True):
            lines += (f"    {line}" for line in result.declarations)
            lines.append(f"    {name} = cells({result.value});  // {assignment.target}")
        return "\n".join(lines)

    def read(self, node: Node, read: Read) -> str:
        """The type of what a node reads: of a ring, of memory or of a profile."""
        described = self.rings.problem.fields[read.field]
        if described.full and read.field not in node.before:
            return f"Here<{self.arguments.fields.index(read.field)}>"
        if described.full:
            return f"{read_name(node.before[read.field])}<{listed(read.offset)}>"
        axis = described.axes[0]
        return f"Along<{self.arguments.fields.index(read.field)}, {axis}, {read.offset[axis]}>"

    def _made(self, node: Node, number: int, write: Write) -> str:
        problem, finals = self.rings.problem, self.rings.levels.finals
        name, box = write.new.field, self.rings.reads.box(node, write)
        keeps = self.rings.reads.keeps(node, write)
        ring = ring_name(write.new) if write.new in self.rings.rings else "void"
        field = self.arguments.fields.index(name) if write.new in finals else -1
        home = bounds(unbounded(problem, problem.fields[name].box) if keeps else box)
        block, stored = self.rings.version(name, after=True), bounds(reach(self.rings, name))
        old = ring_name(write.old) if keeps else "void"
        return f"Made<{number}, {ring}, {field}, {block}, {home}, {stored}, {bounds(box)}, {old}>"

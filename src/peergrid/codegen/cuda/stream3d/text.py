"""The program of a plan: constants and updates, which Python writes, around `skeletons/stream3d.cuh`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from types import MappingProxyType

from peergrid.codegen.cuda.blocked.interior import FAR, unbounded
from peergrid.codegen.cuda.blocked.levels import Node, Version, Write
from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked.program import Program
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import PACKED, cell_text
from peergrid.codegen.cuda.common.names import flag, letters
from peergrid.codegen.cuda.onestep.groups import SOURCE
from peergrid.codegen.cuda.onestep.kernels import arguments_of
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.stream3d.confined import own_fields, usual_box
from peergrid.codegen.cuda.stream3d.rings import Ring, Rings
from peergrid.grid import Box
from peergrid.stencil import Growth, footprint
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Assignment, Update

ENTRY = "stream3d"
NONE: Mapping[Read, str] = MappingProxyType({})
FARTHEST = Box((-FAR,) * 3, (FAR,) * 3)
POLLS = 32  # looks at a counter, of half a microsecond each, before a block goes on

SHAPE = """\
struct Shape {{
  static constexpr int COLUMNS = {columns}, ROWS = {rows}, ROWS_EACH = {rows_each}, THREADS = {threads};
  static constexpr int AHEAD = {ahead}, KEPT = {kept}, AROUND = {around}, UNROLL = {unroll}, POLLS = {polls};
  static constexpr int BARRIER_AT = {barrier};
  static constexpr bool OWN = {own}, SPLIT = {split}, PACED = {paced}, PERIODIC = {periodic};
}};
"""

UPDATE = """\
  template <class At>
  static __device__ __forceinline__ void update(const At& at, const Arguments& a, long long step, Cells* next) {{
{statements}
  }}
}};
"""

NODE = (
    """\
// {title}
struct {name} {{
  static constexpr int LEAD = {lead}, VALUES = {values}, OWN = {own};
  static constexpr bool BARRIER = {barrier}, GUARDED = {guarded};
  typedef {need} NEED;
  typedef {usual} USUAL;
  typedef List<{made}> Makes;
  typedef List<{confined}> Confined;
  typedef List<{corrections}> Corrections;
  typedef List<{gives}> Gives;
"""
    + UPDATE
)

CONFINED = (
    """\
// {title}
struct {name} {{
  static constexpr int VALUES = {values};
  typedef {box} BOX;
  typedef List<{made}> Makes;
"""
    + UPDATE
)

CORRECTION = (
    """\
// {title}
struct {name} {{
  static constexpr int VALUES = {values}, NUMBER = {number};
  typedef {box} BOX;
  typedef List<{loads}> Loads;
  typedef List<{made}> Makes;
"""
    + UPDATE
)

PLAN = """\
struct Plan {{
  static constexpr int EARLY = {early};
  typedef List<{fields}> Fields;
  typedef List<{rings}> Rings;
  typedef List<{nodes}> Nodes;
  typedef List<{counts}> Counts;
  typedef List<{narrow}> Narrow;
  static constexpr int SHARE = {share};
  struct State : {state} {{}};
  // The first row or column that a block works on, by that of its tile.
  static __device__ __forceinline__ int first(int at, int axis) {{ return axis == 1 ? {row} : {column}; }}
}};

extern "C" __global__ void __launch_bounds__({threads}, 1)
{entry}({parameters}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  stream_tiles<Plan>(a, {more}, reinterpret_cast<R*>(shared));
}}
"""


def program(rings: Rings) -> Program:
    """The kernel of some rings."""
    return Program(Text(rings).source, ENTRY, rings.shape.threads(rings.problem.itemsize), rings.shared_bytes, 1)


@dataclass(frozen=True)
class Text:
    """The program of some rings."""

    rings: Rings

    @property
    def source(self) -> str:
        """The whole translation unit."""
        parts = (
            prelude(self._arguments),
            include("packs.cuh", *(("packed_entries.cuh",) if self.rings.whole.tables else ())),
            self._shape,
            include("planes3d.cuh"),
            include("stream3d.cuh"),
            *self._declarations(),
            *(text for number, node in enumerate(self.rings.levels.nodes) for text in self._node(number, node)),
            self._plan,
        )
        return "\n".join(parts)

    @cached_property
    def _arguments(self) -> Arguments:
        return arguments_of(self.rings.whole) if self._given else Arguments(self.rings.whole)

    @property
    def _given(self) -> bool:
        """True if the kernel is given how blocks keep in step and wrap: one step is; several find ghost cells."""
        return self.rings.steps == 1

    @property
    def _threads(self) -> int:
        return self.rings.shape.threads(self.rings.problem.itemsize)

    @property
    def _shape(self) -> str:
        shape = self.rings.shape
        return SHAPE.format(
            columns=shape.columns,
            rows=shape.rows,
            rows_each=shape.rows_each,
            threads=self._threads,
            ahead=shape.ahead,
            kept=self.rings.kept,
            around=int(self.rings.around),
            polls=POLLS,
            paced=flag(bool(shape.lead) and self._given),
            periodic=flag(any(self.rings.problem.grid.periodic) and self._given),
            unroll=shape.unroll,
            own=flag(shape.own),
            split=flag(self.rings.split_barrier),
            barrier=self.rings.ring_values,
        )

    def _declarations(self) -> Iterator[str]:
        """The rings and, for each, the name by which updates read it."""
        yield "// Rings: start, planes, oldest and newest, columns left and right, rows above and below, planes kept."
        for version, ring in self.rings.rings.items():
            numbers = (ring.start, ring.planes, ring.oldest, ring.newest, ring.left, ring.right, ring.above, ring.below)
            text = f"Ring<{', '.join(map(str, (*numbers, ring.kept_from, ring.kept, ring.youngest)))}>"
            if version.source:
                text = f"Loaded<{text}, {self._loaded(ring)}>"
            yield f"typedef {text} {self._ring(version)};"
            yield f"template <int Z, int Y, int X> using {self._name(version)} = Read<{self._ring(version)}, Z, Y, X>;"

    def _loaded(self, ring: Ring) -> str:
        problem, name = self.rings.problem, ring.version.field
        growth = footprint(problem, self.rings.steps).inputs[name]
        need = _around(growth)
        home = unbounded(problem, problem.fields[name].box)
        block = self.rings.version(name, after=False) if name in self.rings.whole.state else SOURCE
        reach = _bounds(self._known(name, block))
        return f"{self._arguments.fields.index(name)}, {block}, {_bounds(need)}, {reach}, {_bounds(home)}"

    def _node(self, number: int, node: Node) -> Iterator[str]:
        growth = self.rings.reads.needs[node.step, node.stage]
        confined = list[str]()
        for place, update in enumerate(self.rings.reads.confined(node)):
            confined.append(f"Confined_{number}_{place}")
            yield self._confined(confined[-1], node, update)
        corrections = self.rings.reads.corrections(node)
        changes = [f"Correction_{number}_{place}" for place in range(len(corrections))]
        yield from map(self._correction, changes, repeat(node), corrections)
        yield NODE.format(
            title=f"Step {node.step}, stage {node.stage}: "
            + ", ".join(dict.fromkeys(u.name for u in self.rings.problem.stages[node.stage].updates)),
            name=f"Node_{number}",
            lead=self.rings.reads.lead(node),
            values=len(node.writes),
            barrier=flag(self.rings.waits(node)),
            guarded=flag(self._guarded(node)),
            need=_bounds(_around(growth)),
            usual=_bounds(usual_box(self.rings.problem, node.stage) if confined else FARTHEST),
            made=", ".join(self._made(node)),
            confined=", ".join(confined),
            corrections=", ".join(changes),
            gives=", ".join(self._given_to_rings(node)) if corrections else "",
            own=max([1, *(len(self._loads(node, update)) for update in corrections)]),
            statements="\n".join(self._statements(node, [write.assignment for write in node.writes])),
        )

    def _confined(self, name: str, node: Node, update: Update) -> str:
        """An update on a part of the grid, its values those of the node and, in memory, of fields of its own."""
        places = {write.new.field: place for place, write in enumerate(node.writes)}
        own = own_fields(self.rings.problem, update)
        made = (
            f"Own<{n}, {self._arguments.fields.index(target)}>" if target in own else f"Value<{n}, {places[target]}>"
            for n, target in enumerate(update.targets)
        )
        return CONFINED.format(
            title=f"{update.name}, on {update.box.lo} to {update.box.hi}",
            name=name,
            values=len(update.targets),
            box=_bounds(update.box),
            made=", ".join(made),
            statements="\n".join(self._statements(node, update.assignments)),
        )

    def _correction(self, name: str, node: Node, update: Update) -> str:
        """An update that changes what a node made, on cells of a layer that is narrow along rows."""
        made = dict(zip((write.new.field for write in node.writes), self._made(node), strict=True))
        rings = {write.new.field: self._ring(write.new) for write in node.writes if write.new in self.rings.rings}
        own, fields = own_fields(self.rings.problem, update), self._arguments.fields
        known = {Read(write.new.field, (0, 0, 0)): self._in_place(write) for write in node.writes}
        loads = self._loads(node, update)
        known |= {read: f"Mine<{place}>" for place, read in enumerate(loads)}
        changed = (target for one in self.rings.reads.corrections(node) for target in one.targets if target in made)
        return CORRECTION.format(
            title=f"{update.name}, on {update.box.lo} to {update.box.hi}",
            name=name,
            values=len(update.targets),
            number=list(dict.fromkeys(changed)).index(next(target for target in update.targets if target in made)),
            box=_bounds(update.box),
            loads=", ".join(self._read(node, read, NONE).removeprefix("at(").removesuffix("{})") for read in loads),
            made=", ".join(
                f"Own<{n}, {fields.index(target)}>"
                if target in own
                else f"InPlace<{n}, {made[target]}, {rings.get(target, 'void')}>"
                for n, target in enumerate(update.targets)
            ),
            statements="\n".join(self._statements(node, update.assignments, known)),
        )

    def _loads(self, node: Node, update: Update) -> list[Read]:
        """The reads of a correction that memory answers: fields of the layer alone, and profiles along rows."""
        fields = self.rings.problem.fields
        reads = (read for read in sorted(update.reads, key=str) if read.field not in node.before)
        return [read for read in reads if fields[read.field].full or fields[read.field].axes == (2,)]

    def _in_place(self, write: Write) -> str:
        """The name by which corrections read what a node made: in its ring, or in that of the version before, of which
        nobody else reads the plane any more.
        """
        return f"{self._name(write.new if write.new in self.rings.rings else write.old)}<0, 0, 0>"

    def _given_to_rings(self, node: Node) -> Iterator[str]:
        """The values that go into the ring of the version before."""
        targets = {target for update in self.rings.reads.corrections(node) for target in update.targets}
        for place, write in enumerate(node.writes):
            if write.new.field in targets and write.new not in self.rings.rings:
                yield f"Given<{place}, {self._ring(write.old)}>"

    def _narrow(self) -> list[tuple[int, int]]:
        """The columns of all corrections."""
        updates = (update for node in self.rings.levels.nodes for update in self.rings.reads.corrections(node))
        found: list[tuple[int, int]] = []
        for lo, hi in sorted((update.box.lo[2], update.box.hi[2]) for update in updates):
            if found and lo <= found[-1][1]:
                found[-1] = found[-1][0], max(hi, found[-1][1])
            else:
                found.append((lo, hi))
        return found

    def _share(self) -> int:
        """The threads that make the corrections of one field: whole warps, unless a block has too few."""
        made = (
            {target for update in self.rings.reads.corrections(node) for target in update.targets}
            & {write.new.field for write in node.writes}
            for node in self.rings.levels.nodes
        )
        share = self._threads // max([1, *map(len, made)])
        return share // 32 * 32 or share

    def _guarded(self, node: Node) -> bool:
        """True if a node may make no other planes than it has to: only these are in its profiles."""
        reads = (read for write in node.writes for read in write.assignment.reads)
        return any(self.rings.problem.fields[read.field].axes == (0,) for read in reads)

    def _made(self, node: Node) -> Iterator[str]:
        problem, finals = self.rings.problem, self.rings.levels.finals
        for number, write in enumerate(node.writes):
            name, box = write.new.field, self.rings.reads.box(node, write)
            keeps = self.rings.reads.keeps(node, write)
            ring = self._ring(write.new) if write.new in self.rings.rings else "void"
            field = self._arguments.fields.index(name) if write.new in finals else -1
            home = _bounds(unbounded(problem, problem.fields[name].box) if keeps else box)
            block, reach = self.rings.version(name, after=True), _bounds(self._reach(name))
            old = self._ring(write.old) if keeps else "void"
            yield f"Made<{number}, {ring}, {field}, {block}, {home}, {reach}, {_bounds(box)}, {old}>"

    def _known(self, name: str, block: int) -> Box:
        """The distance beyond the box of a pass up to which there are values that a launch loads: those it began with,
        or what an earlier launch left.
        """
        if block == SOURCE:
            return _around(footprint(self.rings.whole, self.rings.steps).inputs[name])
        earlier = (stage for stage in range(self.rings.stages[0]) if name in self.rings.whole.stages[stage].targets)
        return self._stored(name, max(earlier))

    def _reach(self, name: str) -> Box:
        """The distance beyond the box of a pass up to which a field is stored: for later launches."""
        if len(self.rings.stages) == len(self.rings.whole.stages):
            return Box((0, 0, 0), (0, 0, 0))
        stages = (stage for stage in self.rings.stages if name in self.rings.whole.stages[stage].targets)
        return self._stored(name, max(stages))

    def _stored(self, name: str, stage: int) -> Box:
        return _around(footprint(self.rings.whole, 1).targets[0][stage][name])

    def _statements(
        self, node: Node, assignments: Sequence[Assignment], known: Mapping[Read, str] = NONE
    ) -> Iterator[str]:
        step = f"step + {node.step}" if node.step else "step"
        names = [f"next[{number}]" for number in range(len(assignments))]
        results = cell_text(
            [assignment.value for assignment in assignments],
            lambda read: self._read(node, read, known),
            self._arguments.param,
            lambda signal: f"sample(a.signals[{self._arguments.signals.index(signal)}], {step})",
            self._arguments.entry,
            self.rings.problem.grid.dtype,
            names=names,
            style=PACKED,
        )
        for assignment, name, result in zip(assignments, names, results, strict=True):
            yield from (f"    {line}" for line in result.declarations)
            yield f"    {name} = cells({result.value});  // {assignment.target}"

    def _read(self, node: Node, read: Read, known: Mapping[Read, str]) -> str:
        described = self.rings.problem.fields[read.field]
        if read in known:
            return f"at({known[read]}{{}})"
        if described.full and read.field not in node.before:
            return f"at(Here<{self._arguments.fields.index(read.field)}>{{}})"
        if described.full:
            return f"at({self._name(node.before[read.field])}<{', '.join(map(str, read.offset))}>{{}})"
        axis = described.axes[0]
        return f"at(Along<{self._arguments.fields.index(read.field)}, {axis}, {read.offset[axis]}>{{}})"

    def _name(self, version: Version) -> str:
        """The name of a version in updates: its field and, of one that a node made, its number."""
        name = "f_" + letters(version.field)
        return name if version.source else f"{name}_{version.number}"

    def _ring(self, version: Version) -> str:
        return f"Ring_{version.number}"

    def _kinds(self) -> Iterator[Ring]:
        """A ring of each number of planes and values of a plane."""
        rings = [ring for ring in self.rings.rings.values() if ring.planes]
        yield from {
            (ring.planes, ring.values(self.rings.shape, 32 * self.rings.width)): ring for ring in rings
        }.values()

    @property
    def _plan(self) -> str:
        rings, growth = self.rings, self.rings.reads.growth
        periodic = rings.problem.grid.periodic
        row, column = (f"at - {growth.below[axis]}" for axis in (1, 2))
        kinds = ("Arguments a", "Pace pace", "Wraps wraps")[: 3 if self._given else 1]
        counts = list(dict.fromkeys(f"{self._ring(r.version)}::Slots" for r in self._kinds()))
        return PLAN.format(
            early=rings.early,
            fields=", ".join(self._ring(ring.version) for ring in rings.loaded()),
            rings=", ".join(map(self._ring, rings.rings)),
            nodes=", ".join(f"Node_{number}" for number in range(len(rings.levels.nodes))),
            counts=", ".join(counts),
            narrow=", ".join(f"Columns<{lo}, {hi}>" for lo, hi in self._narrow()),
            share=self._share(),
            state=", ".join(
                (
                    *counts,
                    *(f"Copies<{self._ring(r.version)}>" for r in rings.loaded()),
                )
            ),
            row=row if periodic[1] else f"max({row}, 0)",
            column=column if periodic[2] else f"max({column}, 0)",
            threads=self._threads,
            entry=ENTRY,
            parameters=", ".join(f"const __grid_constant__ {kind}" for kind in kinds),
            more="pace, wraps" if self._given else "Pace{nullptr, 0, 0}, Wraps{{0, 0, 0}}",
        )


def _around(growth: Growth) -> Box:
    """Growth as the bounds of a box of no cells that grew."""
    return Box(tuple(-n for n in growth.below), growth.above)


def _bounds(box: Box) -> str:
    ends = (end for pair in zip(box.lo, box.hi, strict=True) for end in pair)
    return f"Bounds<{', '.join(str(max(-FAR, min(FAR, end))) for end in ends)}>"

"""The program of a plan: constants and updates, which Python writes, around `skeletons/stream3d.cuh`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.interior import unbounded
from peergrid.codegen.cuda.blocked.kernel import HELPERS
from peergrid.codegen.cuda.blocked.levels import Node
from peergrid.codegen.cuda.common.arguments import Arguments, prelude
from peergrid.codegen.cuda.common.names import flag, listed
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.onestep.kernels import arguments_of
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.cuda.stream3d.bounds import around, bounds, known
from peergrid.codegen.cuda.stream3d.correction_text import CorrectionText, narrow, share
from peergrid.codegen.cuda.stream3d.rings import BARRIER_BYTES, Ring, Rings
from peergrid.codegen.cuda.stream3d.updates import UPDATE, Updates, read_name, ring_name
from peergrid.stencil import footprint
from peergrid.stencil.program import slow_at_zero

ENTRY = "stream3d"
NOTHING_GIVEN = "Pace{nullptr, 0, 0}, Wraps{{0, 0, 0}}, Awaited{nullptr, 0}"
TENSORS = "struct Tensors {{ Tensor of[{count}]; }};\n\n"
POLLS = 32  # looks at a counter, of half a microsecond each, before a block goes on

SHAPE = """\
struct Shape {{
  static constexpr int COLUMNS = {columns}, ROWS = {rows}, ROWS_EACH = {rows_each}, THREADS = {threads};
  static constexpr int AHEAD = {ahead}, KEPT = {kept}, AROUND = {around}, UNROLL = {unroll}, POLLS = {polls};
  static constexpr int BARRIER_AT = {barrier}, ARRIVALS_AT = {arrivals};
  static constexpr bool OWN = {own}, SPLIT = {split}, PACED = {paced}, PERIODIC = {periodic};
  static constexpr bool TENSOR = {tensor}, HINTS = {hints};
}};
"""

NODE = (
    """\
// {title}
struct {name} {{
  static constexpr int LEAD = {lead}, VALUES = {values}, OWN = {own};
  static constexpr bool BARRIER = {barrier}, SLOW_AT_ZERO = {slow};
  typedef {need} NEED;
  typedef List<{made}> Makes;
  typedef List<{corrections}> Corrections;
  typedef List<{gives}> Gives;
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
  typedef List<{profiles}> Profiles;
  typedef List<{narrow}> Narrow;
  static constexpr int SHARE = {share};
  struct State : {state} {{}};
  // The first row or column that a block works on, by that of its tile.
  static __device__ __forceinline__ int first(int at, int axis) {{ return axis == 1 ? {row} : {column}; }}
}};

{tensors}extern "C" __global__ void __launch_bounds__({threads}, 1)
{entry}({parameters}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  stream_tiles<Plan>(a, {more}, reinterpret_cast<R*>(shared));
}}
"""


def program(rings: Rings, *, given: bool) -> Program:
    """The kernel of some rings; given: whether it takes how blocks keep in step, which axes wrap, and
    which tiles are awaited.
    """
    return Program(Text(rings, given).source, ENTRY, rings.shape.threads(rings.problem.itemsize), rings.shared_bytes)


@dataclass(frozen=True)
class Text:
    """The program of some rings; given: as for `program`."""

    rings: Rings
    given: bool

    @property
    def source(self) -> str:
        """The whole translation unit."""
        parts = (
            prelude(self._arguments, *HELPERS),
            include("packs.cuh", *(("packed_entries.cuh",) if self.rings.whole.tables else ())),
            self._shape,
            include("planes3d.cuh"),
            include("tensor_copy.cuh"),
            include("stream3d.cuh"),
            *self._declarations(),
            *(text for number, node in enumerate(self.rings.levels.nodes) for text in self._node(number, node)),
            self._plan,
        )
        return "\n".join(parts)

    @cached_property
    def _arguments(self) -> Arguments:
        return arguments_of(self.rings.whole) if self.given else Arguments(self.rings.whole)

    @cached_property
    def _updates(self) -> Updates:
        return Updates(self.rings, self._arguments)

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
            paced=flag(bool(shape.lead) and self.given),
            periodic=flag(any(self.rings.problem.grid.periodic) and self.given),
            unroll=shape.unroll,
            own=flag(shape.own),
            split=flag(self.rings.split_barrier),
            barrier=self.rings.ring_values,
            arrivals=self.rings.ring_values + BARRIER_BYTES * self.rings.split_barrier // self.rings.problem.itemsize,
            tensor=flag(shape.tensor),
            hints=flag(shape.hints),
        )

    def _declarations(self) -> Iterator[str]:
        """The rings and, for each, the name by which updates read it."""
        yield "// Rings: start, planes, oldest and newest, columns left and right, rows above and below, planes kept."
        numbered = {ring.value: number for number, ring in enumerate(self.rings.loaded)}
        for value, ring in self.rings.rings.items():
            numbers = (ring.start, ring.planes, ring.oldest, ring.newest, ring.left, ring.right, ring.above, ring.below)
            text = f"Ring<{listed((*numbers, ring.kept_from, ring.kept, ring.youngest))}>"
            if value.source:
                text = f"Loaded<{text}, {self._loaded(ring)}, {numbered[value]}>"
            yield f"typedef {text} {ring_name(value)};"
            yield f"template <int Z, int Y, int X> using {read_name(value)} = Read<{ring_name(value)}, Z, Y, X>;"

    def _loaded(self, ring: Ring) -> str:
        problem, name = self.rings.problem, ring.value.field
        growth = footprint(problem, self.rings.steps).inputs[name]
        need = around(growth)
        home = unbounded(problem, problem.fields[name].box)
        block = self.rings.version(name, after=False)
        reach = bounds(known(self.rings, name, block))
        return f"{self._arguments.fields.index(name)}, {block}, {bounds(need)}, {reach}, {bounds(home)}"

    def _node(self, number: int, node: Node) -> Iterator[str]:
        growth = self.rings.reads.needs[node.step, node.stage]
        corrections = CorrectionText(self._updates, number, node)
        yield from corrections.structs
        yield NODE.format(
            title=f"Step {node.step}, stage {node.stage}: "
            + ", ".join(dict.fromkeys(u.name for u in self.rings.problem.stages[node.stage].updates)),
            name=f"Node_{number}",
            lead=self.rings.reads.lead(node),
            values=len(node.writes),
            barrier=flag(self.rings.waits(node)),
            slow=flag(slow_at_zero(write.assignment.value for write in node.writes)),
            need=bounds(around(growth)),
            made=listed(self._updates.made(node)),
            corrections=listed(corrections.names),
            gives=listed(corrections.gives),
            own=corrections.own,
            statements=self._updates.statements(
                node, [write.assignment for write in node.writes], self._updates.profiles
            ),
        )

    def _kinds(self) -> Iterator[Ring]:
        """A ring of each number of planes and values of a plane."""
        rings = [ring for ring in self.rings.rings.values() if ring.planes]
        yield from {(ring.planes, ring.values(self.rings.shape, self.rings.line)): ring for ring in rings}.values()

    @property
    def _plan(self) -> str:
        rings, growth = self.rings, self.rings.reads.growth
        periodic = rings.problem.grid.periodic
        row, column = (f"at - {growth.below[axis]}" for axis in (1, 2))
        kinds = ["Arguments a", *(("Pace pace", "Wraps wraps", "Awaited awaited") if self.given else ())]
        more = "pace, wraps, awaited" if self.given else NOTHING_GIVEN
        kinds += ["Tensors tensors"] * rings.shape.tensor
        profiles = list(dict.fromkeys(self._updates.profiles.values()))
        copies = "Beyond" if rings.shape.tensor else "Copies"
        counts = list(dict.fromkeys(f"{ring_name(r.value)}::Slots" for r in self._kinds()))
        return PLAN.format(
            early=rings.early,
            fields=listed(ring_name(ring.value) for ring in rings.loaded),
            rings=listed(map(ring_name, rings.rings)),
            nodes=listed(f"Node_{number}" for number in range(len(rings.levels.nodes))),
            counts=listed(counts),
            profiles=listed(profiles),
            narrow=listed(f"Columns<{lo}, {hi}>" for lo, hi in narrow(rings)),
            share=share(rings, self._threads),
            state=listed(
                (
                    *counts,
                    *(f"{copies}<{ring_name(r.value)}>" for r in rings.loaded),
                    *profiles,
                )
            ),
            row=row if periodic[1] else f"max({row}, 0)",
            column=column if periodic[2] else f"max({column}, 0)",
            threads=self._threads,
            entry=ENTRY,
            parameters=listed(f"const __grid_constant__ {kind}" for kind in kinds),
            more=f"{more}, {'tensors.of' if rings.shape.tensor else 'nullptr'}",
            tensors=TENSORS.format(count=len(rings.loaded)) if rings.shape.tensor else "",
        )

"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `levels`), held in registers; neighbours along the
row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `edge2d`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.expressions import PRELUDE, emit
from peergrid.codegen.cuda.levels import Levels, Node, Version, levels
from peergrid.grid import Dtype
from peergrid.stencil import Problem, footprint
from peergrid.stencil.expr import Read


@dataclass(frozen=True)
class Shape:
    """How a pass is cut: steps, columns per lane, rows loaded ahead, warps per block, rows between steps (`skew`).

    blocks: thread blocks that shall fit on a multiprocessor at once, which bounds the registers (0: no bound);
    rotate: rows keep their registers and the loop is unrolled; else they move from register to register, which costs
    instructions and saves registers.
    """

    steps: int
    columns: int = 4
    ahead: int = 4
    warps: int = 4
    skew: int = 0
    blocks: int = 0
    rotate: bool = True

    @property
    def width(self) -> int:
        """Columns that a warp loads."""
        return 32 * self.columns


def margin(problem: Problem, shape: Shape, align: int = 4) -> int:
    """The columns that a strip loses on each side, a multiple of what one store writes."""
    inputs = footprint(problem, shape.steps).inputs.values()
    reach = max(max(growth.below[1], growth.above[1]) for growth in inputs)
    return -(-reach // align) * align


def row_reach(problem: Problem, steps: int) -> tuple[int, int]:
    """How many rows above and below its own a tile reads."""
    inputs = footprint(problem, steps).inputs.values()
    return max(g.below[0] for g in inputs), max(g.above[0] for g in inputs)


@dataclass(frozen=True)
class Ring:
    """The rows of one input field in shared memory: `rows` of them, the first `start` bytes into the warp's part."""

    version: Version
    rows: int
    start: int


PRIMITIVES = """\
template <int BYTES> __device__ __forceinline__ void pg_fetch(void* to, const void* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(BYTES) : "memory");
}
__device__ __forceinline__ void pg_fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void pg_await() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
template <int N> struct __align__(N * sizeof(R)) Pack { R v[N]; };
"""
"""Asynchronous copies into shared memory; the tests put others in their place."""


@dataclass(frozen=True)
class Stream2D:
    """The text of the interior's kernel for one problem and shape."""

    problem: Problem
    shape: Shape
    entry: str = "stream2d"
    norm: str | None = None

    @cached_property
    def levels(self) -> Levels:
        return levels(self.problem, self.shape.steps, self.shape.skew)

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def dtype(self) -> Dtype:
        return self.problem.grid.dtype

    @property
    def pack(self) -> int:
        """How many values one load or store moves."""
        return min(self.shape.columns, 16 // self.problem.itemsize)

    @property
    def period(self) -> int:
        return self.levels.period if self.shape.rotate else 1

    @cached_property
    def rings(self) -> dict[int, Ring]:
        """The ring of every input version, by its number."""
        start = 0
        found: dict[int, Ring] = {}
        for version in self.levels.inputs:
            if self.problem.fields[version.field].full:
                rows = version.depth + self.shape.ahead
                found[version.number] = Ring(version, rows, start)
                start += rows * self.row_bytes
        return found

    @property
    def row_bytes(self) -> int:
        return self.shape.width * self.problem.itemsize

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.shape.warps * sum(ring.rows for ring in self.rings.values()) * self.row_bytes

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((PRELUDE, self.arguments.source, SAMPLE, PRIMITIVES, self.kernel))

    @cached_property
    def kernel(self) -> str:
        bound = f", {self.shape.blocks}" if self.shape.blocks else ""
        above, below = row_reach(self.problem, self.shape.steps)
        lines = [
            f'extern "C" __global__ void __launch_bounds__({32 * self.shape.warps}{bound})',
            f"{self.entry}(const __grid_constant__ Arguments a) {{",
            "  extern __shared__ __align__(128) unsigned char shared[];",
            "  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            f"  const int tile = blockIdx.x * {self.shape.warps} + warp;",
            "  if (tile >= a.count) return;",
            "  const int y0 = a.regions[tile].lo[0], y1 = a.regions[tile].hi[0];",
            "  const int c0 = a.regions[tile].lo[1], c1 = a.regions[tile].hi[1];",
            f"  const int x = c0 - {margin(self.problem, self.shape)} + lane * {self.shape.columns};",
            f"  const int first = y0 - {above}, last = y1 + {below};",
            f"  unsigned char* const ring = shared + warp * {self.shared_bytes // self.shape.warps}"
            f" + lane * {self.pack * self.problem.itemsize};",
            *self._step_numbers(),
            *self._sources(),
            *self._targets(),
            *self._declarations(),
            *self._fill(),
            f"  for (int r = first; r < y1 + {self.levels.lag}; r += {self.period}) {{",
            *(line for turn in range(self.period) for line in self._turn(turn)),
            "  }",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _step_numbers(self) -> Iterator[str]:
        if self.problem.signals:
            yield "  const long long step0 = a.step + (a.clock ? *a.clock : 0);"

    def _sources(self) -> Iterator[str]:
        for ring in self.rings.values():
            number = self.arguments.fields.index(ring.version.field)
            slot = "a.source" if ring.version.field in self.problem.state else "0"
            yield (
                f"  const R* in{number} = a.fields[{number}].slot[{slot}] + (first * a.fields[{number}].pitch[0] + x);"
            )

    def _targets(self) -> Iterator[str]:
        for version in self.levels.finals:
            number = self.arguments.fields.index(version.field)
            yield (
                f"  R* out{number} = a.fields[{number}].slot[a.target] + "
                f"((first - {version.lag}) * a.fields[{number}].pitch[0] + x);"
            )

    def _declarations(self) -> Iterator[str]:
        for version in self.levels.versions:
            names = ", ".join(f"v{version.number}_{k}[{self.shape.columns}] = {{}}" for k in self._slots(version))
            yield f"  R {names};"
        for rows in sorted({ring.rows for ring in self.rings.values()}):
            yield f"  unsigned in_{rows} = 0, at_{rows} = 0;"

    def _slots(self, version: Version) -> range:
        return range(self.period) if self.shape.rotate else range(version.depth)

    def _fill(self) -> Iterator[str]:
        for ahead in range(self.shape.ahead):
            yield from self._fetch(f"first + {ahead} < last")

    def _fetch(self, condition: str) -> Iterator[str]:
        """The next row of every input, where there is one, into its ring."""
        size = self.pack * self.problem.itemsize
        yield f"    if ({condition}) {{"
        for ring in self.rings.values():
            number = self.arguments.fields.index(ring.version.field)
            for part in range(self.shape.columns // self.pack):
                place = ring.start + part * 32 * size
                yield f"      pg_fetch<{size}>(ring + in_{ring.rows} + {place}, in{number} + {part * self.pack});"
            yield f"      in{number} += a.fields[{number}].pitch[0];"
        yield "    }"
        yield "    pg_fetched();"
        yield from self._advance("in")

    def _advance(self, name: str) -> Iterator[str]:
        for rows in sorted({ring.rows for ring in self.rings.values()}):
            total = rows * self.row_bytes
            yield f"    {name}_{rows} = {name}_{rows} == {total - self.row_bytes} ? 0 : {name}_{rows} + {self.row_bytes};"

    def _turn(self, turn: int) -> Iterator[str]:
        """One row: load ahead, wait for the newest, every node, the finished rows."""
        row = f"r + {turn}" if turn else "r"
        yield "    {"
        yield from self._fetch(f"{row} + {self.shape.ahead} < last")
        yield f"    pg_await<{self.shape.ahead}>();"
        body = _Turn(self, turn)
        for place, node in enumerate(self.levels.nodes):
            yield from body.node(node)
            yield from body.move_on(place)
        yield from self._store(row, body)
        yield from self._advance("at")
        yield "    }"

    def _store(self, row: str, body: _Turn) -> Iterator[str]:
        for version in self.levels.finals:
            number = self.arguments.fields.index(version.field)
            yield from body.load(version, 0)
            yield f"    if ({row} >= y0 + {version.lag} && {row} < y1 + {version.lag}) {{"
            for part in range(self.shape.columns // self.pack):
                values = ", ".join(f"{body.name(version, 0)}[{part * self.pack + k}]" for k in range(self.pack))
                column = f"x + {part * self.pack}" if part else "x"
                yield (
                    f"      if ({column} >= c0 && {column} < c1) "
                    f"*reinterpret_cast<Pack<{self.pack}>*>(out{number} + {part * self.pack}) = {{{{{values}}}}};"
                )
            yield "    }"
            yield f"    out{number} += a.fields[{number}].pitch[0];"


SAMPLE = """\
__device__ __forceinline__ R sample(const Signal& s, long long step) { return step < s.count ? s.samples[step] : R(0); }
"""


class _Turn:
    """The text of one turn of the loop: which rows and shuffled neighbours it has already at hand."""

    def __init__(self, kernel: Stream2D, turn: int) -> None:
        self.kernel = kernel
        self.turn = turn
        self.known: set[str] = set()

    def name(self, version: Version, age: int) -> str:
        """The array that holds a version's row of that age."""
        if version.source:
            return f"u{version.number}_{age}"
        place = (self.turn - age) % self.kernel.period if self.kernel.shape.rotate else age
        return f"v{version.number}_{place}"

    def node(self, node: Node) -> Iterator[str]:
        yield f"    // step {node.step}, stage {node.stage}"
        reads = list(dict.fromkeys(r for w in node.writes for r in sorted(w.assignment.reads, key=str)))
        for read in reads:
            if self.kernel.problem.fields[read.field].full:
                yield from self.load(*node.row(read))
                yield from self._neighbours(read, *node.row(read))
        for write in node.writes:
            for i in range(self.kernel.shape.columns):
                text = emit(
                    write.assignment.value,
                    lambda read, i=i: self._value(node, read, i),  # type: ignore[misc]
                    self.kernel.arguments.param,
                    lambda signal: self.kernel.arguments.now(signal).replace("step)", f"step0 + {node.step})"),
                    self.kernel.dtype,
                )
                yield f"    {self.name(write.new, 0)}[{i}] = {text};"

    def move_on(self, place: int) -> Iterator[str]:
        """Without unrolling, the rows of a version move on by one as soon as no later node reads them."""
        if self.kernel.shape.rotate:
            return
        for version in self.kernel.levels.versions:
            if version.depth > 1 and self.kernel.levels.last_reader[version] == place:
                for age in range(version.depth - 1, 0, -1):
                    for i in range(self.kernel.shape.columns):
                        yield f"    v{version.number}_{age}[{i}] = v{version.number}_{age - 1}[{i}];"

    def load(self, version: Version, age: int) -> Iterator[str]:
        """An input row from its ring."""
        name = self.name(version, age)
        if not version.source or name in self.known:
            return
        self.known.add(name)
        kernel = self.kernel
        ring = kernel.rings[version.number]
        size, step = ring.rows * kernel.row_bytes, age * kernel.row_bytes
        place = f"at_{ring.rows}"
        if age:
            place = f"min(at_{ring.rows} - {step}u, at_{ring.rows} + {size - step}u)"
        yield f"    R {name}[{kernel.shape.columns}];"
        for part in range(kernel.shape.columns // kernel.pack):
            start = ring.start + part * 32 * kernel.pack * kernel.problem.itemsize
            yield f"    {{ const Pack<{kernel.pack}> q = *reinterpret_cast<const Pack<{kernel.pack}>*>(ring + {place} + {start});"
            for k in range(kernel.pack):
                yield f"      {name}[{part * kernel.pack + k}] = q.v[{k}];"
            yield "    }"

    def _neighbours(self, read: Read, version: Version, age: int) -> Iterator[str]:
        """What a read finds in other lanes."""
        columns = self.kernel.shape.columns
        for i in range(columns):
            lanes, element = divmod(i + read.offset[1], columns)
            if lanes:
                name = self._shuffled(version, age, lanes, element)
                if name not in self.known:
                    self.known.add(name)
                    way = "up" if lanes < 0 else "down"
                    yield (
                        f"    const R {name} = __shfl_{way}_sync(0xffffffffu, "
                        f"{self.name(version, age)}[{element}], {abs(lanes)});"
                    )

    def _shuffled(self, version: Version, age: int, lanes: int, element: int) -> str:
        side = "l" if lanes < 0 else "r"
        return f"{self.name(version, age)}_{side}{abs(lanes)}_{element}"

    def _value(self, node: Node, read: Read, i: int) -> str:
        described = self.kernel.problem.fields[read.field]
        if not described.full:
            return self._profile(node, read, i)
        version, age = node.row(read)
        lanes, element = divmod(i + read.offset[1], self.kernel.shape.columns)
        if lanes:
            return self._shuffled(version, age, lanes, element)
        return f"{self.name(version, age)}[{element}]"

    def _profile(self, node: Node, read: Read, i: int) -> str:
        axis = self.kernel.problem.fields[read.field].axes[0]
        here = f"r + {self.turn - node.lag + read.offset[0]}" if axis == 0 else f"x + {i + read.offset[1]}"
        return f"a.fields[{self.kernel.arguments.fields.index(read.field)}].slot[0][{here}]"

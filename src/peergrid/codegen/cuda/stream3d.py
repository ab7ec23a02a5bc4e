"""Several time steps of a 3D problem in one pass over memory: the kernel of all cells with the usual updates.

One thread block works on a tile of rows and columns and streams along axis 0. Planes arrive in a ring in shared memory
by asynchronous copies; each plane passes through all steps at once (see `levels`). A lane keeps the planes of its own
cells, VX columns of a few rows, in registers; neighbours along the row come by shuffle, rows of other warps through
shared memory. Between planes the block meets at a barrier, and wherever a stage needs rows just made by other warps.

A warp spans the whole row of a tile, so tiles lose columns and rows on each side to the steps, but none at an edge of
the grid that is not periodic: cells that keep their value there are told apart by comparisons, which only the lanes'
columns that may need it carry; beyond a reflecting edge a read at distance 1 means the cell itself.

No tile given to this kernel may touch a confined update, a source or a receiver (see `edge3d`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.expressions import emit
from peergrid.codegen.cuda.levels import Levels, Node, Version, Write, levels
from peergrid.codegen.cuda.naming import plus
from peergrid.codegen.cuda.shape3d import Shape3D, meanings, reach
from peergrid.codegen.cuda.stream_parts import prelude
from peergrid.codegen.cuda.walls import Sides, sides
from peergrid.stencil import Problem, footprint
from peergrid.stencil.expr import Read

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}{bound})
{entry}(const __grid_constant__ Arguments a) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared);
}}
"""

PUT = """\
// The values of a row from column x on; only columns lo <= x < hi are written.
template <int V, int P> __device__ __forceinline__ void pg_put(R* to, const R (&from)[V], int x, int lo, int hi) {
  if (x >= lo && x + V <= hi) {
#pragma unroll
    for (int k = 0; k < V; k += P) {
      Pack<P> q;
#pragma unroll
      for (int i = 0; i < P; ++i) q.v[i] = from[k + i];
      *reinterpret_cast<Pack<P>*>(to + k) = q;
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < V; ++k) if (x + k >= lo && x + k < hi) to[k] = from[k];
}
"""

PUTS = """\
// The values of a row, all of them.
template <int V, int P> __device__ __forceinline__ void pg_whole(R* to, const R (&from)[V]) {
#pragma unroll
  for (int k = 0; k < V; k += P) {
    Pack<P> q;
#pragma unroll
    for (int i = 0; i < P; ++i) q.v[i] = from[k + i];
    *reinterpret_cast<Pack<P>*>(to + k) = q;
  }
}
// Those of a row from column x on in columns lo <= x < hi.
template <int V> __device__ __forceinline__ void pg_part(R* to, const R (&from)[V], int x, int lo, int hi) {
#pragma unroll
  for (int k = 0; k < V; ++k) if (x + k >= lo && x + k < hi) to[k] = from[k];
}
"""


@dataclass(frozen=True)
class Planes:
    """The planes of one version in shared memory: `count` of them, the first `start` bytes into the block's part."""

    version: Version
    count: int
    start: int


@dataclass(frozen=True)
class Stream3D:
    """The text of the kernel for one problem and shape."""

    problem: Problem
    shape: Shape3D
    entry: str = "stream3d"

    @cached_property
    def levels(self) -> Levels:
        return levels(self.problem, self.shape.steps, self.shape.skew, walls=True)

    @cached_property
    def sides(self) -> dict[tuple[int, str], Sides]:
        return sides(self.problem, self.shape.steps)

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def pack(self) -> int:
        """How many values one load or store moves."""
        return min(self.shape.columns, 16 // self.problem.itemsize)

    @property
    def chunk(self) -> int:
        """How many values of a row a lane loads."""
        return max(self.shape.columns, self.shape.align(self.problem.itemsize))

    @property
    def period(self) -> int:
        """Planes after which registers are used alike."""
        kept = (version.depth for version in (*self.levels.inputs, *self.levels.versions) if self.held(version))
        return max(kept, default=1)

    @property
    def row_bytes(self) -> int:
        return self.shape.width * self.problem.itemsize

    @property
    def plane_bytes(self) -> int:
        return self.shape.height * self.row_bytes

    def held(self, version: Version) -> bool:
        """Whether a lane keeps the planes of its cells in registers."""
        return self.problem.fields[version.field].full and (self.shape.held or not version.source)

    @cached_property
    def crossing(self) -> dict[Version, tuple[int, int, int]]:
        """Of the versions that are read in other rows: the oldest plane, the rows above and below."""
        found: dict[Version, tuple[int, int, int]] = {}
        for node in self.levels.nodes:
            for read in self.reads(node):
                if self.problem.fields[read.field].full and read.offset[1]:
                    version, age = node.row(read)
                    oldest, above, below = found.get(version, (0, 0, 0))
                    row = read.offset[1]
                    found[version] = (max(oldest, age), max(above, -row), max(below, row))
        return found

    def reads(self, node: Node) -> list[Read]:
        """What the reads of a node may mean, each once."""
        every = (read for write in node.writes for read in sorted(write.assignment.reads, key=str))
        return list(dict.fromkeys(meaning for read in every for meaning in meanings(self.problem, read)))

    @cached_property
    def planes(self) -> dict[Version, Planes]:
        """The planes in shared memory: of every input, and of what is read in other rows."""
        start = self.pad
        found: dict[Version, Planes] = {}
        for version in (*self.levels.inputs, *self.levels.versions):
            if not self.problem.fields[version.field].full or (not version.source and version not in self.crossing):
                continue
            oldest = self.crossing.get(version, (0, 0, 0))[0]
            if version.source:
                oldest = (oldest if self.shape.held else version.depth - 1) + self.shape.ahead
            count = max(oldest + 1, self.period) if self.shape.turning else oldest + 1
            found[version] = Planes(version, count, start)
            start += count * self.plane_bytes
        return found

    def fixed(self, count: int) -> bool:
        """Whether the places of a ring of so many planes repeat with the turns of the loop."""
        return count == self.period

    @property
    def pad(self) -> int:
        """Bytes before the first plane and after the last that rows outside the block's would have."""
        return max((max(above, below) for _, above, below in self.crossing.values()), default=0) * self.row_bytes

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return 2 * self.pad + sum(planes.count for planes in self.planes.values()) * self.plane_bytes

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(self.arguments), PUTS if self.shape.together else PUT, self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose blocks take one tile each."""
        bound = f", {self.shape.blocks}" if self.shape.blocks else ""
        return KERNEL.format(entry=self.entry, threads=self.shape.threads, bound=bound)

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block."""
        size = self.pack * self.problem.itemsize
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            "    const int source, const int target, const long long step0, unsigned char* const shared) {",
            "  const int lane = threadIdx.x & 31;",
            "  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x >> 5), 0);  // seen as uniform",
            "  const int z0 = tile.lo[0], z1 = tile.hi[0], y0 = tile.lo[1], y1 = tile.hi[1];",
            "  const int c0 = tile.lo[2], c1 = tile.hi[2];",
            *self._place(),
            f"  unsigned char* const mine = shared + {self.pad} + warp * {self.shape.rows * self.row_bytes}"
            f" + lane * {size};",
            *self._loaded(),
            *self._calm(),
            *self._sources(),
            *self._targets(),
            *self._declarations(),
            *self._fill(),
            f"  for (int r = first; r < z1 + {self.levels.lag}; r += {self.period}) {{",
            *(line for turn in range(self.period) for line in self._turn(turn)),
            "  }",
            "  pg_await<0>();",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _place(self) -> Iterator[str]:
        """The first cell of a lane and the planes of the tile; nothing lies beyond an edge that is not periodic."""
        growth, periodic = reach(self.problem, self.shape.steps), self.problem.grid.periodic
        column = f"((c0 - {growth.below[2]}) & ~{self.shape.align(self.problem.itemsize) - 1})"
        row, first, last = f"y0 - {growth.below[1]}", f"z0 - {growth.below[0]}", f"z1 + {growth.above[0]}"
        column = column if periodic[2] else f"max({column}, 0)"
        row = row if periodic[1] else f"max({row}, 0)"
        if not periodic[0]:
            first, last = f"max({first}, 0)", f"min({last}, {self.problem.grid.shape[0]})"
        yield f"  const int x = {column} + lane * {self.shape.columns}, y = {row} + warp * {self.shape.rows};"
        if self.chunk > self.shape.columns:
            yield f"  const int xf = {column} + lane * {self.chunk};"
        yield f"  const int first = {first}, last = {last};"

    def _loaded(self) -> Iterator[str]:
        """Where a lane puts what it loads, if not where its own cells are."""
        if self.chunk > self.shape.columns:
            yield f"  unsigned char* const loaded = mine + lane * {(self.chunk - self.pack) * self.problem.itemsize};"

    def calm(self, stage: int, target: str) -> str:
        """The name of whether all cells of a warp lie inside an update's box, along rows and columns."""
        return f"calm{stage}_{self.arguments.fields.index(target)}"

    def _calm(self) -> Iterator[str]:
        for (stage, target), found in self.sides.items():
            rows = [found.test(1, plus("y", j)) for j in (0, self.shape.rows - 1)]
            columns = [found.test(2, plus("x", i)) for i in (0, self.shape.columns - 1)]
            tests = " && ".join(dict.fromkeys(filter(None, (*rows, *columns))))
            if tests:
                yield f"  const bool {self.calm(stage, target)} = __all_sync(0xffffffffu, {tests});"

    def _sources(self) -> Iterator[str]:
        """Where each field is loaded from, and which rows of a lane are."""
        for number, name in enumerate(self._classes()):
            for j in range(self.shape.rows):
                wide = self.chunk > self.shape.columns
                x = "xf" if wide else "x"
                tests = [f"lane < {self.shape.width // self.chunk}"] * wide
                tests += [self._known(name, 1, plus("y", j), 1), self._known(name, 2, x, self.chunk)]
                yield f"  const bool on{number}_{j} = {' && '.join(tests)};"
        for planes in self._inputs:
            field = f"a.fields[{self._number(planes.version)}]"
            slot = "source" if planes.version.field in self.problem.state else "0"
            yield f"  const R* in{self._number(planes.version)} = {field}.slot[{slot}]"
            x = "xf" if self.chunk > self.shape.columns else "x"
            yield f"      + (first * {field}.pitch[0] + y * {field}.pitch[1] + {x});"

    @property
    def _inputs(self) -> list[Planes]:
        return [planes for planes in self.planes.values() if planes.version.source]

    def _number(self, version: Version) -> int:
        return self.arguments.fields.index(version.field)

    def _classes(self) -> tuple[str, ...]:
        """Fields that stand for all with the same box and reach: for these the same cells are loaded."""
        needs = footprint(self.problem, self.shape.steps).inputs
        found: dict[object, str] = {}
        for planes in self._inputs:
            name = planes.version.field
            found.setdefault((needs[name], self.problem.fields[name].box), name)
        return tuple(found.values())

    def _class(self, name: str) -> int:
        needs, boxes = footprint(self.problem, self.shape.steps).inputs, self.problem.fields
        return next(
            k
            for k, other in enumerate(self._classes())
            if needs[other] == needs[name] and boxes[other].box == boxes[name].box
        )

    def _known(self, name: str, axis: int, text: str, count: int) -> str:
        """Whether any of `count` cells from one on is needed, along an axis."""
        growth, box = footprint(self.problem, self.shape.steps).inputs[name], self.problem.fields[name].box
        lo, hi = (("z0", "z1"), ("y0", "y1"), ("c0", "c1"))[axis]
        low, high = f"{lo} - {growth.below[axis]}", f"{hi} + {growth.above[axis]}"
        if not self.problem.grid.periodic[axis]:
            low, high = f"max({low}, {box.lo[axis]})", f"min({high}, {box.hi[axis]})"
        return f"{plus(text, count - 1)} >= {low} && {text} < {high}"

    def _targets(self) -> Iterator[str]:
        for version in self.levels.finals:
            field = f"a.fields[{self._number(version)}]"
            yield f"  R* out{self._number(version)} = {field}.slot[target]"
            yield f"      + ((first - {version.lag}) * {field}.pitch[0] + y * {field}.pitch[1] + x);"

    def _declarations(self) -> Iterator[str]:
        for version in (*self.levels.inputs, *self.levels.versions):
            if self.held(version):
                extent = f"[{self.shape.rows}][{self.shape.columns}] = {{}}"
                yield f"  R {', '.join(f'v{version.number}_{k}{extent}' for k in range(self.period))};"
        for count in self._counts(source=True):
            yield f"  unsigned in_{count} = 0, at_{count} = 0;"
        for count in self._counts(source=False):
            yield f"  unsigned ex_{count} = 0;"

    def _counts(self, *, source: bool) -> list[int]:
        rings = (planes for planes in self.planes.values() if planes.version.source is source)
        return sorted({planes.count for planes in rings if not self.fixed(planes.count)})

    def _fill(self) -> Iterator[str]:
        for ahead in range(self.shape.ahead):
            yield from self._fetch(plus("first", ahead), ahead)

    def _fetch(self, plane: str, place: int) -> Iterator[str]:
        """The next plane of every input, where there is one, into its ring; place: the plane's, from the first one."""
        wide = self.chunk > self.shape.columns
        values = self.chunk if wide else self.pack
        size, to = values * self.problem.itemsize, "loaded" if wide else "mine"
        for planes in self._inputs:
            name, number = planes.version.field, self._number(planes.version)
            yield f"    if ({self._known(name, 0, plane, 1)}) {{"
            for j in range(self.shape.rows):
                yield f"      if (on{self._class(name)}_{j}) {{"
                ring = f"in_{planes.count}"
                if self.fixed(planes.count):
                    ring = f"{place % planes.count * self.plane_bytes}"
                for part in range(self.chunk // values):
                    at = planes.start - self.pad + j * self.row_bytes + part * 32 * size
                    row = f" + {j} * a.fields[{number}].pitch[1]" if j else ""
                    yield f"        pg_fetch<{size}>({to} + {ring} + {at}, in{number}{row} + {part * values});"
                yield "      }"
            yield "    }"
            yield f"    in{number} += a.fields[{number}].pitch[0];"
        yield "    pg_fetched();"
        yield from self._advance("in", source=True)

    def _advance(self, name: str, *, source: bool) -> Iterator[str]:
        for count in self._counts(source=source):
            last, place = (count - 1) * self.plane_bytes, f"{name}_{count}"
            if last:
                yield f"    {place} = {place} == {last} ? 0 : {place} + {self.plane_bytes};"

    def _turn(self, turn: int) -> Iterator[str]:
        """One plane: await it, load ahead, every node, the finished plane."""
        row = plus("r", turn)
        yield "    {"
        yield f"    pg_await<{self.shape.ahead - 1}>();"
        yield "    __syncthreads();"
        yield from self._fetch(plus("r", turn + self.shape.ahead), turn + self.shape.ahead)
        body = _Turn(self, turn)
        yield from body.arrived()
        yield from body.nodes()
        yield from self._together(row, body) if self.shape.together else self._store(row, body)
        yield from self._advance("at", source=True)
        yield from self._advance("ex", source=False)
        yield "    }"

    def _store(self, row: str, body: _Turn) -> Iterator[str]:
        for version in self.levels.finals:
            number = self._number(version)
            (ylo, yhi), (xlo, xhi) = (self._written(version.field, axis) for axis in (1, 2))
            zlo, zhi = self._written(version.field, 0)
            yield from body.rows(version, 0, range(self.shape.rows))
            yield f"    if ({row} >= {zlo} + {version.lag} && {row} < {zhi} + {version.lag}) {{"
            for j in range(self.shape.rows):
                place = f"out{number} + {j} * a.fields[{number}].pitch[1]" if j else f"out{number}"
                put = f"pg_put<{self.shape.columns}, {self.pack}>({place}, {body.name(version, 0, j)}, x, {xlo}, {xhi})"
                yield f"      if ({plus('y', j)} >= {ylo} && {plus('y', j)} < {yhi}) {put};"
            yield "    }"
            yield f"    out{number} += a.fields[{number}].pitch[0];"

    def _together(self, row: str, body: _Turn) -> Iterator[str]:
        """The finished plane of every field, those with the same bounds under one test."""
        alike: dict[tuple[int, tuple[tuple[str, str], ...]], list[Version]] = {}
        for version in self.levels.finals:
            bounds = tuple(self._written(version.field, axis) for axis in range(3))
            alike.setdefault((version.lag, bounds), []).append(version)
        for (lag, (planes, rows, columns)), versions in alike.items():
            for version in versions:
                yield from body.rows(version, 0, range(self.shape.rows))
            yield f"    if ({row} >= {planes[0]} + {lag} && {row} < {planes[1]} + {lag}) {{"
            for j in range(self.shape.rows):
                yield f"      if ({plus('y', j)} >= {rows[0]} && {plus('y', j)} < {rows[1]}) {{"
                yield from self._row_out(versions, body, j, columns)
                yield "      }"
            yield "    }"
        for version in self.levels.finals:
            number = self._number(version)
            yield f"    out{number} += a.fields[{number}].pitch[0];"

    def _row_out(self, versions: list[Version], body: _Turn, j: int, columns: tuple[str, str]) -> Iterator[str]:
        """A lane's columns of a row of several fields, all or those within bounds."""
        lo, hi = columns
        whole, part = f"pg_whole<{self.shape.columns}, {self.pack}>", f"pg_part<{self.shape.columns}>"
        places = [f"out{n} + {j} * a.fields[{n}].pitch[1]" if j else f"out{n}" for n in map(self._number, versions)]
        values = [body.name(version, 0, j) for version in versions]
        yield f"        if (x >= {lo} && x + {self.shape.columns} <= {hi}) {{"
        for place, value in zip(places, values, strict=True):
            yield f"          {whole}({place}, {value});"
        yield "        } else {"
        for place, value in zip(places, values, strict=True):
            yield f"          {part}({place}, {value}, x, {lo}, {hi});"
        yield "        }"

    def _written(self, name: str, axis: int) -> tuple[str, str]:
        lo, hi = (("z0", "z1"), ("y0", "y1"), ("c0", "c1"))[axis]
        box = self.problem.fields[name].box
        if self.problem.grid.periodic[axis] or box.shape[axis] == self.problem.grid.shape[axis]:
            return lo, hi
        return f"max({lo}, {box.lo[axis]})", f"min({hi}, {box.hi[axis]})"


class _Turn:
    """The text of one turn of the loop: which rows and shuffled neighbours it has already at hand."""

    def __init__(self, kernel: Stream3D, turn: int) -> None:
        self.kernel = kernel
        self.turn = turn
        self.known: set[str] = set()

    def name(self, version: Version, age: int, j: int) -> str:
        """The array that holds the values of a version's plane of that age in the lane's row j."""
        if self.kernel.held(version) and 0 <= j < self.kernel.shape.rows:
            return f"v{version.number}_{(self.turn - age) % self.kernel.period}[{j}]"
        return self._tag("u", version, age, j)

    def _tag(self, kind: str, version: Version, age: int, j: int) -> str:
        return f"{kind}{version.number}_{age}_{'m' if j < 0 else ''}{abs(j)}"

    def arrived(self) -> Iterator[str]:
        """The newest plane of every input into registers, where it is kept there."""
        for planes in self.kernel.planes.values():
            if planes.version.source and self.kernel.held(planes.version):
                for j in range(self.kernel.shape.rows):
                    yield from self._fill(self.name(planes.version, 0, j), planes, 0, j)

    def nodes(self) -> Iterator[str]:
        """All nodes, between barriers where rows are read that other warps just made."""
        for number, part in enumerate(self._parts()):
            if number:
                yield "    __syncthreads();"
            if self.kernel.shape.apart == "part":
                yield from self._either(part)
            else:
                for node in part:
                    yield from self.node(node)

    def _parts(self) -> Iterator[list[Node]]:
        """The nodes between two barriers."""
        unmet: set[Version] = set()
        part: list[Node] = []
        for node in self.kernel.levels.nodes:
            if any(read.offset[1] and row[0] in unmet and row[1] == 0 for read, row in self._rows(node)):
                yield part
                part = []
                unmet.clear()
            part.append(node)
            unmet.update(write.new for write in node.writes if write.new in self.kernel.crossing)
        yield part

    def _rows(self, node: Node) -> list[tuple[Read, tuple[Version, int]]]:
        """The reads of a node in full fields, and the version and age of each."""
        reads = self.kernel.reads(node)
        return [(read, node.row(read)) for read in reads if self.kernel.problem.fields[read.field].full]

    def _either(self, part: list[Node]) -> Iterator[str]:
        """Nodes as one text without tests, for warps and planes that need none, and one with them."""
        tests = self._tests(part)
        if tests:
            yield f"    if ({' && '.join(tests)}) {{"
        for apart in (False, True) if tests else (False,):
            before = set(self.known)
            for node in part:
                yield from self._gather(node)
                for write in node.writes:
                    for j in range(self.kernel.shape.rows):
                        yield from self._row(node, write, j) if apart else self._cells(node, write, j, apart=False)
                for write in node.writes:
                    yield from self._publish(write.new)
            if tests:
                self.known = before
                yield "    }" if apart else "    } else {"

    def _tests(self, part: list[Node]) -> list[str]:
        """What tells that no cell of a warp keeps its value in some nodes."""
        tests: dict[str, None] = {}
        for node in part:
            for write in node.writes:
                found = self.kernel.sides[node.stage, write.new.field]
                if found.test(0, ""):
                    tests[found.test(0, self._plane(node))] = None
                if found.test(1, "") or found.test(2, "x"):
                    tests[self.kernel.calm(node.stage, write.new.field)] = None
        return list(tests)

    def node(self, node: Node) -> Iterator[str]:
        yield from self._gather(node)
        if self.kernel.shape.apart == "node":
            yield from self._grouped(node)
        else:
            for write in node.writes:
                yield from self._write(node, write)
        for write in node.writes:
            yield from self._publish(write.new)

    def _grouped(self, node: Node) -> Iterator[str]:
        """What a node makes, under one test."""
        rows, tests = range(self.kernel.shape.rows), self._tests([node])
        if tests:
            yield f"    if ({' && '.join(tests)}) {{"
        for write in node.writes:
            for j in rows:
                yield from self._cells(node, write, j, apart=False)
        if tests:
            yield "    } else {"
            for write in node.writes:
                for j in rows:
                    yield from self._row(node, write, j)
            yield "    }"

    def _gather(self, node: Node) -> Iterator[str]:
        """What a node reads beside the lane's own cells."""
        yield f"    // step {node.step}, stage {node.stage}"
        rows = range(self.kernel.shape.rows)
        for read, (version, age) in self._rows(node):
            yield from self.rows(version, age, (j + read.offset[1] for j in rows))
            for j in rows:
                yield from self._neighbours(version, age, j + read.offset[1], read.offset[2])

    def rows(self, version: Version, age: int, rows: Iterator[int] | range) -> Iterator[str]:
        """Rows from shared memory that the lane does not keep."""
        for j in rows:
            name = self.name(version, age, j)
            if "[" not in name and name not in self.known:
                self.known.add(name)
                yield f"    R {name}[{self.kernel.shape.columns}];"
                yield from self._fill(name, self.kernel.planes[version], age, j)

    def _fill(self, name: str, planes: Planes, age: int, j: int) -> Iterator[str]:
        kernel = self.kernel
        place = self._at(planes, age)
        pack = f"const Pack<{kernel.pack}>"
        for part in range(kernel.shape.columns // kernel.pack):
            start = planes.start - kernel.pad + j * kernel.row_bytes + part * 32 * kernel.pack * kernel.problem.itemsize
            yield f"    {{ {pack} q = *reinterpret_cast<{pack}*>(mine + {place} + {start});"
            values = (f"{name}[{part * kernel.pack + k}] = q.v[{k}];" for k in range(kernel.pack))
            yield f"      {' '.join(values)} }}"

    def _at(self, planes: Planes, age: int) -> str:
        """Where the plane of that age is, in bytes from the ring's beginning."""
        kernel, place = self.kernel, f"{'at' if planes.version.source else 'ex'}_{planes.count}"
        if kernel.fixed(planes.count):
            return f"{(self.turn - age) % planes.count * kernel.plane_bytes}"
        size, step = planes.count * kernel.plane_bytes, age * kernel.plane_bytes
        return f"min({place} - {step}u, {place} + {size - step}u)" if age else place

    def _neighbours(self, version: Version, age: int, j: int, offset: int) -> Iterator[str]:
        """What a read finds in other lanes of its row."""
        for i in range(self.kernel.shape.columns):
            lanes, element = divmod(i + offset, self.kernel.shape.columns)
            if lanes:
                name = self._shuffled(version, age, j, lanes, element)
                if name not in self.known:
                    self.known.add(name)
                    way = "up" if lanes < 0 else "down"
                    value = f"{self.name(version, age, j)}[{element}]"
                    yield f"    const R {name} = __shfl_{way}_sync(0xffffffffu, {value}, {abs(lanes)});"

    def _shuffled(self, version: Version, age: int, j: int, lanes: int, element: int) -> str:
        side = "l" if lanes < 0 else "r"
        return f"{self._tag('s', version, age, j)}_{side}{abs(lanes)}_{element}"

    def _write(self, node: Node, write: Write) -> Iterator[str]:
        """What a node makes; where a warp's cells all lie inside the update's box no cell has to be told apart."""
        found, rows = self.kernel.sides[node.stage, write.new.field], range(self.kernel.shape.rows)
        plane, beside = found.test(0, self._plane(node)), found.test(1, "y") or found.test(2, "x")
        if plane:
            yield f"    const bool plane{write.new.number} = {plane};"
        if self.kernel.shape.apart == "cell":
            for j in rows:
                yield from self._cells(node, write, j, apart=True)
            return
        tests = [f"plane{write.new.number}"] * bool(plane)
        tests += [self.kernel.calm(node.stage, write.new.field)] * bool(beside)
        if tests:
            yield f"    if ({' && '.join(tests)}) {{"
        for j in rows:
            yield from self._cells(node, write, j, apart=False)
        if tests:
            yield "    } else {"
            for j in rows:
                yield from self._row(node, write, j)
            yield "    }"

    def _row(self, node: Node, write: Write, j: int) -> Iterator[str]:
        """One row; where it lies outside the update's box it keeps its values, which is told for all lanes at once."""
        found = self.kernel.sides[node.stage, write.new.field]
        tests = [found.test(0, self._plane(node))] * bool(found.test(0, ""))
        tests += [found.test(1, plus("y", j))] * bool(found.test(1, ""))
        new, old = self.name(write.new, 0, j), self.name(write.old, node.lag - write.old.lag, j)
        yield f"    if ({' && '.join(tests) or 'true'}) {{"
        yield from self._cells(node, write, j, apart=True)
        yield "    } else {"
        for i in range(self.kernel.shape.columns):
            yield f"      {new}[{i}] = {old}[{i}];"
        yield "    }"

    def _cells(self, node: Node, write: Write, j: int, *, apart: bool) -> Iterator[str]:
        """The cells of a row; apart: those in columns outside the update's box keep their values."""
        kernel, found = self.kernel, self.kernel.sides[node.stage, write.new.field]
        for i in range(kernel.shape.columns):
            text = emit(
                write.assignment.value,
                lambda read, i=i: self._value(node, read, j, i),  # type: ignore[misc]
                kernel.arguments.param,
                lambda signal: kernel.arguments.now(signal).replace("step)", f"step0 + {node.step})"),
                kernel.problem.grid.dtype,
            )
            test = found.test(2, plus("x", i), i, kernel.shape.columns) if apart else ""
            if kernel.shape.apart == "cell":
                every = [f"plane{write.new.number}"] * bool(found.test(0, "")) + [found.test(1, plus("y", j)), test]
                test = " && ".join(filter(None, every))
            if test:
                new, old = f"c{write.new.number}_{j}_{i}", self.name(write.old, node.lag - write.old.lag, j)
                yield f"      const R {new} = {text};"
                text = f"{test} ? {new} : {old}[{i}]"
            yield f"      {self.name(write.new, 0, j)}[{i}] = {text};"

    def _publish(self, version: Version) -> Iterator[str]:
        """The rows that other warps read, into shared memory."""
        kernel = self.kernel
        if version not in kernel.crossing:
            return
        _, above, below = kernel.crossing[version]
        planes, size = kernel.planes[version], kernel.pack * kernel.problem.itemsize
        for j in range(kernel.shape.rows):
            if below <= j < kernel.shape.rows - above:
                continue
            for part in range(kernel.shape.columns // kernel.pack):
                start = planes.start - kernel.pad + j * kernel.row_bytes + part * 32 * size
                values = (f"{self.name(version, 0, j)}[{part * kernel.pack + k}]" for k in range(kernel.pack))
                yield (
                    f"    *reinterpret_cast<Pack<{kernel.pack}>*>(mine + {self._at(planes, 0)} + {start}) = "
                    f"{{{{{', '.join(values)}}}}};"
                )

    def _plane(self, node: Node) -> str:
        """The text of the plane that a node computes."""
        return plus("r", self.turn - node.lag)

    def _value(self, node: Node, read: Read, j: int, i: int, axis: int = 0) -> str:
        """What a read finds; beyond reflecting edges, along the axes from `axis` on, the mirrored cell."""
        grid = self.kernel.problem.grid
        while axis < 3 and not (read.offset[axis] and grid.boundary[axis] == "reflecting"):
            axis += 1
        if axis == 3:
            return self._found(node, read, j, i)
        there = self._value(node, read, j, i, axis + 1)
        edge = 0 if read.offset[axis] < 0 else grid.shape[axis] - 1
        if axis == 2 and (edge - i) % self.kernel.shape.columns:
            return there
        here = (self._plane(node), plus("y", j), plus("x", i))[axis]
        offset = tuple(0 if k == axis else o for k, o in enumerate(read.offset))
        mirrored = self._value(node, Read(read.field, offset), j, i, axis + 1)
        return f"({here} == {edge} ? {mirrored} : {there})"

    def _found(self, node: Node, read: Read, j: int, i: int) -> str:
        if not self.kernel.problem.fields[read.field].full:
            return self._profile(node, read, j, i)
        version, age = node.row(read)
        lanes, element = divmod(i + read.offset[2], self.kernel.shape.columns)
        if lanes:
            return self._shuffled(version, age, j + read.offset[1], lanes, element)
        return f"{self.name(version, age, j + read.offset[1])}[{element}]"

    def _profile(self, node: Node, read: Read, j: int, i: int) -> str:
        axis = self.kernel.problem.fields[read.field].axes[0]
        steps = (self.turn - node.lag, j, i)
        here = [plus(name, start + o) for name, start, o in zip("ryx", steps, read.offset, strict=True)]
        return f"a.fields[{self.kernel.arguments.fields.index(read.field)}].slot[0][{here[axis]}]"

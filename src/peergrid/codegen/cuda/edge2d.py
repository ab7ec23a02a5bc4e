"""Several time steps of a 2D problem in one pass over memory: the kernel of the tiles that are not plain.

It serves what `stream2d` does not: the grid's edges, confined updates such as absorbing layers, sources, receivers. One
thread block works on a tile and streams down its rows; each of its warps makes one step, the last one loads rows ahead.
Rows wait in shared memory, in a ring for each field and step, those of a coefficient in one ring for all steps. In one
tick every warp advances its own row (see `step_plan`); between ticks the block meets at a barrier. Its registers are
its own: the interior pays nothing.

The receivers of a tile are `count = variant` entries of `Arguments.receivers`, from `first` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.expressions import emit
from peergrid.codegen.cuda.norm import NORM_COLUMNS, NORM_PARAMETER, NORM_ROWS
from peergrid.codegen.cuda.step_plan import Rows, StagePlan, StepPlan, reach_down, reach_up, ring, step_plan
from peergrid.codegen.cuda.stream_parts import known, prelude, row_reach
from peergrid.grid import Box, Field
from peergrid.stencil import Problem, footprint
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update

MOST_ROWS = 64  # of a tile
REGISTERS = 1 << 16  # of a multiprocessor
FEW_REGISTERS = 72  # of a thread, that a tile can do with
MOST_SHARED, RESERVED = 228 << 10, 1 << 10  # bytes of shared memory of a multiprocessor, and of it for each block

HELPERS = """\
__device__ __forceinline__ int pg_wrap(int i, int n) { i %= n; return i < 0 ? i + n : i; }
__device__ __forceinline__ int pg_mirror(int i, int n) { return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i; }
__device__ __forceinline__ int pg_clamp(int i, int lo, int hi) { return i < lo ? lo : i >= hi ? hi - 1 : i; }
template <int N> __device__ __forceinline__ int pg_place(int row) {
  return static_cast<int>(static_cast<unsigned>(row + (N << 20)) % N);
}
"""


KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}, {blocks}) {entry}(const __grid_constant__ Arguments a{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared{norms});
}}
"""


@dataclass(frozen=True)
class EdgeShape:
    """Steps of a pass, columns of a tile (a multiple of 32, redundant ones included), rows loaded ahead."""

    steps: int
    width: int = 64
    ahead: int = 3


@dataclass(frozen=True)
class Edge2D:
    """The text of the kernel for one problem and shape."""

    problem: Problem
    shape: EdgeShape
    entry: str = "edge2d"
    norm: str | None = None

    @cached_property
    def plan(self) -> StepPlan:
        return step_plan(self.problem, self.norm)

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def threads(self) -> int:
        """Threads of a block: a warp for each step, one to load."""
        return 32 * (self.shape.steps + 1)

    @cached_property
    def pad(self) -> int:
        """Columns beside a tile's that reads may touch (their values are never used)."""
        reads = (r for stage in self.problem.stages for u in stage.updates for r in u.reads)
        return max((abs(r.offset[1]) for r in reads), default=0)

    @property
    def stride(self) -> int:
        """Values of a row in shared memory."""
        return self.shape.width + 2 * self.pad

    def depth(self, rows: Rows, first: bool) -> int:
        """How many rows a ring holds; `first`: of those loaded from memory."""
        if rows.made:
            return rows.age + 1
        if first:
            return self.shape.ahead + rows.age + 1
        left = self.plan.final[rows.field]
        return max(self.plan.lag - left.lag + rows.age, left.age) + 1

    @cached_property
    def coefficients(self) -> dict[str, int]:
        """How many rows are kept of each coefficient field; one that is read too far ahead is left in memory."""
        found, early = dict[str, int](), set[str]()
        for plan in self.plan.stages:
            for read in {r for u in plan.stage.updates for r in u.reads}:
                if read.field in self.problem.state or not self.problem.fields[read.field].full:
                    continue
                age = self.shape.steps * self.plan.lag - self.plan.lag + plan.lag - reach_down(self.problem, read)
                found[read.field] = max(found.get(read.field, 0), self.shape.ahead + age + 1)
                if plan.lag - reach_up(self.problem, read) < 1:
                    early.add(read.field)
        return {name: found[name] for name in self.problem.fields if name in found and name not in early}

    @cached_property
    def profiles(self) -> tuple[str, ...]:
        """The coefficient fields along one axis, of which a tile keeps what it needs."""
        reads = {r.field for stage in self.problem.stages for update in stage.updates for r in update.reads}
        fields = self.problem.fields
        return tuple(n for n in fields if n in reads - set(self.problem.state) and len(fields[n].axes) == 1)

    def profile_length(self, name: str) -> int:
        """How many values of a profile a tile keeps."""
        rows = MOST_ROWS + sum(row_reach(self.problem, self.shape.steps)) + 2 * self.pad_rows
        return rows if self.problem.fields[name].axes == (0,) else self.stride

    @cached_property
    def pad_rows(self) -> int:
        """Rows beside a tile's that reads may touch."""
        reads = (r for stage in self.problem.stages for u in stage.updates for r in u.reads)
        return max((abs(r.offset[0]) for r in reads), default=0)

    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """Where the rings of each kind begin in shared memory and how far apart those of two steps are, in values.

        `given`: of a state field at each step's beginning, from step 1 on (and what the last step leaves);
        `loaded`: of step 0; `between`: made inside a step; `kept`: of a coefficient; `profile`: one along an axis.
        """
        at = 0
        found: dict[str, tuple[int, int]] = {}
        for names in self.sharing:
            loaded = max(self.depth(self.plan.given[name], first=True) for name in names) * self.stride
            size = max(self.depth(self.plan.given[name], first=False) for name in names) * self.stride
            found |= {f"loaded {name}": (at, 0) for name in names}
            found |= {f"given {name}": (at + loaded, size) for name in names}
            at += loaded + size * self.shape.steps
        for rows in self.plan.between:
            size = self.depth(rows, first=False) * self.stride
            found[f"between {rows.place}"] = (at, size)
            at += size * self.shape.steps
        for name, depth in self.coefficients.items():
            found[f"kept {name}"] = (at, 0)
            at += depth * self.stride
        for name in self.profiles:
            found[f"profile {name}"] = (at, 0)
            at += self.profile_length(name)
        found["end"] = (at, 0)
        return found

    @cached_property
    def sharing(self) -> tuple[tuple[str, ...], ...]:
        """The state fields in groups of which a tile deals with one at most: they take the same room."""
        groups: list[list[str]] = []
        for name in self.problem.state:
            fitting = (group for group in groups if all(self._apart(name, other) for other in group))
            group = next(fitting, None)
            if group is None:
                groups.append([name])
            else:
                group.append(name)
        return tuple(map(tuple, groups))

    def _apart(self, one: str, other: str) -> bool:
        """Whether no tile reaches the boxes of both fields."""
        if one not in self.confined or other not in self.confined:
            return False
        a, b = self.problem.fields[one].box, self.problem.fields[other].box
        most = (MOST_ROWS + sum(row_reach(self.problem, self.shape.steps)), self.shape.width)
        return any(max(a.lo[k], b.lo[k]) - min(a.hi[k], b.hi[k]) >= most[k] for k in (0, 1))

    @property
    def blocks(self) -> int:
        """How many blocks of a multiprocessor the compiler has to leave registers for: they hide each other's waits."""
        by_memory = MOST_SHARED // (self.shared_bytes + RESERVED)
        return max(1, min(by_memory, REGISTERS // (FEW_REGISTERS * self.threads)))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.starts["end"][0] * self.problem.itemsize

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(self.arguments, self.norm), HELPERS, self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose blocks take one tile each."""
        more, norms = (NORM_PARAMETER, ", norms") if self.norm else ("", "")
        return KERNEL.format(entry=self.entry, threads=self.threads, blocks=self.blocks, more=more, norms=norms)

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block."""
        above, below = row_reach(self.problem, self.shape.steps)
        more = ", const Norms& norms" if self.norm else ""
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            f"    const int source, const int target, const long long step0, unsigned char* const shared{more}) {{",
            "  R* const s = reinterpret_cast<R*>(shared);",
            "  const int lane = threadIdx.x & 31, t = threadIdx.x >> 5;",
            "  const int y0 = tile.lo[0], y1 = tile.hi[0], c0 = tile.lo[1], c1 = tile.hi[1];",
            f"  const int x0 = {self._left()};",
            *self._bounds(above, below),
            "  const long long step = step0 + t;",
            *([f"  R q[{self.shape.width // 32}] = {{}};"] if self.norm else []),
            *self._constant_receivers(),
            *self._load_profiles(),
            f"  if (t == {self.shape.steps})",
            f"    for (int r = first; r < first + {self.shape.ahead}; ++r) {{",
            *self._load("r"),
            "    }",
            f"  for (int r = first; r < y1 + {self.shape.steps * self.plan.lag}; ++r) {{",
            f"    if (t == {self.shape.steps}) {{",
            f"      const int row = r + {self.shape.ahead};",
            *self._load("row"),
            f"      pg_await<{self.shape.ahead}>();",
            f"    }} else if (t < {self.shape.steps}) {{",
            *(line for number in range(len(self.plan.stages)) for line in _StageText(self, number).lines()),
            "    }",
            "    __syncthreads();",
            "  }",
            "  pg_await<0>();  // rows loaded beyond the end must not arrive in what uses this memory next",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _left(self) -> str:
        """The first column of a tile: its margin, but none beyond an edge that is not periodic."""
        beside = self.beside[0]
        return f"c0 - {beside}" if self.problem.grid.periodic[1] else f"max(c0 - {beside}, 0)"

    def _bounds(self, above: int, below: int) -> Iterator[str]:
        """The rows and columns that a tile needs, none beyond an edge that is not periodic."""
        rows, columns = self.problem.grid.shape
        first, last, right = f"y0 - {above}", f"y1 + {below}", f"c1 + {self.beside[1]}"
        if not self.problem.grid.periodic[0]:
            first, last = f"max({first}, 0)", f"min({last}, {rows})"
        if not self.problem.grid.periodic[1]:
            right = f"min({right}, {columns})"
        yield f"  const int first = {first}, last = {last};"
        yield f"  const int width = min({self.shape.width}, {right} - x0);"
        yield "  unsigned here = 0;"
        for name in self.confined:
            (top, left), (bottom, end) = self.problem.fields[name].box.lo, self.problem.fields[name].box.hi
            near = f"first < {bottom} && last > {top} && x0 < {end} && x0 + width > {left}"
            yield f"  if ({near}) here |= {1 << self.confined.index(name)}u;"

    @cached_property
    def confined(self) -> tuple[str, ...]:
        """The fields that only tiles which touch their boxes have to deal with; at most one for each bit of a word."""
        names = [name for name in self.problem.state if self.problem.fields[name].box != self.problem.grid.box]
        return () if any(self.problem.grid.periodic) else tuple(names[:32])

    def test(self, name: str) -> str:
        """The text in front of what a tile does with a field, if only some tiles do it."""
        return f"if (here & {1 << self.confined.index(name)}u) " if name in self.confined else ""

    @cached_property
    def beside(self) -> tuple[int, int]:
        """The columns that a tile loads on its left and right; for a norm, on the left in whole blocks."""
        inputs = footprint(self.problem, self.shape.steps).inputs.values()
        left, right = max(g.below[1] for g in inputs), max(g.above[1] for g in inputs)
        return (-(-left // NORM_COLUMNS) * NORM_COLUMNS if self.norm else left), right

    def _load_profiles(self) -> Iterator[str]:
        """What a tile needs of each profile; beyond its ends the nearest value (such cells are never used)."""
        for name in self.profiles:
            number, (axis,) = self.arguments.fields.index(name), self.problem.fields[name].axes
            lo, hi = self.known(self.problem.fields[name], axis)
            begin = (f"first - {self.pad_rows}", f"x0 - {self.pad}")[axis]
            place = self.mirrored(f"{begin} + i", axis)
            start, length = self.starts[f"profile {name}"][0], self.profile_length(name)
            yield f"  for (int i = threadIdx.x; i < {length}; i += {self.threads})"
            yield f"    s[{start} + i] = a.fields[{number}].slot[0][pg_clamp({place}, {lo}, {hi})];"
        if self.profiles:
            yield "  __syncthreads();"

    def profile(self, read: Read) -> str:
        """The text of a value of a profile."""
        (axis,), start = self.problem.fields[read.field].axes, self.starts[f"profile {read.field}"][0]
        here = (f"(y - first) + {self.pad_rows}", f"c + {self.pad}")[axis]
        return f"s[{start} + {here} + {read.offset[axis]}]"

    def mirrored(self, text: str, axis: int) -> str:
        """A place with what lies beyond a reflecting edge brought back."""
        if self.problem.grid.boundary[axis] != "reflecting":
            return text
        return f"pg_mirror({text}, {self.problem.grid.shape[axis]})"

    def _load(self, row: str) -> Iterator[str]:
        """One row of every field that waits in a ring; zero where there is no such cell."""
        for number, name in enumerate(self.arguments.fields):
            if name in self.problem.state:
                depth, start, slot = self.depth(self.plan.given[name], first=True), f"loaded {name}", "source"
            elif name in self.coefficients:
                depth, start, slot = self.coefficients[name], f"kept {name}", "0"
            else:
                continue
            described = self.problem.fields[name]
            (ylo, yhi), (xlo, xhi) = (self.known(described, axis) for axis in (0, 1))
            yield f"      {self.test(name)}for (int c = lane; c < width; c += 32) {{"
            ring = f"s + {self.starts[start][0] + self.pad} + pg_place<{depth}>({row}) * {self.stride}"
            yield f"        R* const to = {ring} + c;"
            yield "        const int x = x0 + c;"
            yield f"        if ({row} >= {ylo} && {row} < {yhi} && x >= {xlo} && x < {xhi})"
            yield (
                f"          pg_fetch<sizeof(R)>(to, a.fields[{number}].slot[{slot}] + "
                f"({row} * a.fields[{number}].pitch[0] + x));"
            )
            yield "        else *to = R(0);"
            yield "      }"
        yield "      pg_fetched();"

    def known(self, described: Field, axis: int) -> tuple[str, str]:
        """The text of the bounds between which the device holds values of a field for this pass."""
        return known(self.problem, self.shape.steps, described, axis)

    def _constant_receivers(self) -> Iterator[str]:
        """Receivers of coefficients, which no step changes."""
        constant = {r.field for r in self.problem.receivers} - set(self.problem.state)
        for name in sorted(constant):
            number = self.arguments.fields.index(name)
            axes = self.problem.fields[name].axes
            place = [f"q.cell[{axis}]" for axis in axes]
            index = place[0] if len(place) == 1 else f"{place[0]} * a.fields[{number}].pitch[0] + {place[1]}"
            yield f"  if (t < {self.shape.steps} && lane == 0)"
            yield "    for (int k = tile.first; k < tile.first + tile.variant; ++k) {"
            yield "      const Receiver q = a.receivers[k];"
            yield f"      if (q.field == {number})"
            yield f"        a.traces[q.number * a.total_steps + step] = a.fields[{number}].slot[0][{index}];"
            yield "    }"

    def ring(self, rows: Rows) -> tuple[str, str]:
        """The text of where a warp's ring begins, and of a row's place in it (to be filled with the row)."""
        return ring(self, rows)


@dataclass(frozen=True)
class _StageText:
    """The text of one stage of the step of warp `t`."""

    kernel: Edge2D
    number: int

    @property
    def plan(self) -> StagePlan:
        return self.kernel.plan.stages[self.number]

    @property
    def problem(self) -> Problem:
        return self.kernel.problem

    def lines(self) -> Iterator[str]:
        if all(update.box.empty for update in self.plan.stage.updates) and all(
            self.plan.in_place(target) for target in self.plan.targets
        ):
            return
        yield f"      {{  // stage {self.plan.number}"
        yield f"        const int y = r - t * {self.kernel.plan.lag} - {self.plan.lag};"
        yield "        if (y >= first && y < last) {"
        yield from self._rows()
        yield from self._row_tests()
        yield "          for (int c = lane; c < width; c += 32) {"
        yield "            const int x = x0 + c;"
        if self.problem.grid.periodic[1]:
            yield f"            const int xw = pg_wrap(x, {self.problem.grid.shape[1]});"
        for k, target in enumerate(self.plan.targets):
            value, test = self._read(Read(target, (0, 0))), self.kernel.test(target)
            yield f"            R n{k} = {'R(0)' if test else value};"
            if test:
                yield f"            {test}n{k} = {value};"
        for k, update in enumerate(self.plan.stage.updates):
            yield from self._update(k, update)
        for k, rows in enumerate(self.plan.targets.values()):
            yield f"            {self.kernel.test(rows.field)}{self._pointer(rows, 'w')}[c] = n{k};"
        yield "          }"
        yield "          __syncwarp();"
        yield from self._finished()
        yield "        }"
        yield "      }"

    def _rows(self) -> Iterator[str]:
        """Pointers to the rows that the stage reads and writes."""
        offsets = {(r.field, r.offset[0]) for u in self.plan.stage.updates for r in u.reads}
        offsets |= {(target, 0) for target in self.plan.targets}
        for name, offset in sorted(offsets):
            row = self.kernel.mirrored(f"y + {offset}", 0) if offset else "y"
            if name in self.plan.before:
                yield self._row(self.plan.before[name], self._tag(offset), row, const=True)
            elif name in self.kernel.coefficients:
                yield self._kept(name, self._tag(offset), row)
        for rows in self.plan.targets.values():
            yield self._row(rows, "w", "y", const=False)

    def _row(self, rows: Rows, tag: str, row: str, *, const: bool) -> str:
        base, place = self.kernel.ring(rows)
        kind = "const R*" if const else "R*"
        where = place.format(row=row)
        return (
            f"          {kind} const {self._pointer(rows, tag)} = s + {base} + {where} * {self.kernel.stride} "
            f"+ {self.kernel.pad};"
        )

    def _kept(self, name: str, tag: str, row: str) -> str:
        start, depth = self.kernel.starts[f"kept {name}"][0], self.kernel.coefficients[name]
        where = f"{start + self.kernel.pad} + pg_place<{depth}>({row}) * {self.kernel.stride}"
        return f"          const R* const {self._name(name, tag)} = s + {where};"

    def _pointer(self, rows: Rows, tag: str) -> str:
        return self._name(rows.field, tag)

    def _name(self, field: str, tag: str) -> str:
        return f"p{self.kernel.arguments.fields.index(field)}{tag}"

    def _tag(self, offset: int) -> str:
        return f"m{-offset}" if offset < 0 else f"p{offset}"

    def _row_tests(self) -> Iterator[str]:
        if self.problem.grid.periodic[0]:
            yield f"          const int yw = pg_wrap(y, {self.problem.grid.shape[0]});"
        for k, update in enumerate(self.plan.stage.updates):
            yield f"          const bool in{k} = {self._inside(update.box, 0)}{self._near(update.box)};"

    def _near(self, box: Box) -> str:
        """Whether the tile's columns reach the box's, to be told once for a whole row."""
        if self.problem.grid.periodic[1] or box.shape[1] * 2 > self.problem.grid.shape[1]:
            return ""
        return f" && x0 < {box.hi[1]} && x0 + width > {box.lo[1]}"

    def _inside(self, box: Box, axis: int) -> str:
        if self.problem.grid.periodic[axis]:
            if (box.lo[axis], box.hi[axis]) == (0, self.problem.grid.shape[axis]):
                return "true"
            name = "yw" if axis == 0 else "xw"
        else:
            name = "y" if axis == 0 else "x"
        return f"{name} >= {box.lo[axis]} && {name} < {box.hi[axis]}"

    def _update(self, k: int, update: Update) -> Iterator[str]:
        if update.box.empty:
            return
        yield f"            if (in{k} && {self._inside(update.box, 1)}) {{"
        for assignment in update.assignments:
            place = list(self.plan.targets).index(assignment.target)
            text = emit(
                assignment.value,
                self._read,
                self.kernel.arguments.param,
                self.kernel.arguments.now,
                self.problem.grid.dtype,
            )
            yield f"              n{place} = {text};"
        yield "            }"

    def _read(self, read: Read) -> str:
        if read.field in self.kernel.profiles:
            return self.kernel.profile(read)
        if read.field not in self.plan.before and read.field not in self.kernel.coefficients:
            return self._coefficient(read)
        pointer = self._name(read.field, self._tag(read.offset[0]))
        offset = read.offset[1]
        if offset == 0:
            return f"{pointer}[c]"
        if self.problem.grid.boundary[1] == "reflecting":
            return f"{pointer}[{self.kernel.mirrored(f'x + {offset}', 1)} - x0]"
        return f"{pointer}[c + {offset}]"

    def _coefficient(self, read: Read) -> str:
        """A value straight from memory; where the device has none, its nearest (such cells are never used)."""
        described = self.problem.fields[read.field]
        number = self.kernel.arguments.fields.index(read.field)
        index = []
        for axis in described.axes:
            here = self.kernel.mirrored(f"{'yx'[axis]} + {read.offset[axis]}", axis)
            lo, hi = self.kernel.known(described, axis)
            index.append(f"pg_clamp({here}, {lo}, {hi})")
        place = index[0] if len(index) == 1 else f"{index[0]} * a.fields[{number}].pitch[0] + {index[1]}"
        return f"a.fields[{number}].slot[0][{place}]"

    def _finished(self) -> Iterator[str]:
        """What is final after this stage goes to the receivers, and after the last step to memory."""
        done = [name for name in self.plan.targets if self.kernel.plan.last_stage(name) == self.number]
        for name in done:
            pointer, number = self._pointer(self.plan.targets[name], "w"), self.kernel.arguments.fields.index(name)
            (xlo, xhi), (ylo, yhi) = (self._written(name, axis) for axis in (1, 0))
            test = self.kernel.test(name)
            yield f"          {test}if (t == {self.kernel.shape.steps - 1} && y >= {ylo} && y < {yhi})"
            yield f"            for (int x = {xlo} + lane; x < {xhi}; x += 32)"
            yield (
                f"              a.fields[{number}].slot[target][y * a.fields[{number}].pitch[0] + x] = "
                f"{pointer}[x - x0];"
            )
        if self.kernel.norm in done:
            yield from self._difference(self.kernel.norm)
        recorded = {receiver.field for receiver in self.problem.receivers}
        for name in done:
            if name in recorded:
                yield from self._record(name)

    def _difference(self, name: str) -> Iterator[str]:
        """The squared change of the step, four neighbours by every fourth lane; blocks that end here go to memory."""
        base, place = self.kernel.ring(self.kernel.plan.given[name])
        now = self._pointer(self.plan.targets[name], "w")
        row = f"{place.format(row='y')} * {self.kernel.stride} + {self.kernel.pad}"
        groups = range(self.kernel.shape.width // 32)
        yield f"          const R* const was = s + {base} + {row};"
        for k in groups:
            column = f"lane + {32 * k}"
            yield f"          {{ const R d = {column} < c1 - x0 ? {now}[{column}] - was[{column}] : R(0);"
            yield f"            q[{k}] = fma(d, d, q[{k}]);"
            for lane in (1, 2, 3):
                yield f"            {{ const R e = __shfl_down_sync(0xffffffffu, d, {lane});"
                yield f"              q[{k}] = fma(e, e, q[{k}]); }}"
            yield "          }"
        yield f"          if (pg_place<{NORM_ROWS}>(y) == {NORM_ROWS - 1} || y == y1 - 1) {{"
        for k in groups:
            yield f"            {{ const R sum = q[{k}] + __shfl_xor_sync(0xffffffffu, q[{k}], 4);"
            yield f"              const int x = x0 + lane + {32 * k};"
            yield "              if (y >= y0 && y < y1 && !(lane & 7) && x >= c0 && x < c1)"
            block = f"t * norms.plane + (y / {NORM_ROWS}) * norms.pitch + x / {NORM_COLUMNS}"
            yield f"                norms.partial[{block}] = sum;"
            yield f"              q[{k}] = R(0); }}"
        yield "          }"

    def _written(self, name: str, axis: int) -> tuple[str, str]:
        lo, hi = ("y0", "y1") if axis == 0 else ("c0", "c1")
        box = self.problem.fields[name].box
        if self.problem.grid.periodic[axis]:
            return lo, hi
        return f"max({lo}, {box.lo[axis]})", f"min({hi}, {box.hi[axis]})"

    def _record(self, name: str) -> Iterator[str]:
        number = self.kernel.arguments.fields.index(name)
        yield "          for (int k = tile.first + lane; k < tile.first + tile.variant; k += 32) {"
        yield "            const Receiver q = a.receivers[k];"
        yield f"            if (q.field == {number} && q.cell[0] == y)"
        yield (
            "              a.traces[q.number * a.total_steps + step] = "
            f"{self._pointer(self.plan.targets[name], 'w')}[q.cell[1] - x0];"
        )
        yield "          }"

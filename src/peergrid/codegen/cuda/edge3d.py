"""Several time steps of a 3D problem in one pass over memory: the kernel of the tiles that are not plain.

It serves what `stream3d` does not: confined updates such as absorbing layers, sources, receivers, far reads across
reflecting edges. One thread block works on a small tile and streams along axis 0. Planes wait in shared memory, in a
ring for each field and step; coefficients are read from memory. In one tick every step advances its own plane, stage
by stage (see `step_plan`); after each stage the block meets at a barrier.

The receivers of a tile are `count = variant` entries of `Arguments.receivers`, from `first` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.edge2d import HELPERS
from peergrid.codegen.cuda.expressions import emit
from peergrid.codegen.cuda.shape3d import reach
from peergrid.codegen.cuda.step_plan import Rows, StagePlan, StepPlan, ring, step_plan
from peergrid.codegen.cuda.stream_parts import known, prelude
from peergrid.grid import Box, Field
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}) {entry}(const __grid_constant__ Arguments a) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared);
}}
"""
WIDTH = 32
AXES = "zyx"


@dataclass(frozen=True)
class EdgeShape3D:
    """Steps of a pass, rows of a tile (redundant ones included), warps of a block, planes loaded ahead."""

    steps: int
    height: int = 16
    warps: int = 8
    ahead: int = 2


@dataclass(frozen=True)
class Edge3D:
    """The text of the kernel for one problem and shape."""

    problem: Problem
    shape: EdgeShape3D
    entry: str = "edge3d"

    @cached_property
    def plan(self) -> StepPlan:
        return step_plan(self.problem)

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def threads(self) -> int:
        return 32 * self.shape.warps

    @property
    def useful(self) -> tuple[int, int]:
        """Rows and columns of a tile that are not redundant."""
        growth = reach(self.problem, self.shape.steps)
        return (
            self.shape.height - growth.below[1] - growth.above[1],
            WIDTH - growth.below[2] - growth.above[2],
        )

    @cached_property
    def pad(self) -> int:
        """Values before and after all rings that reads beyond a tile may touch (they are never used)."""
        reads = [r.offset for stage in self.problem.stages for u in stage.updates for r in u.reads]
        return max((abs(dy) * WIDTH + abs(dx) for _, dy, dx in reads), default=0)

    @property
    def plane(self) -> int:
        """Values of a plane in shared memory."""
        return self.shape.height * WIDTH

    def depth(self, rows: Rows, first: bool) -> int:
        """How many planes a ring holds; `first`: of those loaded from memory."""
        if rows.made:
            return rows.age + 1
        if first:
            return self.shape.ahead + rows.age + 1
        left = self.plan.final[rows.field]
        return max(self.plan.lag - left.lag + rows.age, left.age) + 1

    @cached_property
    def starts(self) -> dict[str, tuple[int, int]]:
        """Where the rings of each kind begin in shared memory and how far apart those of two steps are, in values.

        `given`: of a state field at each step's beginning, from step 1 on (and what the last step leaves);
        `loaded`: of step 0; `between`: made inside a step.
        """
        at = self.pad
        found: dict[str, tuple[int, int]] = {}
        for name in self.problem.state:
            rows = self.plan.given[name]
            found[f"loaded {name}"] = (at, 0)
            at += self.depth(rows, first=True) * self.plane
            size = self.depth(rows, first=False) * self.plane
            found[f"given {name}"] = (at, size)
            at += size * self.shape.steps
        for rows in self.plan.between:
            size = self.depth(rows, first=False) * self.plane
            found[f"between {rows.place}"] = (at, size)
            at += size * self.shape.steps
        found["end"] = (at + self.pad, 0)
        return found

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.starts["end"][0] * self.problem.itemsize

    @property
    def source(self) -> str:
        """The whole translation unit."""
        kernel = KERNEL.format(entry=self.entry, threads=self.threads)
        return "\n".join((prelude(self.arguments), HELPERS, self.tile, kernel))

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block."""
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            "    const int source, const int target, const long long step0, unsigned char* const shared) {",
            "  R* const s = reinterpret_cast<R*>(shared);",
            "  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            "  const int z0 = tile.lo[0], z1 = tile.hi[0], y0 = tile.lo[1], y1 = tile.hi[1];",
            "  const int c0 = tile.lo[2], c1 = tile.hi[2];",
            *self._bounds(),
            *self._constant_receivers(),
            f"  for (int r = first; r < first + {self.shape.ahead}; ++r) {{",
            *self._load("r"),
            "  }",
            f"  for (int r = first; r < z1 + {self.shape.steps * self.plan.lag}; ++r) {{",
            f"    const int ahead = r + {self.shape.ahead};",
            *self._load("ahead"),
            f"    pg_await<{self.shape.ahead}>();",
            *(line for number in range(len(self.plan.stages)) for line in _StageText(self, number).lines()),
            "  }",
            "  pg_await<0>();",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _bounds(self) -> Iterator[str]:
        """The cells that a tile needs, none beyond an edge that is not periodic."""
        growth, grid = reach(self.problem, self.shape.steps), self.problem.grid
        ranges = (("first", "last", "z0", "z1"), ("top", "bottom", "y0", "y1"), ("x0", "right", "c0", "c1"))
        for axis, (lo, hi, start, end) in enumerate(ranges):
            low, high = f"{start} - {growth.below[axis]}", f"{end} + {growth.above[axis]}"
            if not grid.periodic[axis]:
                low, high = f"max({low}, 0)", f"min({high}, {grid.shape[axis]})"
            yield f"  const int {lo} = {low}, {hi} = {high};"
        yield "  const int x = x0 + lane;"

    def _load(self, plane: str) -> Iterator[str]:
        """One plane of every state field; zero where there is no such cell."""
        for number, name in enumerate(self.arguments.fields):
            if name not in self.problem.state:
                continue
            bounds = [self.known(self.problem.fields[name], axis) for axis in range(3)]
            field, start = f"a.fields[{number}]", self.starts[f"loaded {name}"][0]
            ring = f"s + {start} + pg_place<{self.depth(self.plan.given[name], first=True)}>({plane}) * {self.plane}"
            inside = " && ".join(
                f"{i} >= {lo} && {i} < {hi}" for i, (lo, hi) in zip((plane, "y", "x"), bounds, strict=True)
            )
            yield f"    for (int y = top + warp; y < bottom; y += {self.shape.warps}) {{"
            yield "      if (x >= right) break;"
            yield f"      R* const to = {ring} + (y - top) * {WIDTH} + lane;"
            yield f"      if ({inside})"
            yield f"        pg_fetch<sizeof(R)>(to, {field}.slot[source] + {self._index(number, plane, 'y', 'x')});"
            yield "      else *to = R(0);"
            yield "    }"
        yield "    pg_fetched();"

    def _index(self, number: int, z: str, y: str, x: str) -> str:
        return f"({z} * a.fields[{number}].pitch[0] + {y} * a.fields[{number}].pitch[1] + {x})"

    def known(self, described: Field, axis: int) -> tuple[str, str]:
        """The text of the bounds between which the device holds values of a field for this pass."""
        return known(self.problem, self.shape.steps, described, axis)

    def _constant_receivers(self) -> Iterator[str]:
        """Receivers of coefficients, which no step changes."""
        for name in sorted({r.field for r in self.problem.receivers} - set(self.problem.state)):
            number, described = self.arguments.fields.index(name), self.problem.fields[name]
            place = [f"q.cell[{axis}]" for axis in described.axes]
            index = place[0] if len(place) == 1 else self._index(number, *place)
            yield "  for (int k = tile.first + threadIdx.x; k < tile.first + tile.variant; k += blockDim.x) {"
            yield "    const Receiver q = a.receivers[k];"
            yield f"    if (q.field == {number})"
            yield f"      for (int t = 0; t < {self.shape.steps}; ++t)"
            yield f"        a.traces[q.number * a.total_steps + step0 + t] = a.fields[{number}].slot[0][{index}];"
            yield "  }"

    def ring(self, rows: Rows) -> tuple[str, str]:
        """The text of where the ring of step `t` begins, and of a plane's place in it (to be filled with the plane)."""
        return ring(self, rows)


@dataclass(frozen=True)
class _StageText:
    """The text of one stage of all steps."""

    kernel: Edge3D
    number: int

    @property
    def plan(self) -> StagePlan:
        return self.kernel.plan.stages[self.number]

    @property
    def problem(self) -> Problem:
        return self.kernel.problem

    def lines(self) -> Iterator[str]:
        yield f"    for (int t = 0; t < {self.kernel.shape.steps}; ++t) {{  // stage {self.plan.number}"
        yield f"      const int z = r - t * {self.kernel.plan.lag} - {self.plan.lag};"
        yield "      if (z < first || z >= last) continue;"
        yield "      const long long step = step0 + t;"
        yield from self._planes()
        yield f"      for (int y = top + warp; y < bottom; y += {self.kernel.shape.warps}) {{"
        yield "        if (x >= right) break;"
        yield f"        const int c = (y - top) * {WIDTH} + lane;"
        for axis in (1, 2):
            if self.problem.grid.periodic[axis]:
                yield f"        const int {AXES[axis]}w = pg_wrap({AXES[axis]}, {self.problem.grid.shape[axis]});"
        for k, target in enumerate(self.plan.targets):
            yield f"        R n{k} = {self._read(Read(target, (0, 0, 0)))};"
        for k, update in enumerate(self.plan.stage.updates):
            yield from self._update(k, update)
        for k, rows in enumerate(self.plan.targets.values()):
            yield f"        {self._name(rows.field, 'w')}[c] = n{k};"
        yield from self._finished()
        yield "      }"
        yield "    }"
        yield "    __syncthreads();"

    def _planes(self) -> Iterator[str]:
        """Pointers to the planes that the stage reads and writes, and which of its updates concern its plane."""
        offsets = {(r.field, r.offset[0]) for u in self.plan.stage.updates for r in u.reads}
        offsets |= {(target, 0) for target in self.plan.targets}
        for name, offset in sorted(offsets):
            if name in self.plan.before:
                plane = self._mirrored(f"z + {offset}", 0) if offset else "z"
                yield self._pointer(self.plan.before[name], self._tag(offset), plane, "const R*")
        for rows in self.plan.targets.values():
            yield self._pointer(rows, "w", "z", "R*")
        if self.problem.grid.periodic[0]:
            yield f"      const int zw = pg_wrap(z, {self.problem.grid.shape[0]});"
        for k, update in enumerate(self.plan.stage.updates):
            yield f"      const bool in{k} = {self._inside(update.box, 0)}{self._near(update.box)};"

    def _pointer(self, rows: Rows, tag: str, plane: str, kind: str) -> str:
        base, place = self.kernel.ring(rows)
        where = f"{base} + {place.format(row=plane)} * {self.kernel.plane}"
        return f"      {kind} const {self._name(rows.field, tag)} = s + {where};"

    def _near(self, box: Box) -> str:
        """Whether the tile reaches the box along the other axes, to be told once for a whole plane."""
        found = ""
        for axis, (lo, hi) in ((1, ("top", "bottom")), (2, ("x0", "right"))):
            if not self.problem.grid.periodic[axis] and box.shape[axis] * 2 <= self.problem.grid.shape[axis]:
                found += f" && {lo} < {box.hi[axis]} && {hi} > {box.lo[axis]}"
        return found

    def _name(self, field: str, tag: str) -> str:
        return f"p{self.kernel.arguments.fields.index(field)}{tag}"

    def _tag(self, offset: int) -> str:
        return f"m{-offset}" if offset < 0 else f"p{offset}"

    def _mirrored(self, text: str, axis: int) -> str:
        if self.problem.grid.boundary[axis] != "reflecting":
            return text
        return f"pg_mirror({text}, {self.problem.grid.shape[axis]})"

    def _inside(self, box: Box, axis: int) -> str:
        name = AXES[axis]
        if self.problem.grid.periodic[axis]:
            if (box.lo[axis], box.hi[axis]) == (0, self.problem.grid.shape[axis]):
                return "true"
            name += "w"
        return f"{name} >= {box.lo[axis]} && {name} < {box.hi[axis]}"

    def _update(self, k: int, update: Update) -> Iterator[str]:
        if update.box.empty:
            return
        yield f"        if (in{k} && {self._inside(update.box, 1)} && {self._inside(update.box, 2)}) {{"
        for assignment in update.assignments:
            place = list(self.plan.targets).index(assignment.target)
            arguments = self.kernel.arguments
            text = emit(assignment.value, self._read, arguments.param, arguments.now, self.problem.grid.dtype)
            yield f"          n{place} = {text};"
        yield "        }"

    def _read(self, read: Read) -> str:
        if read.field not in self.plan.before:
            return self._coefficient(read)
        pointer = self._name(read.field, self._tag(read.offset[0]))
        if all(self.problem.grid.boundary[axis] != "reflecting" or not read.offset[axis] for axis in (1, 2)):
            return f"{pointer}[c + {read.offset[1] * WIDTH + read.offset[2]}]"
        row, column = self._mirrored(f"y + {read.offset[1]}", 1), self._mirrored(f"x + {read.offset[2]}", 2)
        return f"{pointer}[({row} - top) * {WIDTH} + {column} - x0]"

    def _coefficient(self, read: Read) -> str:
        """A value straight from memory; where the device has none, its nearest (such cells are never used)."""
        described = self.problem.fields[read.field]
        number = self.kernel.arguments.fields.index(read.field)
        index = []
        for axis in described.axes:
            here = self._mirrored(f"{AXES[axis]} + {read.offset[axis]}", axis)
            lo, hi = self.kernel.known(self.problem.fields[read.field], axis)
            index.append(f"pg_clamp({here}, {lo}, {hi})")
        place = index[0] if len(index) == 1 else self.kernel._index(number, *index)
        return f"a.fields[{number}].slot[0][{place}]"

    def _finished(self) -> Iterator[str]:
        """What is final after this stage goes to the receivers, and after the last step to memory."""
        recorded = {receiver.field for receiver in self.problem.receivers}
        for k, name in enumerate(self.plan.targets):
            if self.kernel.plan.last_stage(name) != self.number:
                continue
            number = self.kernel.arguments.fields.index(name)
            inside = " && ".join(self._stored(name, axis) for axis in range(3))
            yield f"        if (t == {self.kernel.shape.steps - 1} && {inside})"
            yield f"          a.fields[{number}].slot[target][{self.kernel._index(number, 'z', 'y', 'x')}] = n{k};"
            if name in recorded:
                yield "        for (int q = tile.first; q < tile.first + tile.variant; ++q) {"
                yield "          const Receiver& receiver = a.receivers[q];"
                yield "          const int* const cell = receiver.cell;"
                yield f"          if (receiver.field == {number} && cell[0] == z && cell[1] == y && cell[2] == x)"
                yield f"            a.traces[receiver.number * a.total_steps + step] = n{k};"
                yield "        }"

    def _stored(self, name: str, axis: int) -> str:
        lo, hi = (("z0", "z1"), ("y0", "y1"), ("c0", "c1"))[axis]
        box, here = self.problem.fields[name].box, AXES[axis]
        if not self.problem.grid.periodic[axis]:
            lo, hi = f"max({lo}, {box.lo[axis]})", f"min({hi}, {box.hi[axis]})"
        return f"{here} >= {lo} && {here} < {hi}"

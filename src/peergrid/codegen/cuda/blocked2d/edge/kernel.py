"""Several time steps of a 2D problem in one pass over memory: the kernel of the tiles that are not plain.

It serves what `blocked2d.stream` does not: the grid's edges, confined updates such as absorbing layers, sources,
receivers. One thread block works on a tile and streams down its rows; each of its warps makes one step, the last one
loads rows ahead. Rows wait in shared memory, in a ring for each field and step, those of a coefficient in one ring for
all steps. In one tick every warp advances its own row (see `blocked.step_plan`); between ticks the block meets at a
barrier. Its registers are its own: the interior pays nothing.

The receivers of a tile are `count = variant` entries of `Arguments.receivers`, from `first` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.prelude import HELPERS, prelude
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.codegen.cuda.blocked2d.edge.rings import EdgeRings2D, EdgeShape
from peergrid.codegen.cuda.blocked2d.edge.stage import EdgeStage2D
from peergrid.codegen.cuda.blocked2d.updates import Updates
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter, norm_reference
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.skeletons import skeleton
from peergrid.codegen.norm import NORM_COLUMNS
from peergrid.stencil import Problem, footprint

FEW_REGISTERS = 72  # of a thread, that a tile can do with


KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}, {blocks}) {entry}(const __grid_constant__ Arguments a{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared{norms});
}}
"""


@dataclass(frozen=True)
class Edge2D:
    """The text of the kernel for one problem and shape."""

    problem: Problem
    shape: EdgeShape
    entry: str = "edge2d"
    norm: str | None = None

    @cached_property
    def rings(self) -> EdgeRings2D:
        return EdgeRings2D(self.problem, self.shape, self.norm)

    @property
    def arguments(self) -> Arguments:
        return Arguments(self.problem)

    @property
    def threads(self) -> int:
        """Threads of a block: a warp for each step, one to load."""
        return 32 * (self.shape.steps + 1)

    @property
    def blocks(self) -> int:
        """How many blocks of a multiprocessor the compiler has to leave registers for: they hide each other's waits."""
        return max(1, min(self.rings.blocks, H200.registers // (FEW_REGISTERS * self.threads)))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.rings.shared_bytes

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(self.arguments, self.norm), HELPERS, self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose blocks take one tile each."""
        more, norms = norm_parameter(self.norm), norm_argument(self.norm)
        return KERNEL.format(entry=self.entry, threads=self.threads, blocks=self.blocks, more=more, norms=norms)

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block."""
        above, below = row_reach(self.problem, self.shape.steps)
        more = norm_reference(self.norm)
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
            f"  for (int r = first; r < y1 + {self.shape.steps * self.rings.plan.lag}; ++r) {{",
            f"    if (t == {self.shape.steps}) {{",
            f"      const int row = r + {self.shape.ahead};",
            *self._load("row"),
            f"      pg_await<{self.shape.ahead}>();",
            f"    }} else if (t < {self.shape.steps}) {{",
            *(
                line
                for number in range(len(self.rings.plan.stages))
                for line in EdgeStage2D(self.rings, number).lines()
            ),
            "    }",
            "    __syncthreads();",
            "  }",
            "  pg_await<0>();  // rows loaded beyond the end must not arrive in what uses this memory next",
            "}",
        ]
        updates = Updates(self.problem, ())
        head = (updates.fields, updates.bounds(self.shape.steps), skeleton("bounds2d.cuh"), skeleton("edge2d.cuh"))
        return "\n".join((*head, *lines)) + "\n"

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
        for name in self.rings.confined.names:
            (top, left), (bottom, end) = self.problem.fields[name].box.lo, self.problem.fields[name].box.hi
            near = f"first < {bottom} && last > {top} && x0 < {end} && x0 + width > {left}"
            yield f"  if ({near}) here |= {self.rings.confined.bit(name)};"

    @cached_property
    def beside(self) -> tuple[int, int]:
        """The columns that a tile loads on its left and right; for a norm, on the left in whole blocks."""
        inputs = footprint(self.problem, self.shape.steps).inputs.values()
        left, right = max(g.below[1] for g in inputs), max(g.above[1] for g in inputs)
        return (-(-left // NORM_COLUMNS) * NORM_COLUMNS if self.norm else left), right

    def _load_profiles(self) -> Iterator[str]:
        """What a tile needs of each profile."""
        rings = self.rings
        for name in rings.profiles:
            (axis,) = self.problem.fields[name].axes
            begin = (f"first - {rings.pads[0]}", f"x0 - {rings.pad}")[axis]
            reflects = self.problem.grid.boundary[axis] == "reflecting"
            mirror = f", {self.problem.grid.shape[axis]}" if reflects else ""
            number, start = self.arguments.fields.index(name), rings.starts[f"profile {name}"][0]
            shape = f"{number}, {rings.profile_length(name)}, {self.threads}{mirror}"
            yield f"  load_profile<{shape}>(a, s + {start}, {begin});"
        if rings.profiles:
            yield "  __syncthreads();"

    def _load(self, row: str) -> Iterator[str]:
        """One row of every field that waits in a ring."""
        for number, name in enumerate(self.arguments.fields):
            if ring := self.rings.loaded(name):
                start, depth = ring
                place = f"s + {start + self.rings.pad}"
                loaded = f"load_row<{number}, {depth}, {self.rings.stride}>(a, {place}, source, {row}, x0, width);"
                yield f"      {self.rings.confined.test(name)}{loaded}"
        yield "      pg_fetched();"

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

"""Several time steps of a 3D problem in one pass over memory: the kernel of the tiles that are not plain.

It serves what `blocked3d.stream` does not: confined updates such as absorbing layers, sources, receivers, far reads
across reflecting edges. One thread block works on a small tile and streams along axis 0. Planes wait in shared memory,
in a ring for each field and step; coefficients are read from memory. In one tick every step advances its own plane,
stage by stage (see `blocked.step_plan`); after each stage the block meets at a barrier.

The receivers of a tile are `count = variant` entries of `Arguments.receivers`, from `first` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.prelude import HELPERS, prelude
from peergrid.codegen.cuda.blocked.reach import known, reach
from peergrid.codegen.cuda.blocked3d.edge.rings import WIDTH, EdgeRings3D, EdgeShape3D
from peergrid.codegen.cuda.blocked3d.edge.stage import EdgeStage3D, place_of
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.stencil import Problem

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}, 2) {entry}(const __grid_constant__ Arguments a) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared);
}}
"""


@dataclass(frozen=True)
class Edge3D:
    """The text of the kernel for one problem and shape."""

    problem: Problem
    shape: EdgeShape3D
    entry: str = "edge3d"

    @cached_property
    def rings(self) -> EdgeRings3D:
        return EdgeRings3D(self.problem, self.shape)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.rings.shared_bytes

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
            f"  for (int r = first; r < z1 + {self.shape.steps * self.rings.plan.lag}; ++r) {{",
            f"    const int ahead = r + {self.shape.ahead};",
            *self._load("ahead"),
            f"    pg_await<{self.shape.ahead}>();",
            *(
                line
                for number in range(len(self.rings.plan.stages))
                for line in EdgeStage3D(self.rings, number).lines()
            ),
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
            bounds = [known(self.problem, self.shape.steps, self.problem.fields[name], axis) for axis in range(3)]
            field, (start, depth) = f"a.fields[{number}]", self.rings.loaded(name)
            ring = f"s + {start} + pg_place<{depth}>({plane}) * {self.rings.plane}"
            inside = " && ".join(
                f"{i} >= {lo} && {i} < {hi}" for i, (lo, hi) in zip((plane, "y", "x"), bounds, strict=True)
            )
            yield f"    for (int y = top + warp; y < bottom; y += {self.shape.warps}) {{"
            yield "      if (x >= right) break;"
            yield f"      R* const to = {ring} + (y - top) * {WIDTH} + lane;"
            yield f"      if ({inside})"
            yield f"        pg_fetch<sizeof(R)>(to, {field}.slot[source] + {place_of(number, plane, 'y', 'x')});"
            yield "      else *to = R(0);"
            yield "    }"
        yield "    pg_fetched();"

    def _constant_receivers(self) -> Iterator[str]:
        """Receivers of coefficients, which no step changes."""
        for name in sorted({r.field for r in self.problem.receivers} - set(self.problem.state)):
            number, described = self.arguments.fields.index(name), self.problem.fields[name]
            place = [f"q.cell[{axis}]" for axis in described.axes]
            index = place[0] if len(place) == 1 else place_of(number, *place)
            yield "  for (int k = tile.first + threadIdx.x; k < tile.first + tile.variant; k += blockDim.x) {"
            yield "    const Receiver q = a.receivers[k];"
            yield f"    if (q.field == {number})"
            yield f"      for (int t = 0; t < {self.shape.steps}; ++t)"
            yield f"        a.traces[q.number * a.total_steps + step0 + t] = a.fields[{number}].slot[0][{index}];"
            yield "  }"

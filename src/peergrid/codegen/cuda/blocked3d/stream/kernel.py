"""Several time steps of a 3D problem in one pass over memory: the kernel of all cells with the usual updates.

One thread block works on a tile of rows and columns and streams along axis 0. Planes arrive in rings in shared memory
(`loads`); each plane passes through all steps at once (see `blocked.levels`). A lane keeps the planes of its own cells,
VX columns of a few rows, in registers (`planes`, `turn`). Between planes the block meets at a barrier, and wherever a
stage needs rows just made by other warps.

A warp spans the whole row of a tile, so tiles lose columns and rows on each side to the steps, but none at an edge of
the grid that is not periodic: cells that keep their value there are told apart (`cells`).

No tile given to this kernel may touch a confined update, a source or a receiver (see `blocked3d.edge`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels
from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.stream.cells import calm
from peergrid.codegen.cuda.blocked3d.stream.loads import Loads3D
from peergrid.codegen.cuda.blocked3d.stream.nodes import nodes
from peergrid.codegen.cuda.blocked3d.stream.planes import Planes3D
from peergrid.codegen.cuda.blocked3d.stream.stores import PUTS, Stores3D
from peergrid.codegen.cuda.blocked3d.stream.turn import Turn3D
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import plus
from peergrid.stencil import Problem

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}{bound})
{entry}(const __grid_constant__ Arguments a) {{
  extern __shared__ __align__(128) unsigned char shared[];
  {entry}_tile(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared);
}}
"""


@dataclass(frozen=True)
class Stream3D:
    """The text of the kernel for one problem and shape; near: planes come through the first-level cache."""

    problem: Problem
    shape: Shape3D
    near: bool = True
    entry: str = "stream3d"

    @cached_property
    def planes(self) -> Planes3D:
        return Planes3D(self.problem, self.shape)

    @property
    def levels(self) -> Levels:
        return self.planes.levels

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.planes.shared_bytes

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(Arguments(self.problem)), PUTS, self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose blocks take one tile each."""
        bound = f", {self.shape.blocks}" if self.shape.blocks else ""
        return KERNEL.format(entry=self.entry, threads=self.shape.threads, bound=bound)

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block."""
        loads, period = Loads3D(self.planes, self.near), self.planes.period
        rows = self.shape.rows * self.planes.row_bytes
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            "    const int source, const int target, const long long step0, unsigned char* const shared) {",
            "  const int lane = threadIdx.x & 31;",
            "  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x >> 5), 0);  // seen as uniform",
            "  const int z0 = tile.lo[0], z1 = tile.hi[0], y0 = tile.lo[1], y1 = tile.hi[1];",
            "  const int c0 = tile.lo[2], c1 = tile.hi[2];",
            *self._place(loads),
            f"  unsigned char* const mine = shared + {self.planes.pad} + warp * {rows}"
            f" + lane * {self.planes.pack_bytes};",
            *loads.into(),
            *calm(self.problem, self.shape),
            *loads.sources(),
            *Stores3D(self.planes).targets(),
            *self._declarations(),
            *self._first(loads),
            f"  for (int r = first; r < z1 + {self.levels.lag}; r += {period}) {{",
            *(line for turn in range(period) for line in self._turn(loads, turn)),
            "  }",
            "  pg_await<0>();",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _place(self, loads: Loads3D) -> Iterator[str]:
        """The first cell of a lane and the planes of the tile; nothing lies beyond an edge that is not periodic."""
        growth, periodic = reach(self.problem, self.shape.steps), self.problem.grid.periodic
        column = f"((c0 - {growth.below[2]}) & ~{loads.chunk - 1})"
        row, first, last = f"y0 - {growth.below[1]}", f"z0 - {growth.below[0]}", f"z1 + {growth.above[0]}"
        column = column if periodic[2] else f"max({column}, 0)"
        row = row if periodic[1] else f"max({row}, 0)"
        if not periodic[0]:
            first, last = f"max({first}, 0)", f"min({last}, {self.problem.grid.shape[0]})"
        yield f"  const int x = {column} + lane * {self.shape.columns}, y = {row} + warp * {self.shape.rows};"
        yield from loads.start(column)
        yield f"  const int first = {first}, last = {last};"

    def _declarations(self) -> Iterator[str]:
        for version in (*self.levels.inputs, *self.levels.versions):
            if self.planes.held(version):
                extent = f"[{self.shape.rows}][{self.shape.columns}] = {{}}"
                yield f"  R {', '.join(f'v{version.number}_{k}{extent}' for k in range(self.planes.period))};"
        for count in self.planes.counts(source=True):
            yield f"  unsigned in_{count} = 0, at_{count} = 0;"
        for count in self.planes.counts(source=False):
            yield f"  unsigned ex_{count} = 0;"

    def _first(self, loads: Loads3D) -> Iterator[str]:
        """The planes that are on their way before the loop."""
        for ahead in range(self.shape.ahead):
            yield from self._fetch(loads, plus("first", ahead), ahead)

    def _fetch(self, loads: Loads3D, plane: str, place: int) -> Iterator[str]:
        yield from loads.fetch(plane, place)
        yield from self._advance("in", source=True)

    def _advance(self, name: str, *, source: bool) -> Iterator[str]:
        """The places in rings that are variables of the loop, one plane on."""
        for count in self.planes.counts(source=source):
            last, place = (count - 1) * self.planes.plane_bytes, f"{name}_{count}"
            if last:
                yield f"    {place} = {place} == {last} ? 0 : {place} + {self.planes.plane_bytes};"

    def _turn(self, loads: Loads3D, number: int) -> Iterator[str]:
        """One plane: await it, load ahead, every node, the finished plane."""
        turn = Turn3D(self.planes, number)
        yield "    {"
        yield f"    pg_await<{self.shape.ahead - 1}>();"
        yield "    __syncthreads();"
        yield from self._fetch(loads, plus("r", number + self.shape.ahead), number + self.shape.ahead)
        yield from turn.arrived()
        yield from nodes(turn)
        yield from Stores3D(self.planes).finished(turn)
        yield from self._advance("at", source=True)
        yield from self._advance("ex", source=False)
        yield "    }"

"""Several time steps of a small 2D tile by one thread block that holds all of it in shared memory.

Where a grid is so small that a pass waits for its slowest tile, what counts is how soon a tile is done, not how much
is computed twice. All threads make a step together and a barrier ends each stage: a pass takes as many barriers as it
has stages, not one for each row. Each step computes fewer of the cells around the tile than the one before.

A tile may lie anywhere: edges, confined updates, sources and receivers are known here, as in `blocked2d.boundary`. What
is final goes to memory at once, and to the neighbours' ghost cells where they need it (see `links`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.reach import known
from peergrid.codegen.cuda.blocked2d.places import mirrored
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.linked.block.cells import BlockCells2D, BlockShape, near
from peergrid.codegen.cuda.linked.block.results import record_constants
from peergrid.codegen.cuda.linked.block.stage import BlockStage2D
from peergrid.stencil import Growth, Problem

__all__ = ["Block2D", "BlockShape"]


@dataclass(frozen=True)
class Block2D:
    """The text of the tiles for one problem and shape."""

    problem: Problem
    shape: BlockShape

    @cached_property
    def cells(self) -> BlockCells2D:
        return BlockCells2D(self.problem, self.shape)

    @property
    def arguments(self) -> Arguments:
        return self.cells.arguments

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.cells.columns

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.cells.shared_bytes

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one block; it ends with a barrier."""
        cells = self.cells
        steps, (up, left) = self.shape.steps, cells.reach.below
        lines = [
            "__device__ __forceinline__ void block2d_tile(const Arguments& a, const Links& links, const Region& tile,",
            "    const int source, const int target, const long long step0, unsigned char* const shared) {",
            "  R* const s = reinterpret_cast<R*>(shared);",
            "  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            "  const int y0 = tile.lo[0], y1 = tile.hi[0], c0 = tile.lo[1], c1 = tile.hi[1];",
            f"  const int yb = y0 - {steps * up}, xb = c0 - {steps * left};",
            *record_constants(cells),
            f"  {cells.bounds(str(steps), Growth.none(2))}",
            *self._here(),
            *cells.loop(self._load()),
            *self._load_profiles(),
            "  pg_fetched();",
            "  pg_await<0>();",
            "  __syncthreads();",
            *self._pairs(),
            "#pragma unroll 1",
            f"  for (int t = 0; t < {steps}; ++t) {{",
            "    const long long step = step0 + t;",
            f"    const int left = {steps - 1} - t;",
            *(line for number in range(len(self.problem.stages)) for line in BlockStage2D(cells, number).lines()),
            "  }",
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _pairs(self) -> Iterator[str]:
        """Where the arrays of a field that has two begin; they change places with each stage that needs it."""
        for name in self.cells.double:
            first = self.cells.starts[name]
            yield f"  int {self.cells.array(name)} = {first}, {self.cells.other(name)} = {first + self.cells.values};"

    def _here(self) -> Iterator[str]:
        """Which confined fields the tile touches."""
        if self.cells.confined.names:
            yield "  unsigned here = 0;"
        for name in self.cells.confined.names:
            box = self.problem.fields[name].box
            yield f"  if ({near(*zip(box.lo, box.hi, strict=True))}) here |= {self.cells.confined.bit(name)};"

    def _load(self) -> Iterator[str]:
        """One cell of every field, from memory where the device has it."""
        for name, start in self.cells.starts.items():
            number, slot = self.cells.arguments.fields.index(name), "source" if name in self.problem.state else "0"
            (ylo, yhi), (xlo, xhi) = (
                known(self.problem, self.shape.steps, self.problem.fields[name], axis) for axis in (0, 1)
            )
            yield f"      {self.cells.confined.test(name)}{{"
            yield f"        if (y >= {ylo} && y < {yhi} && x >= {xlo} && x < {xhi})"
            yield (
                f"          pg_fetch<sizeof(R)>(s + {start} + at, a.fields[{number}].slot[{slot}] + "
                f"(y * a.fields[{number}].pitch[0] + x));"
            )
            yield f"        else s[{start} + at] = R(0);"
            yield "      }"

    def _load_profiles(self) -> Iterator[str]:
        """What the tile needs of each profile; beyond its ends the nearest value (such cells are never used)."""
        profiles = self.cells.profiles
        if not profiles:
            return
        longest = max(profile.length for profile in profiles)
        yield "#pragma unroll 1"
        yield f"  for (int i = threadIdx.x; i < {longest}; i += {32 * self.shape.warps}) {{"
        for profile in profiles:
            field, number = self.problem.fields[profile.name], self.arguments.fields.index(profile.name)
            lo, hi = known(self.problem, self.shape.steps, field, profile.axis)
            place = mirrored(self.problem, f"{('yb', 'xb')[profile.axis]} - {profile.pad} + i", profile.axis)
            yield f"    if (i < {profile.length})"
            yield f"      pg_fetch<sizeof(R)>(s + {profile.start} + i, a.fields[{number}].slot[0] + "
            yield f"                          pg_clamp({place}, {lo}, {hi}));"
        yield "  }"

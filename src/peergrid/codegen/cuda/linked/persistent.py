"""All passes of a run in one cooperative kernel on each device, for grids so small that launches would cost most.

A block takes *units*: an edge tile for the whole block (`block`), or a plain tile for each of its warps
(`blocked2d.stream`), those of the rim first; on the smallest grids all tiles are edge tiles. Between passes the blocks
of a device meet at a counter in its memory; devices keep step through the counters of `links` alone, each with its
neighbours only, so that the way across hides behind the meeting at home.

`Arguments.source` and `target` are the slots of the first pass. The kernel has to be launched with all its blocks
resident at once, and with no more blocks than units: every block comes to every meeting.

What makes a pass see the one before, and not be overwritten by the one after:

- At home: all threads of a block store, meet at the block's barrier, then one thread comes (release, GPU). One lane
  sees that all came (acquire, GPU or wider, which also empties the multiprocessor's first-level cache), then the
  block's barrier: what follows reads what others stored. A block comes after its last read of the pass, so the slot
  that was read may be written. Fields that a kernel writes are never read by way of the read-only path.
- All loads and stores are of the generic proxy (`cp.async` included; bulk copies would need a proxy fence).
- Across: threads store into the neighbour's memory, meet, then one thread tells (release, system: what it saw of the
  others at the barrier goes before it). See `links` for why the counters are pairs.
- Shared memory goes from a tile to the next: an edge tile ends with a barrier, a plain tile's lanes touch their own
  places only, and a pass ends with a barrier.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.plain import FAR
from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked.program import Program, regions_of, serving
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.tiles import tiles
from peergrid.codegen.cuda.common.arguments import REGION, Arguments
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.linked.block.tile import Block2D, BlockShape
from peergrid.codegen.cuda.linked.links import LinkText, rim_first, rim_tiles
from peergrid.grid import Box

TURNS = np.dtype(
    [
        ("plain", "<u8"),
        ("edge", "<u8"),
        ("plain_count", "<i8"),
        ("edge_count", "<i8"),
        ("passes", "<i8"),
        ("arrived", "<u8"),
        ("met", "<i8"),
    ]
)
"""The tiles of a device (tables of REGION), how many passes; the address of the counter where its blocks meet, and how
often they have met there before."""

ALONE = 29, 40  # share of the shared memory that a block can have: so that it has a multiprocessor to itself

Tables = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

HEAD = 32  # bytes of shared memory for a word that tells the block to stop; its first tiles follow

PLAIN = """\
      const long long number = (unit - turns.edge_count) * {warps} + warp;
      bool rim = false;
      if (number < turns.plain_count) {{
        const Region tile = begun ? held[warp] : turns.plain[number];
        int fine = 1;
        if (!begun) {{
          if (lane == 0) fine = pg_meet(a, links, tile, passed);
          __syncwarp();
          fine = __shfl_sync(0xffffffffu, fine, 0);
        }}
        if (fine) {{
          stream2d_tile(a, tile, source, target, step, room + warp * {warp_bytes});
          pg_await<0>();  // rows that it asked for and did not need
          rim = pg_on_rim(a, links, tile);
        }} else {{
          *stop = 1;
        }}
      }}
      if (last) {{
        __syncthreads();
        if (threadIdx.x == 0) pg_come_here(turns.arrived);
      }}
      if (rim) {{
        const Region tile = begun ? held[warp] : turns.plain[number];
        __syncwarp();
        pg_deliver(a, links, tile, target, lane, 32);
        __syncwarp();
        if (lane == 0) pg_tell(a, links, tile, passed);
      }}
"""
"""What a unit of plain tiles does; a block comes to the meeting at home before it stores across."""

KERNEL = """\
struct Turns {{
  const Region* plain;
  const Region* edge;
  long long plain_count, edge_count, passes;
  long long* arrived;
  long long met;
}};

// Whether all blocks of the device came, before patience ends (later than that of who waits across) or somebody stops.
__device__ __noinline__ bool pg_gather(const Links& l, const Turns& turns, long long wanted) {{
  const long long start = pg_nanoseconds();
  for (unsigned look = 1;; ++look) {{
    const long long seen = pg_acquire(turns.arrived);
    if (seen >= wanted) return true;
    if (look % 256) continue;
    if (pg_acquire(l.board)) return false;
    if (pg_nanoseconds() - start < 2 * l.budget) continue;
    pg_give_up(l, l.op, wanted / gridDim.x, seen / gridDim.x);
    return false;
  }}
}}
// By the first lanes of a block: whether the pass may begin for its first unit. sides: where that is on the rim.
__device__ __forceinline__ bool pg_begin(const Links& l, const Turns& turns, int lane, int sides, long long pass) {{
  if (lane && !(sides & lane)) return true;
  const Link& link = l.side[lane == 2];
  const long long passed = l.passed + pass;
  const long long* const counter = lane ? link.mine + ((passed + 1) & 1) : turns.arrived;
  const long long wanted = lane ? (passed + 1) / 2 * link.each : (turns.met + pass) * gridDim.x;
  for (int look = 0; look < 1 << 12; ++look)
    if (pg_acquire(counter) >= wanted) return true;
  return lane ? pg_patient(l, link, passed) : pg_gather(l, turns, wanted);
}}

extern "C" __global__ void __launch_bounds__({threads}{bound})
persistent2d(const __grid_constant__ Arguments a, const __grid_constant__ Links links,
             const __grid_constant__ Turns turns) {{
  extern __shared__ __align__(128) unsigned char shared[];
  volatile int* const stop = reinterpret_cast<int*>(shared);
  Region* const held = reinterpret_cast<Region*>(shared + {head});
  unsigned char* const room = shared + {room};
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const long long units = turns.edge_count + (turns.plain_count + {warps} - 1) / {warps};
  const bool begins_with_edge = blockIdx.x < turns.edge_count;
  if (threadIdx.x == 0) *stop = 0;
  if (lane == 0) {{
    const long long number = (blockIdx.x - turns.edge_count) * {warps} + warp;
    if (begins_with_edge) held[warp] = turns.edge[blockIdx.x];
    else if (number < turns.plain_count) held[warp] = turns.plain[number];
    else held[warp] = turns.plain[turns.plain_count - 1];
  }}
  __syncthreads();
  int sides = 0;
  for (int n = 0; n < {warps}; ++n)
    for (int side = 0; side < 2; ++side) sides |= pg_on_rim(a, links, held[n], side) << side;
  for (long long pass = 0; pass < turns.passes; ++pass) {{
    const int source = pass & 1 ? a.target : a.source, target = pass & 1 ? a.source : a.target;
    const long long step = now(a) + pass * {steps}, passed = links.passed + pass;
    if (threadIdx.x < 3 && !pg_begin(links, turns, threadIdx.x, sides, pass)) *stop = 1;
    __syncthreads();
    if (*stop) return;
    for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {{
      const bool begun = unit == blockIdx.x, last = unit + gridDim.x >= units;
      if (unit < turns.edge_count) {{
        const Region tile = begun ? held[0] : turns.edge[unit];
        if (!begun) {{
          if (threadIdx.x == 0 && !pg_meet(a, links, tile, passed)) *stop = 1;
          __syncthreads();
          if (*stop) return;
        }}
        block2d_tile(a, links, tile, source, target, step, room);
        if (last && threadIdx.x == 0) pg_come_here(turns.arrived);
        if (threadIdx.x == 32 && pg_on_rim(a, links, tile)) pg_tell(a, links, tile, passed);
        continue;
      }}
{plain}    }}
    __syncthreads();
    if (*stop) return;
  }}
}}
"""


@dataclass(frozen=True)
class PersistentKernel:
    """`made` says how plain tiles are computed; rows: most of an edge tile; warps: of a block.

    plain: whether there are plain tiles; without them each block has a multiprocessor to itself; room: bytes of shared
    memory that a block can have.
    """

    made: PassKernel
    plain: bool = True
    rows: int = 16
    warps: int = 16
    gpu: GpuModel = H200

    @cached_property
    def links(self) -> LinkText:
        return LinkText(Arguments(self.made.problem), self.made.shape.steps)

    @cached_property
    def block(self) -> Block2D:
        """The edge tiles."""
        shape = BlockShape(self.made.shape.steps, self.made.edge_width, self.rows, self.warps)
        return Block2D(self.made.problem, shape)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def _head(self) -> int:
        """Bytes of shared memory before the tiles' part."""
        return -(-(HEAD + self.warps * REGION.itemsize) // 128) * 128

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, known without the text."""
        alone = ALONE[0] * self.gpu.block_shared // ALONE[1] - self._head
        beside = self.warps * self.made.stream.warp_bytes if self.plain else alone
        return self._head + max(self.block.shared_bytes, beside)

    @cached_property
    def program(self) -> Program:
        stream = self.made.stream
        plain = PLAIN.format(warps=self.warps, warp_bytes=stream.warp_bytes) if self.plain else ""
        kernel = KERNEL.format(
            threads=self.threads,
            bound="" if self.plain else ", 1",  # latency counts there, not how many blocks fit
            head=HEAD,
            room=self._head,
            warps=self.warps,
            steps=self.made.shape.steps,
            plain=plain,
        )
        streamed = stream.tile if self.plain else ""
        parts = (prelude(self.block.arguments), self.links.source, streamed, self.block.tile, kernel)
        return Program("\n".join(parts), "persistent2d", self.threads, self.shared_bytes, self.warps)

    def tables(self, box: Box, blocks: int, recorded: Sequence[int] = ()) -> Tables:
        """The plain tiles, the edge tiles and the receivers of a device's box; blocks: that run at once."""
        problem, steps = self.made.problem, self.made.shape.steps
        here = [k for k in recorded if problem.receivers[k].cell in box]
        found = self.tiles(box, blocks, here)
        edge, served = serving(problem, found.edge, here)
        plain, edge = (rim_first(problem, steps, box, table) for table in (regions_of(found.plain), edge))
        return plain, edge, served

    def tiles(self, box: Box, blocks: int, recorded: Sequence[int] = ()) -> Tiles:
        """How a device's box is cut: plain tiles are as short as the blocks that edge tiles leave over have room for.

        recorded: receivers in the box.
        """
        cut = replace(self.made.cut, edge_columns=self.block.columns, edge_rows=self.rows)
        cut = cut if self.plain else replace(cut, columns=FAR)
        found = tiles(self.made.problem, self.made.shape.steps, box, cut, blocks * self.warps, recorded)
        if not found.plain:
            return found
        left = max(blocks - len(found.edge), -(-blocks // 4))
        return tiles(self.made.problem, self.made.shape.steps, box, cut, left * self.warps, recorded)

    def rim(self, box: Box, plain: NDArray[Any], edge: NDArray[Any]) -> tuple[int, int]:
        """What a device adds to its neighbours' counters in one pass, at the low and at the high end of its box."""
        return rim_tiles(self.made.problem, self.made.shape.steps, box, (plain, edge))

    def units(self, plain: Sized, edge: Sized) -> int:
        """How many blocks have work at most."""
        return len(edge) + -(-len(plain) // self.warps)

    @property
    def dtype(self) -> np.dtype[Any]:
        """`Links` for NumPy."""
        return self.links.dtype()

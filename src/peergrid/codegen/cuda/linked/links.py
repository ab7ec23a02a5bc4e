"""How kernels on neighbouring devices keep step with each other: counters, and rows stored into ghost cells.

Devices own slabs along axis 0. A tile within reach of a neighbour's slab belongs to the *rim*: before it computes it
awaits the neighbour's counter, after it has computed it stores what the neighbour needs of its rows into the
neighbour's ghost cells and adds one to its counter. All `each` rim tiles of that neighbour have read their ghost cells
and delivered their rows: so the same counter tells that ghost cells may be read, and that they may be overwritten.

A counter is a pair of words, for even and for odd passes. Blocks of one kernel may tell of pass p + 1 while another has
not yet told of pass p, so that one sum over both would not say that pass p is complete. Nobody tells of pass p + 2
before all have told of p: a block comes to the meeting at the end of p + 1 after it has told of p.

Whoever waits looks at the board, stops when anybody else stopped or its patience ends, and says there what it waited
for (see `service`). All of this runs before and after the tile's own loop and costs it no register.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import FIELD, Arguments
from peergrid.codegen.cuda.skeletons import include
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.stencil import Problem, footprint

STRUCTS = """\
struct Link {{ const long long* mine; long long* theirs; long long each; long long op; Field fields[{fields}]; }};
struct Links {{
  Link side[2];
  long long passed; long long budget; long long* board; long long report; long long op;
  long long* begun; long long last;
}};

// By one thread of each block: the last of those that a device runs at once says that they have all begun.
__device__ __forceinline__ void pg_begin(const Links& l, long long block) {{
  if (l.begun && block == l.last) pg_release(l.begun, l.passed + 1);
}}

// Everybody stops; the device's first report stays.
__device__ __noinline__ void pg_give_up(const Links& l, long long op, long long wanted, long long seen) {{
  long long* const report = l.board + l.report;
  if (!report[0]) {{
    report[1] = wanted;
    report[2] = seen;
    report[0] = op + 1;
  }}
  __threadfence_system();
  pg_release(l.board, 1);
}}
// Whether the neighbour's first `passed` passes are complete before patience ends or somebody stops.
__device__ __noinline__ bool pg_patient(const Links& l, const Link& link, long long passed) {{
  const long long odd = (passed + 1) & 1, wanted = (passed + 1) / 2 * link.each, start = pg_nanoseconds();
  for (unsigned look = 1;; ++look) {{
    const long long seen = pg_acquire(link.mine + odd);
    if (seen >= wanted) return true;
    if (look % 256) continue;
    if (!pg_acquire(l.board) && pg_nanoseconds() - start < l.budget) continue;
    const long long turns = seen / link.each;
    pg_give_up(l, link.op, passed, turns ? 2 * turns - 1 + odd : 0);
    return false;
  }}
}}
__device__ __forceinline__ bool pg_on_rim(const Arguments& a, const Links& l, const Region& tile, int side) {{
  if (!l.side[side].mine) return false;
  return side ? tile.hi[0] > a.hi[0] - {reach} : tile.lo[0] < a.lo[0] + {reach};
}}
__device__ __forceinline__ bool pg_on_rim(const Arguments& a, const Links& l, const Region& tile) {{
  return pg_on_rim(a, l, tile, 0) || pg_on_rim(a, l, tile, 1);
}}
// By one thread: whether the neighbours let the tile begin.
__device__ __forceinline__ bool pg_meet(const Arguments& a, const Links& l, const Region& tile, long long passed) {{
  bool fine = true;
  for (int side = 0; side < 2 && fine; ++side)
    if (pg_on_rim(a, l, tile, side)) fine = pg_patient(l, l.side[side], passed);
  return fine;
}}
// By one thread, after all stores of the pass that follows `passed` others are fenced.
__device__ __forceinline__ void pg_tell(const Arguments& a, const Links& l, const Region& tile, long long passed) {{
  for (int side = 0; side < 2; ++side)
    if (pg_on_rim(a, l, tile, side)) pg_add(l.side[side].theirs + (passed & 1));
}}
// Which rows and columns of a field a neighbour needs: `up` at the low end of the slab, `down` at its high end.
struct Halo {{ int field, up, down, first, last, left, right; }};
__constant__ const Halo halos[] = {{
{halos}
}};
// Values of a column: all loads of a batch are on their way before the first store waits for one.
__device__ __forceinline__ void pg_column(R* const to, const long long to_pitch, const R* const from,
                                          const long long pitch, const int lo, const int hi) {{
  for (int y = lo; y < hi; y += {batch}) {{
    R v[{batch}];
#pragma unroll
    for (int k = 0; k < {batch}; ++k)
      if (y + k < hi) v[k] = from[(y + k) * pitch];
#pragma unroll
    for (int k = 0; k < {batch}; ++k)
      if (y + k < hi) to[(y + k) * to_pitch] = v[k];
  }}
}}
// By many threads: the rows that the neighbours need, in one loop for all fields: neighbours wait for its text as well.
__device__ __forceinline__ void pg_deliver(const Arguments& a, const Links& l, const Region& tile, const int target,
                                           const int thread, const int threads) {{
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {{
    if (!pg_on_rim(a, l, tile, side)) continue;
    const Link& link = l.side[side];
#pragma unroll 1
    for (const Halo& halo : halos) {{
      const int lo = max(side ? a.hi[0] - halo.down : a.lo[0], max(tile.lo[0], halo.first));
      const int hi = min(side ? a.hi[0] : a.lo[0] + halo.up, min(tile.hi[0], halo.last));
      const int right = min(tile.hi[1], halo.right);
      if (lo >= hi) continue;
      const Field &from = a.fields[halo.field], &to = link.fields[halo.field];
#pragma unroll 1
      for (int x = max(tile.lo[1], halo.left) + thread; x < right; x += threads)
        pg_column(to.slot[target] + x, to.pitch[0], from.slot[target] + x, from.pitch[0], lo, hi);
    }}
  }}
}}
"""

BATCH = 8  # rows delivered at once


@dataclass(frozen=True)
class LinkText:
    """Structs and functions for passes of so many steps."""

    arguments: Arguments
    steps: int

    @property
    def problem(self) -> Problem:
        return self.arguments.problem

    @property
    def reach(self) -> int:
        """Rows of a slab, counted from its end, that a neighbour needs, or from which the ghost cells are read."""
        return rim_reach(self.problem, self.steps)

    @property
    def source(self) -> str:
        halos = ",\n".join(f"  {{{', '.join(map(str, halo))}}}" for halo in self._halos())
        structs = STRUCTS.format(fields=len(self.arguments.fields), reach=self.reach, halos=halos, batch=BATCH)
        return include("system_memory.cuh") + structs

    def _halos(self) -> Iterator[tuple[int, ...]]:
        """The fields that travel, as `Halo`."""
        inputs = footprint(self.problem, self.steps).inputs
        far = 1 << 30
        for number, name in enumerate(self.arguments.fields):
            if name in self.problem.state:
                growth, box = inputs[name], self.problem.fields[name].box
                wraps = self.problem.grid.periodic[0]
                first, last = (-far, far) if wraps else (box.lo[0], box.hi[0])
                yield number, growth.above[0], growth.below[0], first, last, box.lo[1], box.hi[1]

    def dtype(self) -> np.dtype[Any]:
        """`Links` for NumPy.

        fields: as in `Arguments`, of the neighbour, shifted by whole periods where the grid wraps; mine, theirs:
        addresses of counters (0: no neighbour); each: the neighbour's rim tiles that face this device; op: the
        operation that is said to be missing; passed: passes since the counters stood at zero; budget: nanoseconds;
        board, report, op: as in `service`; begun, last: the word in which block `last` says that the pass has begun,
        one more than `passed` (0: nobody asks).
        """
        words = [("mine", "<u8"), ("theirs", "<u8"), ("each", "<i8"), ("op", "<i8")]
        link = np.dtype([*words, ("fields", FIELD, (len(self.arguments.fields),))])
        words = [(name, "<i8") for name in ("passed", "budget", "board", "report", "op", "begun", "last")]
        return np.dtype([("side", link, (2,)), *words])


def rim_reach(problem: Problem, steps: int) -> int:
    """The depth of the rim in rows."""
    inputs = footprint(problem, steps).inputs
    return max(max(inputs[name].below[0], inputs[name].above[0]) for name in problem.state)


def rim_tiles(problem: Problem, steps: int, box: Box, regions: Iterable[NDArray[Any]]) -> tuple[int, int]:
    """How many tiles lie on the rim of a slab, at its low and at its high end: what the neighbours there count."""
    reach = rim_reach(problem, steps)
    low = high = 0
    for table in regions:
        low += int((table["lo"][:, 0] < box.lo[0] + reach).sum())
        high += int((table["hi"][:, 0] > box.hi[0] - reach).sum())
    return low, high


def rim_first(problem: Problem, steps: int, box: Box, regions: NDArray[Any]) -> NDArray[Any]:
    """The tiles with those of the rim in front, else in order."""
    reach = rim_reach(problem, steps)
    rim = (regions["lo"][:, 0] < box.lo[0] + reach) | (regions["hi"][:, 0] > box.hi[0] - reach)
    return np.concatenate([regions[rim], regions[~rim]])


def supports(problem: Problem, partition: Partition, steps: int) -> bool:
    """Whether linked kernels can serve: 2D slabs along axis 0 that are thick enough, rows that do not wrap."""
    if problem.grid.ndim != 2 or partition.parts[1] != 1 or problem.grid.periodic[1]:
        return False
    thinnest = min(partition.owned(device).shape[0] for device in range(partition.devices))
    return thinnest >= 2 * rim_reach(problem, steps)

"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

The kernel is the template of `skeletons/stream2d.cuh` with what `text` writes for one problem and shape: each warp
streams down the rows of a strip, and each row passes through all steps at once (see `blocked.levels`).

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.edge`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.stream.text import StreamText2D
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter, norm_reference
from peergrid.codegen.cuda.skeletons import skeleton

KERNEL = """\
extern "C" __global__ void __launch_bounds__({threads}{bound})
{entry}(const __grid_constant__ Arguments a{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = {warp}, tile = blockIdx.x * {warps} + warp;
  if (tile < a.count)
    {entry}_tile(a, a.regions[tile], a.source, a.target, now(a), shared + warp * {warp_bytes}{norms});
}}
"""

TILE = """\
// Advances a tile by one warp.
__device__ __forceinline__ void {entry}_tile(const Arguments& a, const Region& tile, const int source, const int target,
                                             const long long step, unsigned char* const shared{more}) {{
  Stream2D<{space}::Plan>(a, tile, source, target, step, shared).run({norms});
}}
"""

SPACE = "interior"


def warp_of(warps: int, *, alike: bool = False) -> str:
    """The text of a thread's warp in its block; alike: such that a compiler sees that it is the same for all lanes.

    Then lanes branch by rows together: tiles of zones have a sixth less text and need fewer registers. Plain tiles have
    half the text, but hardly gain (decision 034).
    """
    if warps == 1:
        return "0"
    return "__shfl_sync(0xffffffffu, threadIdx.x >> 5, 0)" if alike else "threadIdx.x >> 5"


@dataclass(frozen=True)
class Stream2D(StreamPlan2D):
    """The text of the interior's kernel for one problem and shape."""

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return "\n".join((prelude(self.arguments, self.norm), self.tile, self.kernel))

    @property
    def kernel(self) -> str:
        """The kernel whose warps take one tile each."""
        return KERNEL.format(
            entry=self.entry,
            threads=32 * self.shape.warps,
            bound=f", {self.shape.blocks}" if self.shape.blocks else "",
            warp=warp_of(self.shape.warps),
            warps=self.shape.warps,
            warp_bytes=self.warp_bytes,
            more=norm_parameter(self.norm),
            norms=norm_argument(self.norm),
        )

    @cached_property
    def tile(self) -> str:
        """The template, the problem's updates and plan, and the device function that advances a tile by one warp."""
        norms = "norms" if self.norm else "NoNorms{}"
        tile = TILE.format(entry=self.entry, space=SPACE, more=norm_reference(self.norm), norms=norms)
        return "\n".join((skeleton("stream2d.cuh"), StreamText2D(self, SPACE).source, tile))

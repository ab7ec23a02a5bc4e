"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `blocked.levels`), held in registers; neighbours
along the row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.boundary`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.stream.text import PlanText2D
from peergrid.codegen.cuda.blocked2d.updates import Updates
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter, norm_reference
from peergrid.codegen.cuda.skeletons import include

KERNEL = """\
extern "C" __global__ void {bounds}
{entry}(const __grid_constant__ Arguments a{more}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = {warp}, tile = blockIdx.x * {warps} + warp;
  if (tile < a.count)
    {entry}_tile(a, a.regions[tile], a.source, a.target, now(a), shared + warp * {warp_bytes}{norms});
}}
"""

TILE = """\
__device__ __forceinline__ void {entry}_tile(const Arguments& a, const Region& tile, const int source,
    const int target, const long long step0, unsigned char* const shared{more}) {{
  {body}
}}
"""
BODY = "Stream2D<Interior2D>(a, tile, source, target, step0, shared).run();"
BODY_WITH_NORMS = "run_with_norms<Interior2D>(a, tile, source, target, step0, shared, norms);"


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
            bounds=self.shape.bounds,
            warp=warp_of(self.shape.warps),
            warps=self.shape.warps,
            warp_bytes=self.warp_bytes,
            more=norm_parameter(self.norm),
            norms=norm_argument(self.norm),
        )

    @cached_property
    def tile(self) -> str:
        """The device function that advances a tile by one warp."""
        plan = PlanText2D(self)
        updates = Updates(self.problem, plan.applied)
        skeletons = ("stream2d.cuh", "norm2d.cuh") if self.norm else ("stream2d.cuh",)
        body = BODY_WITH_NORMS if self.norm else BODY
        function = TILE.format(entry=self.entry, more=norm_reference(self.norm), body=body)
        return "\n".join(
            (updates.tables(self.shape.steps), include(*skeletons), updates.source, plan.source(updates), function)
        )

"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `blocked.levels`), kept in registers; neighbours
along the row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.boundary`).
"""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.stream.text import PlanText2D
from peergrid.codegen.cuda.blocked2d.unit import unit
from peergrid.codegen.cuda.common.norm import norm_argument, norm_parameter, norm_reference

KERNEL = """\
extern "C" __global__ void {bounds}
{entry}({parameters}) {{
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = {warp};
  {call}(a, {more}blockIdx.x * {warps} + warp, shared + warp * {tiles}::WARP_BYTES{norms});
}}
"""
TILES = """\
struct InteriorTiles {{
  static constexpr bool ANY = true;
  static constexpr int WARP_BYTES = {warp_bytes};
  __device__ __forceinline__ static void advance(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared{more}) {{
    {body}
  }}
}};
"""
BODY = "Stream2D<Interior2D>(a, tile, source, target, step0, shared).run();"
BODY_WITH_NORMS = "run_with_norms<Interior2D>(a, tile, source, target, step0, shared, norms);"


def warp_of(warps: int, *, alike: bool = False) -> str:
    """The text of a thread's warp in its block; alike: such that a compiler sees that it is the same for all lanes.

    Then lanes branch by rows together: tiles of strips have a sixth less text and need fewer registers. Interior tiles
    have half the text, but hardly gain (decision 034).
    """
    if warps == 1:
        return "0"
    return "__shfl_sync(0xffffffffu, threadIdx.x >> 5, 0)" if alike else "threadIdx.x >> 5"


def warp_kernel(
    entry: str, tiles: str, bounds: str, warps: int, norm: str | None, *, alike: bool = False, exchange: bool = False
) -> str:
    """The text of a kernel whose warps take one tile each; exchange: it deals with neighbours itself."""
    more = ("const __grid_constant__ Exchange exchange",) if exchange else ()
    return KERNEL.format(
        entry=f"{entry}_peer" if exchange else entry,
        bounds=bounds,
        parameters=", ".join(("const __grid_constant__ Arguments a", *more)) + norm_parameter(norm),
        warp=warp_of(warps, alike=alike and not exchange),
        call=f"exchange_warp_tile<{tiles}>" if exchange else f"warp_tile<{tiles}>",
        more="exchange, " if exchange else "",
        warps=warps,
        tiles=tiles,
        norms=norm_argument(norm),
    )


@dataclass(frozen=True)
class Stream2D(StreamPlan2D):
    """The text of the interior's kernel for one problem and shape."""

    @property
    def source(self) -> str:
        """The whole translation unit."""
        return unit(self.problem, self.shape.steps, self.norm, self.templates, self.plans, self.tiles, self.kernel)

    @property
    def templates(self) -> tuple[str, ...]:
        """The files of `skeletons` that the tiles are made by."""
        return ("stream2d.cuh", "norm2d.cuh") if self.norm else ("stream2d.cuh",)

    @property
    def plans(self) -> tuple[PlanText2D, ...]:
        """The one plan of all tiles."""
        return (PlanText2D(self),)

    @property
    def kernel(self) -> str:
        """The kernel whose warps take one tile each."""
        return warp_kernel(self.entry, "InteriorTiles", self.shape.bounds, self.shape.warps, self.norm)

    @property
    def tiles(self) -> str:
        """The struct whose `advance` makes a tile by one warp."""
        body = BODY_WITH_NORMS if self.norm else BODY
        return TILES.format(warp_bytes=self.warp_bytes, more=norm_reference(self.norm), body=body)

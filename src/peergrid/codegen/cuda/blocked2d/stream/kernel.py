"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `blocked.levels`), kept in registers; neighbours
along the row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.boundary`).
"""

from __future__ import annotations

from peergrid.codegen.cuda.blocked2d.kernel import Kernel2D
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.stream.text import PlanText2D
from peergrid.codegen.cuda.common.norm import norm_reference

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


def interior(plan: StreamPlan2D) -> Kernel2D:
    """The kernel of interior tiles by a plan."""
    shape, norm = plan.shape, plan.norm
    body = BODY_WITH_NORMS if norm else BODY
    return Kernel2D(
        plan.problem,
        shape.steps,
        norm,
        "stream2d",
        ("stream2d.cuh", "norm2d.cuh") if norm else ("stream2d.cuh",),
        (PlanText2D(plan),),
        "InteriorTiles",
        TILES.format(warp_bytes=plan.warp_bytes, more=norm_reference(norm), body=body),
        "warp",
        shape.bounds,
        32 * shape.warps,
        plan.shared_bytes,
        shape.warps,
    )

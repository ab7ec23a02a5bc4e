"""Several time steps of a 2D problem in one pass over memory: the kernel of the interior.

One warp works on a strip of 32·VX columns and streams down its rows. Rows arrive in a ring in shared memory by
asynchronous copies; each row passes through all steps at once (see `blocked.levels`), kept in registers; neighbours
along the row come by shuffle. A strip loses `margin` columns on each side to the steps, a tile a few rows at each end.

No tile given to this kernel may touch an edge, a confined update, a source or a receiver: the kernel has no test for
them (see `blocked2d.boundary`).
"""

from __future__ import annotations

from peergrid.codegen.cuda.blocked.kernel import TileKernel
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.stream.text import PlanText2D


def interior_kernel(plan: StreamPlan2D) -> TileKernel:
    """The kernel of interior tiles by a plan."""
    shape, norm = plan.shape, plan.norm
    return TileKernel(
        plan.problem,
        shape.steps,
        norm,
        "stream2d",
        ("stream2d.cuh", "norm2d.cuh") if norm else ("stream2d.cuh",),
        (PlanText2D(plan),),
        f"InteriorTiles<{plan.name}>",
        "warp",
        shape.bounds,
        32 * shape.warps,
        plan.shared_bytes,
        shape.warps,
    )

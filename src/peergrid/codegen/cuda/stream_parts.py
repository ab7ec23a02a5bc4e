"""What the time-blocked kernels share: how a pass is cut, how far its tiles reach, and the text they all begin with."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.expressions import PRELUDE
from peergrid.codegen.cuda.norm import NORM_STRUCT
from peergrid.grid import Field
from peergrid.stencil import Problem, footprint


@dataclass(frozen=True)
class Shape:
    """How a pass is cut: steps, columns per lane, rows loaded ahead, warps per block, rows between steps (`skew`).

    blocks: thread blocks that shall fit on a multiprocessor at once, which bounds the registers (0: no bound);
    rotate: rows keep their registers and the loop is unrolled; else they move from register to register, which costs
    instructions and saves registers.
    """

    steps: int
    columns: int = 4
    ahead: int = 4
    warps: int = 4
    skew: int = 0
    blocks: int = 0
    rotate: bool = True

    @property
    def width(self) -> int:
        """Columns that a warp loads."""
        return 32 * self.columns


def margin(problem: Problem, shape: Shape) -> int:
    """The columns that a strip loses on each side, a multiple of a memory sector and of a norm's blocks."""
    inputs = footprint(problem, shape.steps).inputs.values()
    reach = max(max(growth.below[1], growth.above[1]) for growth in inputs)
    return -(-reach // 8) * 8


def row_reach(problem: Problem, steps: int) -> tuple[int, int]:
    """How many rows above and below its own a tile reads."""
    inputs = footprint(problem, steps).inputs.values()
    return max(g.below[0] for g in inputs), max(g.above[0] for g in inputs)


def known(problem: Problem, steps: int, described: Field, axis: int) -> tuple[str, str]:
    """The text of the bounds between which a device holds values of a field for a pass of so many steps."""
    growth = footprint(problem, steps).inputs.get(described.name)
    below, above = (growth.below[axis], growth.above[axis]) if growth else (0, 0)
    lo, hi = f"(a.lo[{axis}] - {below})", f"(a.hi[{axis}] + {above})"
    if problem.grid.periodic[axis]:
        return lo, hi
    return f"max({lo}, {described.box.lo[axis]})", f"min({hi}, {described.box.hi[axis]})"


PRIMITIVES = """\
#if __CUDA_ARCH__ >= 800
// Copies of 16 bytes pass the first-level cache unless NEAR; shorter ones go through it.
template <int BYTES, bool NEAR = false> __device__ __forceinline__ void pg_fetch(void* to, const void* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (BYTES == 16 && !NEAR)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(BYTES) : "memory");
}
__device__ __forceinline__ void pg_fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void pg_await() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else  // no copies on their own there
template <int BYTES> struct __align__(BYTES) Bytes { unsigned v[BYTES / 4]; };
template <int BYTES, bool NEAR = false> __device__ __forceinline__ void pg_fetch(void* to, const void* from) {
  *static_cast<Bytes<BYTES>*>(to) = *static_cast<const Bytes<BYTES>*>(from);
}
__device__ __forceinline__ void pg_fetched() {}
template <int N> __device__ __forceinline__ void pg_await() {}
#endif
template <int N> struct __align__(N * sizeof(R)) Pack { R v[N]; };
"""
"""Asynchronous copies into shared memory; the tests put others in their place."""

SAMPLE = """\
__device__ __forceinline__ R sample(const Signal& s, long long step) { return step < s.count ? s.samples[step] : R(0); }
__device__ __forceinline__ long long now(const Arguments& a) { return a.step + (a.clock ? *a.clock : 0); }
"""


def prelude(arguments: Arguments, norm: str | None = None) -> str:
    """Structs and helpers."""
    return "\n".join((PRELUDE, arguments.source, SAMPLE, PRIMITIVES, NORM_STRUCT if norm else ""))

"""The C++ text that every time-blocked kernel starts with."""

from __future__ import annotations

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import PRELUDE
from peergrid.codegen.cuda.common.norm import NORM_STRUCT

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


HELPERS = """\
__device__ __forceinline__ int pg_wrap(int i, int n) { i %= n; return i < 0 ? i + n : i; }
__device__ __forceinline__ int pg_mirror(int i, int n) { return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i; }
__device__ __forceinline__ int pg_clamp(int i, int lo, int hi) { return i < lo ? lo : i >= hi ? hi - 1 : i; }
template <int N> __device__ __forceinline__ int pg_place(int row) {
  return static_cast<int>(static_cast<unsigned>(row + (N << 20)) % N);
}
"""
"""Places across an edge, and in a ring; for kernels that know edges."""


def prelude(arguments: Arguments, norm: str | None = None) -> str:
    """Structs and helpers."""
    return "\n".join((PRELUDE, arguments.source, SAMPLE, PRIMITIVES, NORM_STRUCT if norm else ""))

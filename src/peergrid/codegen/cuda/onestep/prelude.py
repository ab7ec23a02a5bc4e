"""The C++ text that every generated program starts with."""

from __future__ import annotations

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import helpers

HELPERS = """\
constexpr int W = {width};
typedef {wide} Wide;

__device__ __forceinline__ int mirror(int x, int n) {{ return x < 0 ? -1 - x : x >= n ? 2 * n - 1 - x : x; }}
__device__ __forceinline__ R sample(const Signal& s, long long step) {{
  return step < s.count ? __ldg(s.samples + step) : R(0);
}}
__device__ __forceinline__ long long now(const Arguments& a) {{ return a.step + (a.clock ? *a.clock : 0); }}
__device__ __forceinline__ void load(R* into, const R* from) {{
  const Wide w = __ldg(reinterpret_cast<const Wide*>(from));
  {unpack}
}}
// The W values of a row from column k on; only columns lo <= k < hi are written.
__device__ __forceinline__ void store(R* to, const R* from, int k, int lo, int hi) {{
  if (k >= lo && k + W <= hi) {{
    Wide w;
    {pack}
    *reinterpret_cast<Wide*>(to) = w;
    return;
  }}
#pragma unroll
  for (int v = 0; v < W; ++v) if (k + v >= lo && k + v < hi) to[v] = from[v];
}}
"""
SAMPLE_AT = """\
__device__ __forceinline__ R sample(const Signal& s, long long step, int places, int place) {
  return step < s.count && place >= 0 && place < places ? __ldg(s.samples + step * places + place) : R(0);
}
"""
"""Of signals with slopes, where a problem has them; lanes beside a region may lie at no place."""
LANES = "xyzw"


def prelude(arguments: Arguments) -> str:
    """Structs and helpers of a problem's programs."""
    width = arguments.width
    unpack = " ".join(f"into[{n}] = w.{LANES[n]};" for n in range(width))
    pack = " ".join(f"w.{LANES[n]} = from[{n}];" for n in range(width))
    wide = {"float32": "float4", "float64": "double2"}[arguments.problem.grid.dtype]
    shaped = HELPERS.format(width=width, wide=wide, unpack=unpack, pack=pack)
    parts = helpers(arguments.problem), arguments.source, shaped
    return "\n".join((*parts, SAMPLE_AT) if arguments.problem.travelling else parts)

// What kernels of one step share: rows of cells in accesses of 16 bytes, and samples of signals that travel.
#include "helpers.cuh"

constexpr int W = 16 / sizeof(R);

__device__ __forceinline__ void load(float* into, const float* from) {
  const float4 w = __ldg(reinterpret_cast<const float4*>(from));
  into[0] = w.x, into[1] = w.y, into[2] = w.z, into[3] = w.w;
}
__device__ __forceinline__ void load(double* into, const double* from) {
  const double2 w = __ldg(reinterpret_cast<const double2*>(from));
  into[0] = w.x, into[1] = w.y;
}
__device__ __forceinline__ void store(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = float4{from[0], from[1], from[2], from[3]};
}
__device__ __forceinline__ void store(double* to, const double* from) {
  *reinterpret_cast<double2*>(to) = double2{from[0], from[1]};
}
// Of the W values of a row from column k on, those in columns lo <= k < hi.
__device__ __forceinline__ void store(R* to, const R* from, int k, int lo, int hi) {
#pragma unroll
  for (int v = 0; v < W; ++v)
    if (k + v >= lo && k + v < hi) to[v] = from[v];
}

// Of a signal with slopes, which has a sample for each place; lanes beside a region may lie at no place.
__device__ __forceinline__ R sample(const Signal& s, long long step, int places, int place) {
  return step < s.count && place >= 0 && place < places ? __ldg(s.samples + step * places + place) : R(0);
}

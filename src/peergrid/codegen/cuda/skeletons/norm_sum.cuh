// The kernel that adds up the partial sums of norms.

#include "norms.cuh"

// One block for each NORM_ROWS rows and step; blockIdx = (NORM_ROWS rows from the box's first, step).
extern "C" __global__ void __launch_bounds__(256)
norm_sum(const __grid_constant__ Arguments a, const __grid_constant__ Norms norms) {
  extern __shared__ __align__(128) unsigned char shared[];
  double* const sums = reinterpret_cast<double*>(shared);
  const int band = a.lo[0] / NORM_ROWS + blockIdx.x, step = blockIdx.y;
  const R* const from = norms.partial + step * norms.plane + band * norms.pitch;
  double sum = 0;
  const int end = (a.hi[1] + NORM_COLUMNS - 1) / NORM_COLUMNS;
  for (int k = a.lo[1] / NORM_COLUMNS + threadIdx.x; k < end; k += NORM_LEAVES)
    sum += static_cast<double>(from[k]);
  sums[threadIdx.x] = sum;
  for (int half = NORM_LEAVES / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  const long long at = step + (norms.follow ? now(a) : 0);
  if (threadIdx.x == 0) norms.rows[at * norms.row_plane + band] = sums[0];
}

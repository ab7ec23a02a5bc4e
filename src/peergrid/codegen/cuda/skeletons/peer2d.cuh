// One pass on one device whose boundary tiles deal with the neighbours themselves: await, compute, put, signal.
#include "exchange2d.cuh"

// A tile by a warp.
template <class Tiles, class... Norms>
__device__ __forceinline__ void exchange_warp_tile(const Arguments& a, const Exchange& e, int number,
                                                   unsigned char* shared, const Norms&... norms) {
  const int lane = threadIdx.x & 31;
  if (threadIdx.x == 0) mark_begun(e, blockIdx.x);
  if (number >= a.count) return;
  const Region tile = a.regions[number];
  int fine = 1;
  if (lane == 0) fine = await_neighbours(a, e, tile, e.passed);
  __syncwarp();
  if (!__shfl_sync(0xffffffffu, fine, 0)) return;
  NOTE_WARP(BEGUN, 0, e.passed, 0, tile);
  Tiles::advance(a, tile, a.source, a.target, now(a), shared, norms...);
  NOTE_WARP(COMPUTED, 0, e.passed, 0, tile);
  if (!in_boundary(a, e, tile)) return;
  __syncwarp();
  put_halos(a, e, tile, a.target, lane, 32);
  __threadfence_system();
  __syncwarp();
  if (lane == 0) signal_neighbours(a, e, tile, e.passed);
}

// A tile by a block.
template <class Tiles, class... Norms>
__device__ __forceinline__ void exchange_block_tile(const Arguments& a, const Exchange& e, unsigned char* shared,
                                                    const Norms&... norms) {
  const Region tile = a.regions[blockIdx.x];
  int* const word = reinterpret_cast<int*>(shared);
  if (threadIdx.x == 0) *word = await_neighbours(a, e, tile, e.passed);
  __syncthreads();
  const int fine = *word;
  __syncthreads();
  if (!fine) return;
  NOTE_BLOCK(BEGUN, 0, e.passed, 0, tile);
  Tiles::advance(a, tile, a.source, a.target, now(a), shared, norms...);
  NOTE_BLOCK(COMPUTED, 0, e.passed, 0, tile);
  if (!in_boundary(a, e, tile)) return;
  put_halos(a, e, tile, a.target, threadIdx.x, Tiles::THREADS);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) signal_neighbours(a, e, tile, e.passed);
}

// Kernels of one pass: a tile for each warp, or for each block. `Tiles::advance` makes it.

template <class Tiles, class... Norms>
__device__ __forceinline__ void warp_tile(const Arguments& a, int number, unsigned char* shared, const Norms&... norms) {
  if (number < a.count) Tiles::advance(a, a.regions[number], a.source, a.target, now(a), shared, norms...);
}
template <class Tiles, class... Norms>
__device__ __forceinline__ void block_tile(const Arguments& a, unsigned char* shared, const Norms&... norms) {
  Tiles::advance(a, a.regions[blockIdx.x], a.source, a.target, now(a), shared, norms...);
}

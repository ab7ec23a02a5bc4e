// The norm of each step's change, summed up by the tiles of `boundary2d.cuh`: the sums of `norm2d.cuh`, by every fourth
// lane those of four neighbours; blocks that end with a row go to memory.

template <class Plan> struct BoundarySums {
  static constexpr int GROUPS = Plan::WIDTH / 32;
  const Norms& norms;
  R of[GROUPS];

  template <class Tile> __device__ __forceinline__ void add(const Tile& tile, const R* const now, int y) {
    add_groups(tile, now, tile.template row_of<Plan::NORM_RING>(y), UpTo<GROUPS>{});
    if (pg_place<NORM_ROWS>(y) == NORM_ROWS - 1 || y == tile.y1 - 1) end_groups(tile, y, UpTo<GROUPS>{});
  }
  template <class Tile, int... K>
  __device__ __forceinline__ void add_groups(const Tile& tile, const R* now, const R* before, Numbers<K...>) {
    (add_group(tile, now, before, of[K], tile.lane + 32 * K), ...);
  }
  template <class Tile>
  __device__ __forceinline__ static void add_group(const Tile& tile, const R* now, const R* before, R& sum, int column) {
    const R change = column < tile.c1 - tile.x0 ? now[column] - before[column] : R(0);
    sum = fma(change, change, sum);
    for (int lane = 1; lane < 4; ++lane) {
      const R other = __shfl_down_sync(0xffffffffu, change, lane);
      sum = fma(other, other, sum);
    }
  }
  template <class Tile, int... K> __device__ __forceinline__ void end_groups(const Tile& tile, int y, Numbers<K...>) {
    (end_group(tile, y, of[K], tile.x0 + tile.lane + 32 * K), ...);
  }
  template <class Tile> __device__ __forceinline__ void end_group(const Tile& tile, int y, R& of_group, int x) const {
    const R sum = of_group + __shfl_xor_sync(0xffffffffu, of_group, 4);
    if (y >= tile.y0 && y < tile.y1 && !(tile.lane & 7) && x >= tile.c0 && x < tile.c1)
      norms.partial[tile.t * norms.plane + (y / NORM_ROWS) * norms.pitch + x / NORM_COLUMNS] = sum;
    of_group = R(0);
  }
};

template <class Plan>
__device__ __forceinline__ void advance_boundary(const Arguments& a, const Region& tile, int source, int target,
                                                 long long step0, unsigned char* shared, const Norms& norms) {
  boundary2d_tile<Plan>(a, tile, source, target, step0, shared, BoundarySums<Plan>{norms, {}});
}

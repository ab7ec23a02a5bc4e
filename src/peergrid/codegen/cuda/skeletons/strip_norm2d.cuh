// The norm of each step's change, summed up by the tiles of `strip2d.cuh`: the sums of `norm2d.cuh`, where a lane has
// one, two or four columns. The first of the lanes that share four neighbours adds up their squares in order, as it
// gets them by shuffle. `band` counts the rows of a block, and each step asks whether its row is the last of one.

template <class Plan> struct StripSums {
  static constexpr int COLUMNS = Plan::COLUMNS, LANES = NORM_COLUMNS / COLUMNS;
  static constexpr int RESULT = Plan::BEFORE[Plan::STAGES][Plan::NORM];  // -1: nothing changes the field
  static constexpr int STAGE = RESULT < 0 ? 0 : Plan::STAGE_OF[RESULT];
  const Norms& norms;
  int band;
  R of[Plan::STEPS];

  template <class Tile> __device__ __forceinline__ void begin(const Tile& tile) {
    band = pg_wrap(tile.first, NORM_ROWS);
  }
  template <int NODE, int PHASE, class Tile> __device__ __forceinline__ void add(Tile& tile) {
    constexpr int step = NODE / Plan::STAGES;
    if constexpr (RESULT >= 0 && NODE % Plan::STAGES == STAGE)
      add_squares<step>(tile, tile.template row_at<step * Plan::RESULTS + RESULT, 0, PHASE>(),
                        tile.template row_before<NODE, 0, Plan::NORM, PHASE>(), UpTo<COLUMNS>{}, UpTo<4>{});
  }
  template <int STEP, class Tile, int... C, int... NEIGHBOUR>
  __device__ __forceinline__ void add_squares(const Tile& tile, const Row<Plan>& now, const Row<Plan>& before,
                                              Numbers<C...>, Numbers<NEIGHBOUR...>) {
    const R changes[] = {tile.x + C < tile.c1 ? now.at[C] - before.at[C] : R(0)...};
    (add_square<NEIGHBOUR / COLUMNS>(of[STEP], changes[NEIGHBOUR % COLUMNS]), ...);
  }
  template <int LANE> __device__ __forceinline__ static void add_square(R& sum, R change) {
    if constexpr (LANE > 0) change = __shfl_down_sync(0xffffffffu, change, LANE);
    sum = fma(change, change, sum);
  }
  template <int ITERATION, int PHASE, class Tile> __device__ __forceinline__ void end(const Tile& tile) {
    end_steps(tile, UpTo<Plan::STEPS>{});
    band = band == NORM_ROWS - 1 ? 0 : band + 1;
  }
  template <class Tile, int... STEP> __device__ __forceinline__ void end_steps(const Tile& tile, Numbers<STEP...>) {
    (end_step<STEP>(tile), ...);
  }
  // A step's sums to memory with the last row of a block, or of the tile, where a grid ends within a block.
  template <int STEP, class Tile> __device__ __forceinline__ void end_step(const Tile& tile) {
    constexpr int lag = Plan::LAG[STEP][STAGE];
    if (band == (NORM_ROWS - 1 + lag) % NORM_ROWS || tile.r == tile.y1 + (lag - 1)) {
      const int y = tile.r - lag;
      const R sum = of[STEP] + __shfl_xor_sync(0xffffffffu, of[STEP], LANES / 2);
      if (y >= tile.y0 && y < tile.y1 && !(tile.lane & (LANES - 1)) && tile.x >= tile.c0 && tile.x < tile.c1)
        norms.partial[STEP * norms.plane + (y / NORM_ROWS) * norms.pitch + tile.x / NORM_COLUMNS] = sum;
      of[STEP] = R(0);
    }
  }
};

template <class Plan>
__device__ __forceinline__ void advance_strip(const Arguments& a, const Region& region, int source, int target,
                                              long long step0, unsigned char* shared, const Norms& norms) {
  Stream2D<Plan, Strip<Plan>, StripSums<Plan>> tile(a, region, source, target, step0, shared,
                                                    StripSums<Plan>{norms, 0, {}});
  tile.sums.begin(tile);
  tile.run();
}

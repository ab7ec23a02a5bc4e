// The norm of each step's change, summed up by the tiles of `stream2d.cuh`.
//
// Squares of four neighbours along the row are added one after another, row by row, in blocks of NORM_ROWS rows and
// NORM_COLUMNS columns. The iterations of the loop in which blocks end are known when the kernel is compiled.

template <class Plan> struct BlockSums {
  static constexpr int COLUMNS = Plan::COLUMNS, PERIOD = Plan::ROTATES ? Plan::KEPT : 1;
  static constexpr int ITERATIONS = NORM_ROWS / PERIOD, SUMS = COLUMNS / 4;
  static constexpr int BLOCKS = COLUMNS < NORM_COLUMNS ? 1 : COLUMNS / NORM_COLUMNS;
  static constexpr int RESULT = Plan::BEFORE[Plan::STAGES][Plan::NORM];  // -1: nothing changes the field
  static constexpr int STAGE = RESULT < 0 ? 0 : Plan::STAGE_OF[RESULT];
  const Norms& norms;
  R of[Plan::STEPS][SUMS];

  // After the node that makes a step's last values of the field: those before the step lie as far back.
  template <int NODE, int PHASE, class Tile> __device__ __forceinline__ void add(Tile& tile) {
    constexpr int step = NODE / Plan::STAGES;
    if constexpr (RESULT >= 0 && NODE % Plan::STAGES == STAGE)
      add_squares<step>(tile.template row_at<step * Plan::RESULTS + RESULT, 0, PHASE>(),
                        tile.template row_before<NODE, 0, Plan::NORM, PHASE>(), UpTo<COLUMNS>{});
  }
  template <int STEP, int... C>
  __device__ __forceinline__ void add_squares(const Row<Plan>& now, const Row<Plan>& before, Numbers<C...>) {
    (add_square(of[STEP][C / 4], now.at[C] - before.at[C]), ...);
  }
  __device__ __forceinline__ static void add_square(R& sum, const R change) { sum = fma(change, change, sum); }

  // The sums of the blocks whose last row this was to memory.
  template <int ITERATION, int PHASE, class Tile> __device__ __forceinline__ void end(Tile& tile) {
    if constexpr (ITERATION >= 0) end_steps<ITERATION, PHASE>(tile, UpTo<Plan::STEPS>{});
  }
  template <int ITERATION, int PHASE, class Tile, int... STEP>
  __device__ __forceinline__ void end_steps(Tile& tile, Numbers<STEP...>) {
    (end_step<ITERATION, PHASE, STEP>(tile, UpTo<BLOCKS>{}, UpTo<SUMS>{}), ...);
  }
  template <int ITERATION, int PHASE, int STEP, class Tile, int... BLOCK, int... SUM>
  __device__ __forceinline__ void end_step(const Tile& tile, Numbers<BLOCK...>, Numbers<SUM...>) {
    if constexpr (ending(STEP) == ITERATION * PERIOD + PHASE) {
      const int y = tile.r + PHASE - Plan::LAG[STEP][STAGE];
      const R sums[] = {sum_of<STEP, BLOCK>()...};
      (put<STEP>(tile, y, tile.x + NORM_COLUMNS * BLOCK, sums[BLOCK]), ...);
      ((of[STEP][SUM] = R(0)), ...);
    }
  }
  template <int STEP, int BLOCK> __device__ __forceinline__ R sum_of() const {
    if constexpr (COLUMNS == 4)
      return of[STEP][0] + __shfl_xor_sync(0xffffffffu, of[STEP][0], 1);
    else
      return of[STEP][2 * BLOCK] + of[STEP][2 * BLOCK + 1];
  }
  template <int STEP, class Tile>
  __device__ __forceinline__ void put(const Tile& tile, int y, int column, const R sum) const {
    if (y >= tile.y0 && y < tile.y1 && !(COLUMNS == 4 && (tile.lane & 1)) && column >= tile.c0 && column < tile.c1)
      norms.partial[STEP * norms.plane + (y / NORM_ROWS) * norms.pitch + column / NORM_COLUMNS] = sum;
  }

  // The row of a block at which a step's sums end, counted from a tile's first row; the first and last iteration with one.
  __device__ static constexpr int ending(int step) {
    return (Plan::EARLY + Plan::ABOVE + Plan::LAG[step][STAGE] + NORM_ROWS - 1) % NORM_ROWS;
  }
  __device__ static constexpr int first() {
    int found = ITERATIONS;
    for (int step = 0; step < Plan::STEPS; ++step)
      if (ending(step) / PERIOD < found) found = ending(step) / PERIOD;
    return found;
  }
  __device__ static constexpr int last() {
    int found = 0;
    for (int step = 0; step < Plan::STEPS; ++step)
      if (ending(step) / PERIOD > found) found = ending(step) / PERIOD;
    return found;
  }
};

// The iterations in which blocks end; whether the tile ended with one of them.
template <int ITERATION, class Tile> __device__ __forceinline__ bool ending_iteration(Tile& tile, const int end) {
  tile.template iteration<ITERATION>(UpTo<Tile::PERIOD>{});
  return (tile.r += Tile::PERIOD) >= end;
}
template <int FIRST, class Tile, int... ITERATION>
__device__ __forceinline__ bool ending_iterations(Tile& tile, const int end, Numbers<ITERATION...>) {
  return (ending_iteration<FIRST + ITERATION>(tile, end) || ...);
}

template <class Plan>
__device__ __forceinline__ void advance_interior(const Arguments& a, const Region& region, int source, int target,
                                                 long long step0, unsigned char* shared, const Norms& norms) {
  using Sums = BlockSums<Plan>;
  constexpr int first = Sums::first(), last = Sums::last();
  Stream2D<Plan, Interior<Plan>, Sums> tile(a, region, source, target, step0, shared, Sums{norms, {}});
  const int end = tile.y1 + Plan::LAST_LAG;
  tile.fill(UpTo<Plan::AHEAD>{});
  // One loop, not one within another: between the two the compiler moves rows from register to register.
  for (int left = first; tile.r < end;) {
    if (left) {
      tile.template iteration<-1>(UpTo<Sums::PERIOD>{});
      tile.r += Sums::PERIOD, --left;
    } else {
      if (ending_iterations<first>(tile, end, UpTo<last - first + 1>{})) break;
      left = first + Sums::ITERATIONS - 1 - last;
    }
  }
}

// Several time steps of a small 2D tile by one thread block that holds all of it in shared memory.
//
// Where a grid is so small that a pass waits for its slowest tile, what counts is how soon a tile is done, not how much
// is computed twice. All threads make a step together and a barrier ends each stage: a pass takes as many barriers as
// it has stages, not one for each row. Each step computes fewer of the cells around the tile than the one before.
//
// A tile may lie anywhere: edges, confined updates, sources and receivers are known here, as in `boundary2d.cuh`. What
// is final goes to memory at once, and to the neighbours' ghost cells where they need it (see `exchange2d.cuh`).
//
// A plan says, for one problem and shape, what is in capitals here, and of each stage:
//   REACHED   the cells beyond those that a step leaves: rows above, rows below, columns on the left, on the right;
//   WRITES    what it writes: field, whether to the field's other array, whether it is final;
//   BOXES     where its updates apply; update, the new values of a cell.
#include "numbers.cuh"
#include "bounds.cuh"
#include "places.cuh"

// A cell in shared memory, as an update sees it.
template <class Tile> struct BlockCell {
  const Tile& tile;
  const Arguments& a;
  const int y, x, at_;

  template <int FIELD, int I, int J> __device__ __forceinline__ R at() const {
    constexpr int WIDTH = Tile::Plan::WIDTH;
    if constexpr ((GRID_MIRRORS[0] || GRID_MIRRORS[1]) && (I != 0 || J != 0))
      return tile.s[tile.template array<FIELD>() + (mirrored<0>(y + I) - tile.yb) * WIDTH + (mirrored<1>(x + J) - tile.xb)];
    else
      return tile.s[tile.template array<FIELD>() + at_ + (I * WIDTH + J)];
  }
  template <int FIELD, int AXIS, int I, int J> __device__ __forceinline__ R profile() const {
    const int place = AXIS == 0 ? y - tile.yb + I : x - tile.xb + J;
    return tile.s[Tile::Plan::PROFILES[FIELD][0] + place + Tile::Plan::PROFILES[FIELD][2]];
  }
  __device__ __forceinline__ R signal(int number) const { return sample(a.signals[number], tile.step); }
};

template <class Given> struct Block2D {
  using Plan = Given;
  static constexpr int WIDTH = Plan::WIDTH, THREADS = 32 * Plan::WARPS;

  const Arguments& a;
  const Exchange& exchange;
  const Region& tile;
  R* const s;
  const int source, target, lane, warp, y0, y1, c0, c1, yb, xb;
  long long step;
  int left;               // steps that are left after this one
  int ya, ye, xa, xe;     // the cells to compute
  unsigned here;          // a bit for each confined field that the tile touches
  int now[FIELD_COUNT];   // where the arrays begin of fields that have two: the one with the values,
  int other[FIELD_COUNT]; // and the other, with which it changes places

  __device__ __forceinline__ Block2D(const Arguments& arguments, const Exchange& given, const Region& region, int from,
                                     int to, long long step0, unsigned char* shared)
      : a(arguments),
        exchange(given),
        tile(region),
        s(reinterpret_cast<R*>(shared)),
        source(from),
        target(to),
        lane(threadIdx.x & 31),
        warp(threadIdx.x >> 5),
        y0(tile.lo[0]),
        y1(tile.hi[0]),
        c0(tile.lo[1]),
        c1(tile.hi[1]),
        yb(y0 - Plan::STEPS * Plan::REACH[0]),
        xb(c0 - Plan::STEPS * Plan::REACH[2]),
        step(step0),
        left(Plan::STEPS),
        here(0) {
    bound(0, 0, 0, 0);
    begin(UpTo<FIELD_COUNT>{});
  }
  // The cells to compute when so many steps are left, none beyond an edge that is not periodic.
  __device__ __forceinline__ void bound(int above, int below, int beside_left, int beside_right) {
    ya = y0 - left * Plan::REACH[0] - above;
    ye = y1 + left * Plan::REACH[1] + below;
    xa = c0 - left * Plan::REACH[2] - beside_left;
    xe = c1 + left * Plan::REACH[3] + beside_right;
    if (!GRID_WRAPS[0]) ya = max(ya, 0), ye = min(ye, GRID_SHAPE[0]);
    if (!GRID_WRAPS[1]) xa = max(xa, 0), xe = min(xe, GRID_SHAPE[1]);
  }
  template <int... FIELD> __device__ __forceinline__ void begin(Numbers<FIELD...>) { (begin_field<FIELD>(), ...); }
  template <int FIELD> __device__ __forceinline__ void begin_field() {
    now[FIELD] = Plan::START[FIELD];
    other[FIELD] = Plan::START[FIELD] + Plan::VALUES;
    if constexpr (CONFINED[FIELD] != 0)
      if (ya < BOX[FIELD][0][1] && ye > BOX[FIELD][0][0] && xa < BOX[FIELD][1][1] && xe > BOX[FIELD][1][0])
        here |= CONFINED[FIELD];
  }
  template <int FIELD> __device__ __forceinline__ bool has() const {
    return CONFINED[FIELD] == 0 || (here & CONFINED[FIELD]);
  }
  template <int FIELD> __device__ __forceinline__ int array() const {
    return Plan::DOUBLE[FIELD] ? now[FIELD] : Plan::START[FIELD];
  }

  // ------------------------------ what is loaded
  template <int... FIELD> __device__ __forceinline__ void load(Numbers<FIELD...>) {
    constexpr int parts = WIDTH / 32;
    for (int j = warp; j < (ye - ya) * parts; j += Plan::WARPS) {
      const int y = ya + j / parts, x = xa + j % parts * 32 + lane;
      if (x < xe) (load_cell<FIELD>(y, x, (y - yb) * WIDTH + (x - xb)), ...);
    }
  }
  template <int FIELD> __device__ __forceinline__ void load_cell(int y, int x, int at) const {
    if (!has<FIELD>()) return;
    if (y >= known_from<FIELD, 0>(a) && y < known_to<FIELD, 0>(a) && x >= known_from<FIELD, 1>(a) &&
        x < known_to<FIELD, 1>(a))
      pg_fetch<sizeof(R)>(s + Plan::START[FIELD] + at,
                          a.fields[FIELD].slot[STATE[FIELD] ? source : 0] + (y * a.fields[FIELD].pitch[0] + x));
    else
      s[Plan::START[FIELD] + at] = R(0);
  }
  template <int... FIELD> __device__ __forceinline__ void load_profiles(Numbers<FIELD...>) {
#pragma unroll 1
    for (int i = threadIdx.x; i < Plan::LONGEST_PROFILE; i += THREADS) (load_profile<FIELD>(i), ...);
  }
  // Beyond the ends of a profile the nearest value: such cells are never used.
  template <int FIELD> __device__ __forceinline__ void load_profile(int i) const {
    constexpr int axis = PROFILE_AXIS[FIELD], start = Plan::PROFILES[FIELD][0], count = Plan::PROFILES[FIELD][1];
    const int at = mirrored<axis>((axis == 0 ? yb : xb) - Plan::PROFILES[FIELD][2] + i);
    if (i < count)
      pg_fetch<sizeof(R)>(s + start + i, a.fields[FIELD].slot[0] + pg_clamp(at, known_from<FIELD, axis>(a), known_to<FIELD, axis>(a)));
  }

  // ------------------------------ stages
  template <int... NUMBER> __device__ __forceinline__ void stages(Numbers<NUMBER...>) {
    (stage<typename Plan::template Stage<NUMBER>>(), ...);
  }
  template <class Stage> __device__ __forceinline__ void stage() {
    bound(Stage::REACHED[0], Stage::REACHED[1], Stage::REACHED[2], Stage::REACHED[3]);
    bool near[Stage::UPDATES ? Stage::UPDATES : 1];
    find<Stage>(near, UpTo<Stage::UPDATES>{});
    constexpr int parts = WIDTH / 32;
    for (int j = warp; j < (ye - ya) * parts; j += Plan::WARPS) {
      const int y = ya + j / parts, x = xa + j % parts * 32 + lane;
      if (x < xe) advance<Stage>(near, y, x, UpTo<Stage::WRITTEN>{}, UpTo<Stage::UPDATES>{});
    }
    __syncthreads();
    swap<Stage>(UpTo<Stage::WRITTEN>{});
    record<Stage>(UpTo<Stage::WRITTEN>{});
  }
  template <class Stage, int... UPDATE> __device__ __forceinline__ void find(bool* const near, Numbers<UPDATE...>) const {
    ((near[UPDATE] = reaches<Stage, UPDATE>()), ...);
  }
  template <class Stage, int UPDATE> __device__ __forceinline__ bool reaches() const {
    constexpr UpdateBox box = Stage::BOXES[UPDATE];
    const int row = begin_of<Stage, UPDATE, 0>(a), column = begin_of<Stage, UPDATE, 1>(a);
    return GRID_WRAPS[0] || GRID_WRAPS[1] ||
           (ya < row + box.shape[0] && ye > row && xa < column + box.shape[1] && xe > column);
  }
  template <class Stage, int... K, int... UPDATE>
  __device__ __forceinline__ void advance(const bool* const near, int y, int x, Numbers<K...>, Numbers<UPDATE...>) const {
    const BlockCell<Block2D> cell{*this, a, y, x, (y - yb) * WIDTH + (x - xb)};
    R next[Stage::WRITTEN];
    ((next[K] = has<Stage::WRITES[K][0]>() ? s[array<Stage::WRITES[K][0]>() + cell.at_] : R(0)), ...);
    (apply<Stage, UPDATE>(near[UPDATE], wrapped<0>(y), wrapped<1>(x), cell, next), ...);
    (put<Stage, K>(cell.at_, next[K]), ...);
    (store<Stage, K>(y, x, next[K]), ...);
  }
  template <class Stage, int UPDATE, class Cell>
  __device__ __forceinline__ void apply(bool near, int y, int x, const Cell& cell, R* const next) const {
    if (near && inside<Stage, UPDATE, 0>(a, y) && inside<Stage, UPDATE, 1>(a, x)) Stage::template update<UPDATE>(cell, next);
  }
  template <class Stage, int K> __device__ __forceinline__ void put(int at, const R value) const {
    constexpr int field = Stage::WRITES[K][0];
    if (has<field>()) s[(Stage::WRITES[K][1] ? other[field] : array<field>()) + at] = value;
  }
  // What the last step leaves, to memory, and to the neighbours that need it.
  template <class Stage, int K> __device__ __forceinline__ void store(int y, int x, const R value) const {
    constexpr int field = Stage::WRITES[K][0], above = KNOWN[field][0][2], below = KNOWN[field][0][0];
    if constexpr (Stage::WRITES[K][2] != 0)
      if (!left && within<field, 0>(y, y0, y1) && within<field, 1>(x, c0, c1)) {
        a.fields[field].slot[target][y * a.fields[field].pitch[0] + x] = value;
        if (exchange.side[0].local && y < a.lo[0] + above)
          exchange.side[0].fields[field].slot[target][y * exchange.side[0].fields[field].pitch[0] + x] = value;
        if (exchange.side[1].local && y >= a.hi[0] - below)
          exchange.side[1].fields[field].slot[target][y * exchange.side[1].fields[field].pitch[0] + x] = value;
      }
  }
  template <class Stage, int... K> __device__ __forceinline__ void swap(Numbers<K...>) {
    (swap_arrays<Stage::WRITES[K][0], Stage::WRITES[K][1]>(), ...);
  }
  template <int FIELD, bool OTHER> __device__ __forceinline__ void swap_arrays() {
    if constexpr (OTHER) {
      const int before = now[FIELD];
      now[FIELD] = other[FIELD];
      other[FIELD] = before;
    }
  }
  // What is final after a stage to the receivers.
  template <class Stage, int... K> __device__ __forceinline__ void record(Numbers<K...>) const {
    if constexpr (((Stage::WRITES[K][2] && RECORDED[Stage::WRITES[K][0]]) || ...))
      if (tile.variant) {
        for (int k = threadIdx.x; k < tile.variant; k += THREADS) {
          const Receiver q = a.receivers[tile.first + k];
          const int at = (q.cell[0] - yb) * WIDTH + (q.cell[1] - xb);
          (record_one<Stage, K>(q, at), ...);
        }
        __syncthreads();
      }
  }
  template <class Stage, int K> __device__ __forceinline__ void record_one(const Receiver& q, int at) const {
    constexpr int field = Stage::WRITES[K][0];
    if constexpr (Stage::WRITES[K][2] && RECORDED[field])
      if (q.field == field) a.traces[q.number * a.total_steps + step] = s[array<field>() + at];
  }
};

// By all threads of a block; it ends with a barrier.
template <class Plan>
__device__ __forceinline__ void block2d_tile(const Arguments& a, const Exchange& exchange, const Region& region, int source,
                                             int target, long long step0, unsigned char* shared) {
  Block2D<Plan> tile(a, exchange, region, source, target, step0, shared);
  if (threadIdx.x < Plan::STEPS) record_constants(a, region, step0 + static_cast<int>(threadIdx.x));
  tile.load(typename Plan::Loaded{});
  tile.load_profiles(typename Plan::Profiles{});
  pg_fetched();
  pg_await<0>();
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t) {
    tile.step = step0 + t;
    tile.left = Plan::STEPS - 1 - t;
    tile.stages(UpTo<Plan::STAGES>{});  // each ends with a barrier
  }
}

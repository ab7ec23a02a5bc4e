// Several time steps of a one-dimensional grid per pass: overlapped tiling.
//
// A tile loads its cells and, on both sides, the ghost cells from which all `STEPS` steps can be made; each step is
// valid on fewer of them, and what is left in the end is stored. Nothing but that crosses memory between the steps.
//
// `InteriorTile`: one warp for cells that all have the same updates. Each lane holds `CELLS` neighbouring cells of
// every field in registers and gets those of its neighbours by shuffles.
// `BoundaryTile`: one block for cells near an edge of the grid, a confined update or a receiver. The fields are in
// shared memory, twice those that change, and each cell asks which updates reach it.
//
// A plan says, for one problem and shape, what is in capitals here, and of each stage:
//   WRITES   the fields that it writes;
//   READ     how far to the left and to the right it reads which fields, in the interior;
//   BOXES    where its updates apply, in boundary tiles; update, the new values of a cell.
#include "numbers.cuh"
#include "bounds.cuh"
#include "places.cuh"

constexpr int PACK = 16 / sizeof(R);  // cells that one access moves

// ---------------------------------------------------------------------------------------------------------------------
// Interior tiles: a warp's cells, of each field CELLS neighbouring ones in a lane.

// What a stage reads: the cells of a lane, with `REACH` cells of its neighbours on both sides; and the cell number
// `cell`, as an update sees it.
template <class Plan> struct Window {
  R of[FIELD_COUNT][Plan::REACH + Plan::CELLS + Plan::REACH];
};
template <class Plan> struct LaneCell {
  const Arguments& a;
  const Window<Plan>& window;
  const long long step;
  const int cell;

  template <int FIELD, int X> __device__ __forceinline__ R at() const {
    return window.of[FIELD][Plan::REACH + cell + X];
  }
  __device__ __forceinline__ R signal(int number) const { return sample(a.signals[number], step); }
};

template <class Plan> struct InteriorTile {
  static constexpr int CELLS = Plan::CELLS, REACH = Plan::REACH;

  const Arguments& a;
  const int source, target, x0, first;  // the first cell of the tile; of the lane
  R cells[FIELD_COUNT][CELLS];

  template <int... FIELD> __device__ __forceinline__ void load(Numbers<FIELD...>) { (load_field<FIELD>(), ...); }
  template <int FIELD> __device__ __forceinline__ void load_field() {
    const R* const from = a.fields[FIELD].slot[STATE[FIELD] ? source : 0] + first;
#pragma unroll
    for (int k = 0; k < CELLS; k += PACK) {
      const Pack<PACK> pack = *reinterpret_cast<const Pack<PACK>*>(from + k);
#pragma unroll
      for (int n = 0; n < PACK; ++n) cells[FIELD][k + n] = pack.v[n];
    }
  }
  // Those that are useful, from `x0` on.
  template <int... FIELD> __device__ __forceinline__ void store(Numbers<FIELD...>) const { (store_field<FIELD>(), ...); }
  template <int FIELD> __device__ __forceinline__ void store_field() const {
    if (!STATE[FIELD]) return;
    R* const to = a.fields[FIELD].slot[target] + first;
#pragma unroll
    for (int k = 0; k < CELLS; k += PACK) {
      if (first + k < x0 || first + k >= x0 + Plan::USEFUL) continue;
      Pack<PACK> pack;
#pragma unroll
      for (int n = 0; n < PACK; ++n) pack.v[n] = cells[FIELD][k + n];
      *reinterpret_cast<Pack<PACK>*>(to + k) = pack;
    }
  }
  template <int... NUMBER> __device__ __forceinline__ void stages(long long step, Numbers<NUMBER...>) {
    (stage<typename Plan::template Stage<NUMBER>>(step), ...);
  }
  template <class Stage> __device__ __forceinline__ void stage(long long step) {
    Window<Plan> window;
    gather_all<Stage>(window, UpTo<Stage::READS>{});
#pragma unroll
    for (int k = 0; k < CELLS; ++k) {
      R next[Stage::WRITTEN];
      Stage::update(LaneCell<Plan>{a, window, step, k}, next);
      keep<Stage>(next, k, UpTo<Stage::WRITTEN>{});
    }
  }
  template <class Stage, int... K> __device__ __forceinline__ void gather_all(Window<Plan>& window, Numbers<K...>) {
    (gather<Stage::READ[K][0], Stage::READ[K][1], Stage::READ[K][2]>(window), ...);
  }
  // Cells at the ends of the warp find no neighbours: they are ghost cells that nobody needs any more.
  template <int FIELD, int LEFT, int RIGHT> __device__ __forceinline__ void gather(Window<Plan>& window) {
#pragma unroll
    for (int k = 1; k <= LEFT; ++k)
      window.of[FIELD][REACH - k] = __shfl_up_sync(0xffffffffu, cells[FIELD][CELLS - k], 1);
#pragma unroll
    for (int k = 0; k < CELLS; ++k) window.of[FIELD][REACH + k] = cells[FIELD][k];
#pragma unroll
    for (int k = 0; k < RIGHT; ++k)
      window.of[FIELD][REACH + CELLS + k] = __shfl_down_sync(0xffffffffu, cells[FIELD][k], 1);
  }
  template <class Stage, int... K> __device__ __forceinline__ void keep(const R* next, int k, Numbers<K...>) {
    ((cells[Stage::WRITES[K]][k] = next[K]), ...);
  }
};

// A range of cells, tile by tile, by one warp; the last tile may overlap the one before it, where both find the same
// bits. A tile begins at a multiple of 4.
template <class Plan> struct InteriorTiles {
  static constexpr int WARP_BYTES = 0;

  __device__ __forceinline__ static void advance(const Arguments& a, const Region& range, int source, int target,
                                                 long long step0, unsigned char*) {
    const int lane = threadIdx.x & 31;
    for (int x = range.lo[0]; x < range.hi[0]; x += Plan::USEFUL) {
      const int x0 = min(x, range.hi[0] - Plan::USEFUL);
      InteriorTile<Plan> tile{a, source, target, x0, x0 - Plan::LEFT + lane * Plan::CELLS};
      tile.load(typename Plan::Kept{});
#pragma unroll 1
      for (int t = 0; t < Plan::STEPS; ++t) tile.stages(step0 + t, UpTo<Plan::STAGES>{});
      tile.store(typename Plan::Kept{});
    }
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Boundary tiles: at most `Plan::SEGMENT` cells in shared memory, as they are and as they become.

// A cell `x`, as an update sees it.
template <class Tile> struct SharedCell {
  const Arguments& a;
  const Tile& tile;
  const long long step;
  const int x;

  template <int FIELD, int X> __device__ __forceinline__ R at() const {
    const int place = mirrored<0>(x + X) - tile.first;
    return tile.current[FIELD][pg_clamp(place, 0, tile.count)];  // beyond the ghost cells lies nothing that is needed
  }
  __device__ __forceinline__ R signal(int number) const { return sample(a.signals[number], step); }
};

template <class Given> struct BoundaryTile {
  using Plan = Given;

  const Arguments& a;
  const Region& tile;
  const int source, target, first, count;  // the first cell in shared memory; how many
  R* current[FIELD_COUNT];
  R* made[FIELD_COUNT];

  __device__ __forceinline__ BoundaryTile(const Arguments& arguments, const Region& region, int from, int to)
      : a(arguments),
        tile(region),
        source(from),
        target(to),
        first(region.lo[0] - Plan::BELOW),
        count(region.hi[0] + Plan::ABOVE - first) {}

  // Gives every field its arrays, one after another, and its cells; zero where the device has none.
  template <int... FIELD> __device__ __forceinline__ void load(R* free, Numbers<FIELD...>) {
    ((free = load_field<FIELD>(free)), ...);
  }
  template <int FIELD> __device__ __forceinline__ R* load_field(R* const to) {
    const R* const from = a.fields[FIELD].slot[STATE[FIELD] ? source : 0] + first;
    const int lo = max(a.lo[0] - KNOWN[FIELD][0][0], BOX[FIELD][0][0]) - first;
    const int hi = min(a.hi[0] + KNOWN[FIELD][0][2], BOX[FIELD][0][1]) - first;
    for (int k = threadIdx.x; k < count; k += Plan::THREADS) to[k] = k >= lo && k < hi ? from[k] : R(0);
    current[FIELD] = to;
    made[FIELD] = to + Plan::SEGMENT;
    return to + (STATE[FIELD] ? 2 : 1) * Plan::SEGMENT;
  }
  template <int... NUMBER> __device__ __forceinline__ void stages(long long step, Numbers<NUMBER...>) {
    (stage<typename Plan::template Stage<NUMBER>>(step, UpTo<Plan::template Stage<NUMBER>::WRITTEN>{},
                                                  UpTo<Plan::template Stage<NUMBER>::UPDATES>{}),
     ...);
  }
  template <class Stage, int... K, int... UPDATE>
  __device__ __forceinline__ void stage(long long step, Numbers<K...>, Numbers<UPDATE...>) {
    for (int k = threadIdx.x; k < count; k += Plan::THREADS) {
      const SharedCell<BoundaryTile> cell{a, *this, step, first + k};
      R next[Stage::WRITTEN];
      ((next[K] = current[Stage::WRITES[K]][k]), ...);  // where no update reaches it a cell keeps its values
      (apply<Stage, UPDATE>(wrapped<0>(cell.x), cell, next), ...);
      ((made[Stage::WRITES[K]][k] = next[K]), ...);
    }
    __syncthreads();
    (swap(current[Stage::WRITES[K]], made[Stage::WRITES[K]]), ...);
  }
  template <class Stage, int UPDATE, class Cell>
  __device__ __forceinline__ void apply(int x, const Cell& cell, R* const next) const {
    if (inside<Stage, UPDATE, 0>(a, x)) Stage::template update<UPDATE>(cell, next);
  }
  static __device__ __forceinline__ void swap(R*& one, R*& other) {
    R* const kept = other;
    other = one;
    one = kept;
  }
  // What the receivers of the tile find after a step.
  template <int... FIELD> __device__ __forceinline__ void record(long long step, Numbers<FIELD...>) const {
    for (int n = threadIdx.x; n < tile.variant; n += Plan::THREADS)
      (record_field<FIELD>(a.receivers[tile.first + n], step), ...);
  }
  template <int FIELD> __device__ __forceinline__ void record_field(const Receiver& receiver, long long step) const {
    if (receiver.field == FIELD)
      a.traces[receiver.number * a.total_steps + step] = current[FIELD][receiver.cell[0] - first];
  }
  template <int... FIELD> __device__ __forceinline__ void store(Numbers<FIELD...>) const { (store_field<FIELD>(), ...); }
  template <int FIELD> __device__ __forceinline__ void store_field() const {
    if (!STATE[FIELD]) return;
    const int lo = max(tile.lo[0], BOX[FIELD][0][0]), hi = min(tile.hi[0], BOX[FIELD][0][1]);
    for (int x = lo + static_cast<int>(threadIdx.x); x < hi; x += Plan::THREADS)
      a.fields[FIELD].slot[target][x] = current[FIELD][x - first];
  }
};

// A tile by one block; `shared` holds `Plan::SEGMENT` cells of each array.
template <class Plan> struct BoundaryTiles {
  static constexpr int THREADS = Plan::THREADS;

  __device__ __forceinline__ static void advance(const Arguments& a, const Region& region, int source, int target,
                                                 long long step0, unsigned char* shared) {
    BoundaryTile<Plan> tile(a, region, source, target);
    tile.load(reinterpret_cast<R*>(shared), typename Plan::Fields{});
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < Plan::STEPS; ++t) {
      tile.stages(step0 + t, UpTo<Plan::STAGES>{});
      tile.record(step0 + t, typename Plan::Fields{});
    }
    tile.store(typename Plan::Fields{});
  }
};

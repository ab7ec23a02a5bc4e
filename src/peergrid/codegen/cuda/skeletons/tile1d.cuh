// Several time steps of a one-dimensional grid per pass: overlapped tiling.
//
// A tile loads its cells and, on both sides, the ghost cells from which all `STEPS` steps can be made; each step is
// valid on fewer of them, and what is left in the end is stored. Nothing but that crosses memory between the steps.
//
// `interior_tile`: one warp for cells that all have the same updates. Each lane holds `CELLS` neighbouring cells of
// every field in registers and gets those of its neighbours by shuffles.
// `boundary_tile`: one block for cells near an edge of the grid, a confined update or a receiver. The fields are in
// shared memory, twice those that change, and each cell asks which updates reach it.
//
// A plan gives the constants. `Fields` are all that cross memory, by their place in `Arguments`; `Stages` are the
// stages of a step, each with what it reads and writes and its updates.

template <int F, int X> struct Read {};  // what an update reads: of field F, the cell X away
template <class... Parts> struct List {};

// A field: its place in `Arguments`; whether it changes with time; the cells below and above a box that its pass reads;
// the first and last cell that it has.
template <int F_, bool STATE_, int BELOW_, int ABOVE_, int FIRST_, int LAST_> struct Stored {
  static constexpr int F = F_, BELOW = BELOW_, ABOVE = ABOVE_, FIRST = FIRST_, LAST = LAST_;
  static constexpr bool STATE = STATE_;
};
// How far a stage reads a field to the left and to the right.
template <int F_, int LEFT_, int RIGHT_> struct Reach {
  static constexpr int F = F_, LEFT = LEFT_, RIGHT = RIGHT_;
};
// The place of a field among the results of a stage.
template <int F_, int PLACE_> struct Target {
  static constexpr int F = F_, PLACE = PLACE_;
};

constexpr int PACK = 16 / sizeof(R);  // cells that one access moves

// ---------------------------------------------------------------------------------------------------------------------
// Interior tiles: a warp's cells, of each field CELLS neighbouring ones in a lane.

// What a stage reads: the cells of a lane, with `REACH` cells of its neighbours on both sides, as an update reads them
// for the cell number `cell`.
template <class Plan> struct Window {
  R of[Plan::FIELDS][Plan::REACH + Plan::CELLS + Plan::REACH];
};
template <class Plan> struct FromRegisters {
  const Window<Plan>& window;
  int cell;

  template <int F, int X> __device__ __forceinline__ R operator()(Read<F, X>) const {
    return window.of[F][Plan::REACH + cell + X];
  }
};

template <class Plan> struct InteriorTile {
  static constexpr int CELLS = Plan::CELLS, REACH = Plan::REACH;

  const Arguments& a;
  const int x0, first;  // the first cell of the tile; of the lane
  R cells[Plan::FIELDS][CELLS];

  template <class... Field> __device__ __forceinline__ void load(List<Field...>) { (load_field<Field>(), ...); }
  template <class Field> __device__ __forceinline__ void load_field() {
    const R* const from = a.fields[Field::F].slot[Field::STATE ? a.source : 0] + first;
#pragma unroll
    for (int k = 0; k < CELLS; k += PACK) {
      const Pack<PACK> pack = *reinterpret_cast<const Pack<PACK>*>(from + k);
#pragma unroll
      for (int n = 0; n < PACK; ++n) cells[Field::F][k + n] = pack.v[n];
    }
  }
  // Those that are useful, from `x0` on.
  template <class... Field> __device__ __forceinline__ void store(List<Field...>) const { (store_field<Field>(), ...); }
  template <class Field> __device__ __forceinline__ void store_field() const {
    if (!Field::STATE) return;
    R* const to = a.fields[Field::F].slot[a.target] + first;
#pragma unroll
    for (int k = 0; k < CELLS; k += PACK) {
      if (first + k < x0 || first + k >= x0 + Plan::USEFUL) continue;
      Pack<PACK> pack;
#pragma unroll
      for (int n = 0; n < PACK; ++n) pack.v[n] = cells[Field::F][k + n];
      *reinterpret_cast<Pack<PACK>*>(to + k) = pack;
    }
  }
  template <class... Stage> __device__ __forceinline__ void stages(long long step, List<Stage...>) {
    (stage<Stage>(step, typename Stage::Reads{}), ...);
  }
  template <class Stage, class... Reach> __device__ __forceinline__ void stage(long long step, List<Reach...>) {
    Window<Plan> window;
    (gather(window, Reach{}), ...);
#pragma unroll
    for (int k = 0; k < CELLS; ++k) {
      R next[Stage::RESULTS];
      Stage::interior(FromRegisters<Plan>{window, k}, a, step, next);
      keep(next, k, typename Stage::Interior{});
    }
  }
  // Cells at the ends of the warp find no neighbours: they are ghost cells that nobody needs any more.
  template <int F, int LEFT, int RIGHT> __device__ __forceinline__ void gather(Window<Plan>& window, Reach<F, LEFT, RIGHT>) {
#pragma unroll
    for (int k = 1; k <= LEFT; ++k) window.of[F][REACH - k] = __shfl_up_sync(0xffffffffu, cells[F][CELLS - k], 1);
#pragma unroll
    for (int k = 0; k < CELLS; ++k) window.of[F][REACH + k] = cells[F][k];
#pragma unroll
    for (int k = 0; k < RIGHT; ++k)
      window.of[F][REACH + CELLS + k] = __shfl_down_sync(0xffffffffu, cells[F][k], 1);
  }
  template <class... T> __device__ __forceinline__ void keep(const R* next, int k, List<T...>) {
    ((cells[T::F][k] = next[T::PLACE]), ...);
  }
};

// The cells [x0, x0 + Plan::USEFUL), made by one warp; x0 is a multiple of 4.
template <class Plan>
__device__ __forceinline__ void interior_tile(const Arguments& a, const int x0, const long long step, const int lane) {
  InteriorTile<Plan> tile{a, x0, x0 - Plan::LEFT + lane * Plan::CELLS};
  tile.load(typename Plan::Held{});
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t) tile.stages(step + t, typename Plan::Stages{});
  tile.store(typename Plan::Held{});
}

// A range of cells, tile by tile; the last one may overlap the one before it, where both find the same bits.
template <class Plan> __device__ __forceinline__ void interior_range(const Arguments& a, const Region& range) {
  const int lane = threadIdx.x & 31;
  const long long step = now(a);
  for (int x = range.lo[0]; x < range.hi[0]; x += Plan::USEFUL)
    interior_tile<Plan>(a, min(x, range.hi[0] - Plan::USEFUL), step, lane);
}

// ---------------------------------------------------------------------------------------------------------------------
// Boundary tiles: at most `Plan::SEGMENT` cells in shared memory, as they are and as they become.

// How an update reads: for the cell `x`, mirrored at edges that reflect.
template <class Tile> struct FromShared {
  const Tile& tile;
  int x;

  template <int F, int X> __device__ __forceinline__ R operator()(Read<F, X>) const {
    using Plan = typename Tile::Plan;
    const int at = (Plan::REFLECTS ? pg_mirror(x + X, Plan::EXTENT) : x + X) - tile.first;
    return tile.current[F][pg_clamp(at, 0, tile.count)];  // beyond the ghost cells lies nothing that is needed
  }
};

template <class Given> struct BoundaryTile {
  using Plan = Given;

  const Arguments& a;
  const Region& tile;
  const int first, count;  // the first cell in shared memory; how many
  R* current[Plan::FIELDS];
  R* made[Plan::FIELDS];

  __device__ __forceinline__ BoundaryTile(const Arguments& arguments, const Region& region)
      : a(arguments), tile(region), first(region.lo[0] - Plan::BELOW), count(region.hi[0] + Plan::ABOVE - first) {}

  // Gives every field its arrays, one after another, and its cells; zero where the device has none.
  template <class... Field> __device__ __forceinline__ void load(R* free, List<Field...>) {
    ((free = load_field<Field>(free)), ...);
  }
  template <class Field> __device__ __forceinline__ R* load_field(R* const to) {
    const R* const from = a.fields[Field::F].slot[Field::STATE ? a.source : 0] + first;
    const int lo = max(a.lo[0] - Field::BELOW, Field::FIRST) - first;
    const int hi = min(a.hi[0] + Field::ABOVE, Field::LAST) - first;
    for (int k = threadIdx.x; k < count; k += Plan::THREADS) to[k] = k >= lo && k < hi ? from[k] : R(0);
    current[Field::F] = to;
    made[Field::F] = to + Plan::SEGMENT;
    return to + (Field::STATE ? 2 : 1) * Plan::SEGMENT;
  }
  template <class... Stage> __device__ __forceinline__ void stages(long long step, List<Stage...>) {
    (stage<Stage>(step, typename Stage::Targets{}), ...);
  }
  template <class Stage, class... T> __device__ __forceinline__ void stage(long long step, List<T...>) {
    for (int k = threadIdx.x; k < count; k += Plan::THREADS) {
      const int x = first + k;
      R next[Stage::RESULTS];
      ((next[T::PLACE] = current[T::F][k]), ...);  // where no update reaches it a cell keeps its values
      Stage::boundary(FromShared<BoundaryTile>{*this, x}, a, Plan::WRAPS ? pg_wrap(x, Plan::EXTENT) : x, step, next);
      ((made[T::F][k] = next[T::PLACE]), ...);
    }
    __syncthreads();
    (swap(current[T::F], made[T::F]), ...);
  }
  static __device__ __forceinline__ void swap(R*& one, R*& other) {
    R* const kept = other;
    other = one;
    one = kept;
  }
  // What the receivers of the tile find after a step.
  template <class... Field> __device__ __forceinline__ void record(long long step, List<Field...>) const {
    for (int n = threadIdx.x; n < tile.variant; n += Plan::THREADS)
      (record_field<Field>(a.receivers[tile.first + n], step), ...);
  }
  template <class Field> __device__ __forceinline__ void record_field(const Receiver& receiver, long long step) const {
    if (receiver.field == Field::F)
      a.traces[receiver.number * a.total_steps + step] = current[Field::F][receiver.cell[0] - first];
  }
  template <class... Field> __device__ __forceinline__ void store(List<Field...>) const { (store_field<Field>(), ...); }
  template <class Field> __device__ __forceinline__ void store_field() const {
    if (!Field::STATE) return;
    const int lo = max(tile.lo[0], Field::FIRST), hi = min(tile.hi[0], Field::LAST);
    for (int x = lo + static_cast<int>(threadIdx.x); x < hi; x += Plan::THREADS)
      a.fields[Field::F].slot[a.target][x] = current[Field::F][x - first];
  }
};

// A tile by one block; `shared` holds `Plan::SEGMENT` cells of each array.
template <class Plan>
__device__ __forceinline__ void boundary_tile(const Arguments& a, const Region& region, R* const shared) {
  BoundaryTile<Plan> tile(a, region);
  const long long step = now(a);
  tile.load(shared, typename Plan::Fields{});
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t) {
    tile.stages(step + t, typename Plan::Stages{});
    tile.record(step + t, typename Plan::Fields{});
  }
  tile.store(typename Plan::Fields{});
}

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

// A step of the work for every part of a list. Not a lambda: some versions of NVRTC take those for functions of the host.
template <class... Parts, class Each> __device__ __forceinline__ void for_each(List<Parts...>, const Each& each) {
  (each(Parts{}), ...);
}

// ---------------------------------------------------------------------------------------------------------------------
// Interior tiles

// The cells of a lane, with `REACH` cells of its neighbours on both sides.
template <class Plan> struct Window {
  R of[Plan::FIELDS][Plan::REACH + Plan::CELLS + Plan::REACH];
};

constexpr int PACK = 16 / sizeof(R);  // cells that one access moves

// The cells of a lane, `first` and those after it, of one field.
template <class Plan> struct Load {
  R (&cells)[Plan::FIELDS][Plan::CELLS];
  const Arguments& a;
  int first;

  template <class Field> __device__ __forceinline__ void operator()(Field) const {
    const R* const from = a.fields[Field::F].slot[Field::STATE ? a.source : 0] + first;
#pragma unroll
    for (int k = 0; k < Plan::CELLS; k += PACK) {
      const Pack<PACK> pack = *reinterpret_cast<const Pack<PACK>*>(from + k);
#pragma unroll
      for (int n = 0; n < PACK; ++n) cells[Field::F][k + n] = pack.v[n];
    }
  }
};
// Those of them that are useful, from `x0` on.
template <class Plan> struct Store {
  const R (&cells)[Plan::FIELDS][Plan::CELLS];
  const Arguments& a;
  int first, x0;

  template <class Field> __device__ __forceinline__ void operator()(Field) const {
    if (!Field::STATE) return;
    R* const to = a.fields[Field::F].slot[a.target] + first;
#pragma unroll
    for (int k = 0; k < Plan::CELLS; k += PACK) {
      if (first + k < x0 || first + k >= x0 + Plan::USEFUL) continue;
      Pack<PACK> pack;
#pragma unroll
      for (int n = 0; n < PACK; ++n) pack.v[n] = cells[Field::F][k + n];
      *reinterpret_cast<Pack<PACK>*>(to + k) = pack;
    }
  }
};
// What a stage reads of one field. Cells at the ends of the warp find no neighbours: they are ghost cells that nobody
// needs any more.
template <class Plan> struct Gather {
  static constexpr int CELLS = Plan::CELLS, REACH = Plan::REACH;
  Window<Plan>& window;
  const R (&cells)[Plan::FIELDS][Plan::CELLS];

  template <int F, int LEFT, int RIGHT> __device__ __forceinline__ void operator()(Reach<F, LEFT, RIGHT>) const {
#pragma unroll
    for (int k = 1; k <= LEFT; ++k) window.of[F][REACH - k] = __shfl_up_sync(0xffffffffu, cells[F][CELLS - k], 1);
#pragma unroll
    for (int k = 0; k < CELLS; ++k) window.of[F][REACH + k] = cells[F][k];
#pragma unroll
    for (int k = 0; k < RIGHT; ++k)
      window.of[F][REACH + CELLS + k] = __shfl_down_sync(0xffffffffu, cells[F][k], 1);
  }
};
// How an update reads in registers: for one cell of the lane.
template <class Plan> struct FromRegisters {
  const Window<Plan>& window;
  int cell;

  template <int F, int X> __device__ __forceinline__ R operator()(Read<F, X>) const {
    return window.of[F][Plan::REACH + cell + X];
  }
};
// Gives a cell of a field its new value.
template <class Plan> struct Keep {
  R (&cells)[Plan::FIELDS][Plan::CELLS];
  const R* next;
  int cell;

  template <int F, int PLACE> __device__ __forceinline__ void operator()(Target<F, PLACE>) const {
    cells[F][cell] = next[PLACE];
  }
};
// One stage on all cells of the warp.
template <class Plan> struct InteriorStage {
  R (&cells)[Plan::FIELDS][Plan::CELLS];
  const Arguments& a;
  long long step;

  template <class Stage> __device__ __forceinline__ void operator()(Stage) const {
    Window<Plan> window;
    for_each(typename Stage::Reads{}, Gather<Plan>{window, cells});
#pragma unroll
    for (int k = 0; k < Plan::CELLS; ++k) {
      R next[Stage::RESULTS];
      Stage::interior(FromRegisters<Plan>{window, k}, a, step, next);
      for_each(typename Stage::Interior{}, Keep<Plan>{cells, next, k});
    }
  }
};

// The cells [x0, x0 + Plan::USEFUL), made by one warp; x0 is a multiple of 4.
template <class Plan>
__device__ __forceinline__ void interior_tile(const Arguments& a, const int x0, const long long step, const int lane) {
  R cells[Plan::FIELDS][Plan::CELLS];
  const int first = x0 - Plan::LEFT + lane * Plan::CELLS;
  for_each(typename Plan::Held{}, Load<Plan>{cells, a, first});
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t) for_each(typename Plan::Stages{}, InteriorStage<Plan>{cells, a, step + t});
  for_each(typename Plan::Held{}, Store<Plan>{cells, a, first, x0});
}

// A range of cells, tile by tile; the last one may overlap the one before it, where both find the same bits.
template <class Plan> __device__ __forceinline__ void interior_range(const Arguments& a, const Region& range) {
  const int lane = threadIdx.x & 31;
  const long long step = now(a);
  for (int x = range.lo[0]; x < range.hi[0]; x += Plan::USEFUL)
    interior_tile<Plan>(a, min(x, range.hi[0] - Plan::USEFUL), step, lane);
}

// ---------------------------------------------------------------------------------------------------------------------
// Boundary tiles

// A tile of at most `Plan::MOST` cells in shared memory: `count` cells from `first` on, as they are and as they become.
template <class Plan> struct Segment {
  int first, count;
  R* now[Plan::FIELDS];
  R* next[Plan::FIELDS];
};
// Gives every field its arrays, the next of which begins at `free`, and its cells; zero where the device has none.
template <class Plan> struct LoadShared {
  Segment<Plan>& segment;
  const Arguments& a;
  R*& free;

  template <class Field> __device__ __forceinline__ void operator()(Field) const {
    const R* const from = a.fields[Field::F].slot[Field::STATE ? a.source : 0] + segment.first;
    const int lo = max(a.lo[0] - Field::BELOW, Field::FIRST) - segment.first;
    const int hi = min(a.hi[0] + Field::ABOVE, Field::LAST) - segment.first;
    R* const to = free;
    for (int k = threadIdx.x; k < segment.count; k += Plan::THREADS) to[k] = k >= lo && k < hi ? from[k] : R(0);
    segment.now[Field::F] = to;
    segment.next[Field::F] = to + Plan::SEGMENT;
    free += (Field::STATE ? 2 : 1) * Plan::SEGMENT;
  }
};
// How an update reads in shared memory: for the cell `x`, mirrored at edges that reflect.
template <class Plan> struct FromShared {
  const Segment<Plan>& segment;
  int x;

  template <int F, int X> __device__ __forceinline__ R operator()(Read<F, X>) const {
    const int at = (Plan::REFLECTS ? pg_mirror(x + X, Plan::EXTENT) : x + X) - segment.first;
    return segment.now[F][pg_clamp(at, 0, segment.count)];  // beyond the ghost cells lies nothing that is needed
  }
};
// The values of a cell before a stage, where no update reaches it those after it.
template <class Plan> struct Before {
  const Segment<Plan>& segment;
  R* next;
  int cell;

  template <int F, int PLACE> __device__ __forceinline__ void operator()(Target<F, PLACE>) const {
    next[PLACE] = segment.now[F][cell];
  }
};
template <class Plan> struct After {
  const Segment<Plan>& segment;
  const R* next;
  int cell;

  template <int F, int PLACE> __device__ __forceinline__ void operator()(Target<F, PLACE>) const {
    segment.next[F][cell] = next[PLACE];
  }
};
template <class Plan> struct Swap {
  Segment<Plan>& segment;

  template <int F, int PLACE> __device__ __forceinline__ void operator()(Target<F, PLACE>) const {
    R* const made = segment.next[F];
    segment.next[F] = segment.now[F];
    segment.now[F] = made;
  }
};
// One stage on all cells of the segment.
template <class Plan> struct BoundaryStage {
  Segment<Plan>& segment;
  const Arguments& a;
  long long step;

  template <class Stage> __device__ __forceinline__ void operator()(Stage) const {
    for (int k = threadIdx.x; k < segment.count; k += Plan::THREADS) {
      const int x = segment.first + k;
      R next[Stage::RESULTS];
      for_each(typename Stage::Targets{}, Before<Plan>{segment, next, k});
      Stage::boundary(FromShared<Plan>{segment, x}, a, Plan::WRAPS ? pg_wrap(x, Plan::EXTENT) : x, step, next);
      for_each(typename Stage::Targets{}, After<Plan>{segment, next, k});
    }
    __syncthreads();
    for_each(typename Stage::Targets{}, Swap<Plan>{segment});
  }
};
// What a receiver of a field finds after a step.
template <class Plan> struct Record {
  const Segment<Plan>& segment;
  const Arguments& a;
  const Receiver& receiver;
  long long step;

  template <class Field> __device__ __forceinline__ void operator()(Field) const {
    if (receiver.field == Field::F)
      a.traces[receiver.number * a.total_steps + step] = segment.now[Field::F][receiver.cell[0] - segment.first];
  }
};
template <class Plan> struct StoreShared {
  const Segment<Plan>& segment;
  const Arguments& a;
  const Region& tile;

  template <class Field> __device__ __forceinline__ void operator()(Field) const {
    if (!Field::STATE) return;
    const int lo = max(tile.lo[0], Field::FIRST), hi = min(tile.hi[0], Field::LAST);
    for (int x = lo + static_cast<int>(threadIdx.x); x < hi; x += Plan::THREADS)
      a.fields[Field::F].slot[a.target][x] = segment.now[Field::F][x - segment.first];
  }
};

// A tile by one block; `shared` holds `Plan::SEGMENT` cells of each array.
template <class Plan>
__device__ __forceinline__ void boundary_tile(const Arguments& a, const Region& tile, R* const shared) {
  Segment<Plan> segment;
  segment.first = tile.lo[0] - Plan::BELOW;
  segment.count = tile.hi[0] + Plan::ABOVE - segment.first;
  const long long step = now(a);
  R* free = shared;
  for_each(typename Plan::Fields{}, LoadShared<Plan>{segment, a, free});
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t) {
    for_each(typename Plan::Stages{}, BoundaryStage<Plan>{segment, a, step + t});
    for (int n = threadIdx.x; n < tile.variant; n += Plan::THREADS)
      for_each(typename Plan::Fields{}, Record<Plan>{segment, a, a.receivers[tile.first + n], step + t});
  }
  for_each(typename Plan::Fields{}, StoreShared<Plan>{segment, a, tile});
}

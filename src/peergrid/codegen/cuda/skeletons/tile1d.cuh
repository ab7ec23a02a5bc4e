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

template <class... Parts, class Each> __device__ __forceinline__ void for_each(List<Parts...>, const Each& each) {
  (each(Parts{}), ...);
}

// ---------------------------------------------------------------------------------------------------------------------
// Interior tiles

constexpr int PACK = 16 / sizeof(R);  // cells that one access moves

// The cells of a lane, with `REACH` cells of its neighbours on both sides.
template <class Plan> struct Window {
  R of[Plan::FIELDS][Plan::REACH + Plan::CELLS + Plan::REACH];
};

// How an update reads in registers: for one cell of the lane.
template <class Plan> struct FromRegisters {
  const Window<Plan>& window;
  int cell;

  template <int F, int X> __device__ __forceinline__ R operator()(Read<F, X>) const {
    return window.of[F][Plan::REACH + cell + X];
  }
};

// One stage on all cells of the warp. Cells at its ends find no neighbours: they are ghost cells that nobody needs.
template <class Plan, class Stage>
__device__ __forceinline__ void interior_stage(R (&cells)[Plan::FIELDS][Plan::CELLS], const Arguments& a,
                                               const long long step) {
  constexpr int CELLS = Plan::CELLS, REACH = Plan::REACH;
  Window<Plan> window;
  for_each(typename Stage::Reads{}, [&](auto reach) {
    constexpr int F = decltype(reach)::F, LEFT = decltype(reach)::LEFT, RIGHT = decltype(reach)::RIGHT;
#pragma unroll
    for (int k = 1; k <= LEFT; ++k) window.of[F][REACH - k] = __shfl_up_sync(0xffffffffu, cells[F][CELLS - k], 1);
#pragma unroll
    for (int k = 0; k < CELLS; ++k) window.of[F][REACH + k] = cells[F][k];
#pragma unroll
    for (int k = 0; k < RIGHT; ++k)
      window.of[F][REACH + CELLS + k] = __shfl_down_sync(0xffffffffu, cells[F][k], 1);
  });
#pragma unroll
  for (int k = 0; k < CELLS; ++k) {
    R next[Stage::RESULTS];
    Stage::interior(FromRegisters<Plan>{window, k}, a, step, next);
    for_each(typename Stage::Interior{}, [&](auto target) {
      cells[decltype(target)::F][k] = next[decltype(target)::PLACE];
    });
  }
}

// The cells [x0, x0 + Plan::USEFUL), made by one warp; x0 is a multiple of 4.
template <class Plan>
__device__ __forceinline__ void interior_tile(const Arguments& a, const int x0, const long long step, const int lane) {
  R cells[Plan::FIELDS][Plan::CELLS];
  const int first = x0 - Plan::LEFT + lane * Plan::CELLS;
  for_each(typename Plan::Held{}, [&](auto field) {
    constexpr int F = decltype(field)::F;
    const R* const from = a.fields[F].slot[decltype(field)::STATE ? a.source : 0] + first;
#pragma unroll
    for (int k = 0; k < Plan::CELLS; k += PACK) {
      const Pack<PACK> pack = *reinterpret_cast<const Pack<PACK>*>(from + k);
#pragma unroll
      for (int n = 0; n < PACK; ++n) cells[F][k + n] = pack.v[n];
    }
  });
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t)
    for_each(typename Plan::Stages{}, [&](auto stage) {
      interior_stage<Plan, decltype(stage)>(cells, a, step + t);
    });
  for_each(typename Plan::Held{}, [&](auto field) {
    constexpr int F = decltype(field)::F;
    if (!decltype(field)::STATE) return;
    R* const to = a.fields[F].slot[a.target] + first;
#pragma unroll
    for (int k = 0; k < Plan::CELLS; k += PACK) {
      if (first + k < x0 || first + k >= x0 + Plan::USEFUL) continue;
      Pack<PACK> pack;
#pragma unroll
      for (int n = 0; n < PACK; ++n) pack.v[n] = cells[F][k + n];
      *reinterpret_cast<Pack<PACK>*>(to + k) = pack;
    }
  });
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

// How an update reads in shared memory: for the cell `x`, mirrored at edges that reflect.
template <class Plan> struct FromShared {
  R* const (&fields)[Plan::FIELDS];
  int x, first, count;

  template <int F, int X> __device__ __forceinline__ R operator()(Read<F, X>) const {
    const int at = (Plan::REFLECTS ? pg_mirror(x + X, Plan::EXTENT) : x + X) - first;
    return fields[F][pg_clamp(at, 0, count)];  // beyond the ghost cells lies nothing that the results depend on
  }
};

// A tile of at most `Plan::MOST` cells by one block; `shared` holds `Plan::SEGMENT` cells of each array.
template <class Plan>
__device__ __forceinline__ void boundary_tile(const Arguments& a, const Region& tile, R* const shared) {
  const int first = tile.lo[0] - Plan::BELOW, count = tile.hi[0] + Plan::ABOVE - first;
  const long long step = now(a);
  R *fields[Plan::FIELDS], *others[Plan::FIELDS];
  R* free = shared;
  for_each(typename Plan::Fields{}, [&](auto field) {
    typedef decltype(field) Field;
    const R* const from = a.fields[Field::F].slot[Field::STATE ? a.source : 0];
    const int lo = max(a.lo[0] - Field::BELOW, Field::FIRST), hi = min(a.hi[0] + Field::ABOVE, Field::LAST);
    fields[Field::F] = free;
    free += Plan::SEGMENT;
    if (Field::STATE) {
      others[Field::F] = free;
      free += Plan::SEGMENT;
    }
    for (int k = threadIdx.x; k < count; k += Plan::THREADS)
      fields[Field::F][k] = first + k >= lo && first + k < hi ? from[first + k] : R(0);
  });
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < Plan::STEPS; ++t) {
    for_each(typename Plan::Stages{}, [&](auto stage) {
      typedef decltype(stage) Stage;
      for (int k = threadIdx.x; k < count; k += Plan::THREADS) {
        const int x = Plan::WRAPS ? pg_wrap(first + k, Plan::EXTENT) : first + k;
        R next[Stage::RESULTS];
        for_each(typename Stage::Targets{}, [&](auto target) {
          next[decltype(target)::PLACE] = fields[decltype(target)::F][k];
        });
        Stage::boundary(FromShared<Plan>{fields, first + k, first, count}, a, x, step + t, next);
        for_each(typename Stage::Targets{}, [&](auto target) {
          others[decltype(target)::F][k] = next[decltype(target)::PLACE];
        });
      }
      __syncthreads();
      for_each(typename Stage::Targets{}, [&](auto target) {
        constexpr int F = decltype(target)::F;
        R* const made = others[F];
        others[F] = fields[F];
        fields[F] = made;
      });
    });
    for (int n = threadIdx.x; n < tile.variant; n += Plan::THREADS) {
      const Receiver receiver = a.receivers[tile.first + n];
      for_each(typename Plan::Fields{}, [&](auto field) {
        if (receiver.field == decltype(field)::F)
          a.traces[receiver.number * a.total_steps + step + t] = fields[decltype(field)::F][receiver.cell[0] - first];
      });
    }
  }
  for_each(typename Plan::Fields{}, [&](auto field) {
    typedef decltype(field) Field;
    if (!Field::STATE) return;
    const int lo = max(tile.lo[0], Field::FIRST), hi = min(tile.hi[0], Field::LAST);
    for (int x = lo + static_cast<int>(threadIdx.x); x < hi; x += Plan::THREADS)
      a.fields[Field::F].slot[a.target][x] = fields[Field::F][x - first];
  });
}

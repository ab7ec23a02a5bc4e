// Updates of a 3D grid, streaming along axis 0.
//
// A thread block takes a tile of ROWS rows and COLUMNS columns and goes through the planes of a piece of the grid. Its
// clock is the plane that the last node of the pipeline makes; a node makes the plane LEAD ahead of it. Planes come from
// memory by asynchronous copies, AHEAD clocks before they are first read, into rings in shared memory. What a node
// makes for later nodes is in rings, too. A thread has the W cells of ROWS_EACH rows one below the other; planes older
// than those of a ring it keeps in registers, for its own cells.
//
// Before this text comes `Shape`: the constants above, THREADS of a block (whole warps: the last may have idle ones), HELD
// (the planes that a thread keeps), POLLS (see `Pace`), STORED (columns of a tile), SKEW (of a block before them), STREAM (whether the caches are told that results leave them first),
// PACED (whether blocks keep in step), PERIODIC (whether any axis of the grid is).
// Behind it come the plan (rings and nodes) and the kernel.

// ---------------------------------------------------------------- copies and counters
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 800
// How long the L2 cache shall keep what copies bring: as long as it can.
__device__ __forceinline__ unsigned long long pg_policy() {
#if __CUDA_ARCH__ >= 900
  return 0x14f0000000000000ull;  // what createpolicy gives; as a constant it needs no register
#else
  unsigned long long found;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(found));
  return found;
#endif
}
__device__ __forceinline__ void pg_fetch_kept(void* to, const void* from, unsigned long long policy) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "l"(policy)
               : "memory");
}
#else
__device__ __forceinline__ unsigned long long pg_policy() { return 0; }
__device__ __forceinline__ void pg_fetch_kept(void* to, const void* from, unsigned long long) { pg_fetch<16>(to, from); }
#endif
__device__ __forceinline__ void pg_count(unsigned* counter) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ __forceinline__ unsigned pg_look(const unsigned* counter) {
  unsigned found;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(counter) : "memory");
  return found;
}
__device__ __forceinline__ void pg_stream(Cells* to, const Cells& values) {  // first to leave the caches
  if constexpr (sizeof(R) == 4)
    __stcs(reinterpret_cast<float4*>(to), make_float4(values.v[0], values.v[1], values.v[2], values.v[3]));
  else
    __stcs(reinterpret_cast<double2*>(to), make_double2(values.v[0], values.v[1]));
}
#endif

// ---------------------------------------------------------------- blocks in step
// Neighbouring tiles share their borders through the L2 cache as long as their blocks are at about the same plane.
// So every block counts itself in at each clock, and none starts a clock before all have started the one LEAD back. That is
// a matter of speed alone: a block that has looked POLLS times in vain goes on and waits no more.
struct Pace {
  unsigned* counters;  // one for each clock, and behind them that of blocks that are done
  int lead;            // 0: blocks go as they please
  int clocks;          // most clocks of a block
};

struct Pacer {  // of one thread of a block
  const Pace& pace;
  int lead, clock = 0;
  unsigned seen = 0;

  __device__ __forceinline__ explicit Pacer(const Pace& given) : pace(given), lead(threadIdx.x ? 0 : given.lead) {}

  __device__ __forceinline__ void before() {
    if (!Shape::PACED || threadIdx.x || !pace.lead) return;
    pg_count(pace.counters + clock);
    if (lead && clock >= lead) {
      int polls = 0;
      while (seen < gridDim.x && polls++ < Shape::POLLS) seen = pg_look(pace.counters + clock - lead);
      if (seen < gridDim.x) lead = 0;
    }
    ++clock;
    if (lead && clock >= lead) seen = pg_look(pace.counters + clock - lead);  // asked one clock before it is needed
  }

  // The last block to end leaves all counters at 0 for the next launch.
  __device__ __forceinline__ void end() {
    if (threadIdx.x || !pace.lead) return;
    for (; clock < pace.clocks; ++clock) pg_count(pace.counters + clock);
    __threadfence();
    if (atomicAdd(pace.counters + pace.clocks, 1u) != gridDim.x - 1) return;
    __threadfence();
    for (int n = 0; n <= pace.clocks; ++n) pace.counters[n] = 0;
  }
};

// ---------------------------------------------------------------- periodic edges
// The cells of each axis that is periodic and whole in this memory: reads beyond its ends find the cells at the other end,
// and nothing is copied there. 0: there are ghost cells.
struct Wraps {
  int cells[3];

  __device__ __forceinline__ int operator()(int at, int axis) const {
    if constexpr (Shape::PERIODIC) {
      if (at < 0) return at + cells[axis];
      if (cells[axis] && at >= cells[axis]) return at - cells[axis];
    }
    return at;
  }
};

// ---------------------------------------------------------------- rings of planes
template <class... Parts> struct List {};

// Where the planes of all rings of PLANES planes are: slot[k] is the place of the plane k after the clock, modulo PLANES.
template <int PLANES> struct Places {
  int slot[PLANES];

  __device__ __forceinline__ void start(int nothing) {
#pragma unroll
    for (int k = 0; k < PLANES; ++k) slot[k] = nothing + k;
  }
  static __device__ __forceinline__ constexpr int index(int plane) { return (plane % PLANES + PLANES) % PLANES; }
  __device__ __forceinline__ void next() {
    const int first = slot[0];
#pragma unroll
    for (int k = 0; k + 1 < PLANES; ++k) slot[k] = slot[k + 1];
    slot[PLANES - 1] = first;
  }
};

// A ring: the planes OLDEST to NEWEST, counted from the clock, with LEFT and RIGHT columns, ABOVE and BELOW rows around
// the tile. START: its first value in shared memory. HELD_FROM, HELD: of the planes before, those that threads keep.
template <int START_, int PLANES_, int OLDEST_, int NEWEST_, int LEFT_, int RIGHT_, int ABOVE_, int BELOW_, int HELD_FROM_, int HELD_>
struct Ring {
  static constexpr int START = START_, PLANES = PLANES_, OLDEST = OLDEST_, NEWEST = NEWEST_;
  static constexpr int LEFT = LEFT_, ABOVE = ABOVE_, HELD_FROM = HELD_FROM_, HELD = HELD_;
  static constexpr int WIDTH = LEFT_ + Shape::COLUMNS + RIGHT_, HEIGHT = ABOVE_ + Shape::ROWS + BELOW_;
  // Columns that tiles store begin at whole lines of shared memory, as they do of the GPU's.
  static constexpr int LINE = 128 / sizeof(R), PITCH = (WIDTH + LINE - 1) / LINE * LINE;
  static constexpr int EDGE = (LINE - (LEFT + Shape::SKEW) % LINE) % LINE, SIZE = PITCH * HEIGHT + LINE;
};

// The cells lo <= index < hi along the three axes.
template <int LO0, int HI0, int LO1, int HI1, int LO2, int HI2> struct Bounds {
  static __device__ __forceinline__ constexpr int lo(int axis) { return axis == 0 ? LO0 : axis == 1 ? LO1 : LO2; }
  static __device__ __forceinline__ constexpr int hi(int axis) { return axis == 0 ? HI0 : axis == 1 ? HI1 : HI2; }
};

// Where a field is: as before the pass, as the pass leaves it, or in between in scratch block VERSION.
constexpr int SOURCE = -1, TARGET = -2;
template <int FIELD, int VERSION> __device__ __forceinline__ R* block_of(const Arguments& a) {
  if constexpr (VERSION >= 0) return a.scratch[VERSION];
  return a.fields[FIELD].slot[VERSION == TARGET ? a.target : a.source];
}

// A ring that is filled from field FIELD. NEED: how far beyond a tile it is read (as the bounds of a tile of no cells);
// REACH: how far beyond the box of the pass there are values; HOME: the cells that have any; KEPT: whether the L2 cache
// shall keep them.
template <class Ring, int FIELD_, int VERSION_, class NEED_, class REACH_, class HOME_, bool KEPT_> struct Loaded : Ring {
  static constexpr int FIELD = FIELD_, VERSION = VERSION_;
  static constexpr bool KEPT = KEPT_;
  typedef NEED_ NEED;
  typedef REACH_ REACH;
  typedef HOME_ HOME;
};

// Which of the copies that make a plane of a ring a thread asks for, and where each comes from in a plane in memory.
// First come those of the columns that tiles store, which are whole lines of memory, then those of the columns beside
// them: a warp whose copies begin amid a line asks for a line more.
template <class F> struct Copies {
  static constexpr int FIRST = F::LEFT + Shape::SKEW, BESIDE = (F::WIDTH - Shape::STORED) / W;
  static constexpr int LINES = Shape::STORED / W * F::HEIGHT, OTHERS = BESIDE * F::HEIGHT;
  static constexpr int WHOLE = (LINES + 31) / 32 * 32;  // whole warps; some copy a cell that others copy, too
  static constexpr int COUNT = WHOLE + (OTHERS + 31) / 32 * 32, EACH = (COUNT + Shape::THREADS - 1) / Shape::THREADS;
  int from[EACH], to[EACH];

  static __device__ __forceinline__ int number(int k) { return static_cast<int>(threadIdx.x) + k * Shape::THREADS; }
  // The same for all threads of a warp: copies that say how long caches keep them take that from registers of the warp.
  static __device__ __forceinline__ bool any(int k) { return COUNT % Shape::THREADS == 0 || number(k) < COUNT; }
  // left, top: the first cell of the ring; first, last: the rows that there are. Others are read by no cell that counts.
  __device__ __forceinline__ void place(int left, int top, int first, int last, int pitch, const Wraps& wraps) {
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int line = min(number(k), LINES - 1), other = min(number(k) - WHOLE, OTHERS - 1);
      int y = line / (Shape::STORED / W), x = FIRST + line % (Shape::STORED / W) * W;
      if constexpr (BESIDE > 0) {
        if (number(k) >= WHOLE) {
          y = other / BESIDE, x = other % BESIDE * W;
          if (x >= FIRST) x += Shape::STORED;
        }
      }
      to[k] = F::EDGE + y * F::PITCH + x;
      from[k] = wraps(min(max(top + y, first), last), 1) * pitch + wraps(left + x, 2);
    }
  }
};

// What a node makes as its N-th value: into a ring (void: none), into field FIELD (-1: none) on the cells of HOME that
// are at most REACH beyond the box of the pass. BOX: where its update applies; OLD: the ring with the value that other
// cells keep (void: nobody asks for them).
template <int N_, class RING_, int FIELD_, int VERSION_, class HOME_, class REACH_, class BOX_, class OLD_> struct Made {
  static constexpr int N = N_, FIELD = FIELD_, VERSION = VERSION_;
  typedef REACH_ REACH;
  typedef RING_ RING;
  typedef HOME_ HOME;
  typedef BOX_ BOX;
  typedef OLD_ OLD;
};

// What an update reads: a ring's value at an offset; a coefficient that varies along one axis.
template <class Ring, int Z, int Y, int X> struct Read {};
template <int FIELD, int AXIS, int OFFSET> struct Along {};

template <class A, class B> struct Same { static constexpr bool value = false; };
template <class A> struct Same<A, A> { static constexpr bool value = true; };

// ---------------------------------------------------------------- a thread of a block
template <class Plan> struct Stream : Plan::State {
  static constexpr int ACROSS = Shape::COLUMNS / W;  // threads along a row
  static constexpr int WORKING = ACROSS * Shape::ROWS / Shape::ROWS_EACH;

  const Arguments& a;
  const Wraps& wraps;
  const Region tile;  // a copy: memory may be written by anyone
  R* const shared;
  const long long step;
  const int left, top;    // the first cell of the block
  const int row, column;  // of the thread's first cell in the tile
  int plane;              // the clock
  Cells held[Shape::HELD > 0 ? Shape::HELD : 1][Shape::ROWS_EACH];

  __device__ __forceinline__ Stream(const Arguments& given, const Wraps& edges, const Region& box, R* memory)
      : a(given), wraps(edges), tile(box), shared(memory), step(now(given)),
        left(Plan::first(box.lo[2], 2) & ~(W - 1)), top(Plan::first(box.lo[1], 1)),
        row(min(static_cast<int>(threadIdx.x), WORKING - 1) / ACROSS * Shape::ROWS_EACH),
        column(static_cast<int>(threadIdx.x) % ACROSS * W), plane(box.lo[0] - Plan::EARLY) {}

  // The W cells of row r of the thread at an offset; PLANE is counted from the clock.
  template <class F, int PLANE, int Y, int X> __device__ __forceinline__ Cells read(int r) const {
    if constexpr (PLANE < F::OLDEST) {
      return held[F::HELD_FROM + F::OLDEST - 1 - PLANE][r];
    } else {
      constexpr int FIRST = (X >= 0 ? X : X - W + 1) / W * W, SHIFT = X - FIRST;
      const R* const from = at<F, PLANE>() + (r + Y) * F::PITCH + FIRST;
      const Cells low = *reinterpret_cast<const Cells*>(from);
      if constexpr (SHIFT == 0) {
        return low;
      } else {
        const Cells high = *reinterpret_cast<const Cells*>(from + W);
        Cells found;
#pragma unroll
        for (int n = 0; n < W; ++n) found.v[n] = n + SHIFT < W ? low.v[(n + SHIFT) % W] : high.v[(n + SHIFT) % W];
        return found;
      }
    }
  }

  // Where a ring has the thread's first cell of a plane.
  template <class F, int PLANE> __device__ __forceinline__ R* at() const {
    const int slot = this->Places<F::PLANES>::slot[Places<F::PLANES>::index(PLANE)];
    return shared + F::START + slot * F::SIZE + F::EDGE + (row + F::ABOVE) * F::PITCH + column + F::LEFT;
  }

  // The cells of the tile and `beyond` it that there are of a field, along an axis.
  template <class F> __device__ __forceinline__ int lowest(int axis, int beyond = 0) const {
    return max(max(tile.lo[axis] + beyond, a.lo[axis] + F::REACH::lo(axis)), F::HOME::lo(axis));
  }
  template <class F> __device__ __forceinline__ int highest(int axis, int beyond = 0) const {
    return min(min(tile.hi[axis] + beyond, a.hi[axis] + F::REACH::hi(axis)), F::HOME::hi(axis));
  }
  // Planes have fewer than 2^31 values.
  static __device__ __forceinline__ long long plane_at(const Field& field, int z) {
    return static_cast<long long>(z) * static_cast<int>(field.pitch[0]);
  }

  // Begin to copy a plane, counted from the clock, into a slot of its ring.
  template <class F> __device__ __forceinline__ void fetch(int ahead, int slot) const {
    const int z = plane + ahead;
    if (z < lowest<F>(0, F::NEED::lo(0)) || z >= highest<F>(0, F::NEED::hi(0))) return;
    const R* const from = block_of<F::FIELD, F::VERSION>(a) + plane_at(a.fields[F::FIELD], wraps(z, 0));
    R* const to = shared + F::START + slot * F::SIZE;
#pragma unroll
    for (int k = 0; k < Copies<F>::EACH; ++k) {
      if (!Copies<F>::any(k)) continue;
      if constexpr (F::KEPT)
        pg_fetch_kept(to + this->Copies<F>::to[k], from + this->Copies<F>::from[k], pg_policy());
      else
        pg_fetch<16>(to + this->Copies<F>::to[k], from + this->Copies<F>::from[k]);
    }
  }

  template <class F> __device__ __forceinline__ void place() {
    const int first = lowest<F>(1, F::NEED::lo(1)), last = highest<F>(1, F::NEED::hi(1)) - 1;
    this->Copies<F>::place(left - F::LEFT, top - F::ABOVE, first, last, static_cast<int>(a.fields[F::FIELD].pitch[1]), wraps);
  }
  // Slots are counted from `nothing`, a 0 that the compiler cannot know: where it keeps them in uniform registers, NVRTC
  // 13.0 encodes copies with a hint to the L2 cache wrongly (`LDGSTS [R+UR0], desc[UR1]`, an illegal instruction).
  __device__ __forceinline__ int nothing() const { return tile.variant; }

  template <class... P> __device__ __forceinline__ void start(List<P...>) { (this->P::start(nothing()), ...); }

  template <class... F> __device__ __forceinline__ void begin(List<F...>) {
    (place<F>(), ...);
    (first_planes<F>(), ...);
    pg_fetched();
#pragma unroll
    for (int k = 1; k < Shape::AHEAD; ++k) {
      (fetch<F>(F::NEWEST + k, nothing() + Places<F::PLANES>::index(F::NEWEST + k)), ...);
      pg_fetched();
    }
  }
  template <class F> __device__ __forceinline__ void first_planes() const {
#pragma unroll 1
    for (int p = F::OLDEST; p <= F::NEWEST; ++p) fetch<F>(p, nothing() + Places<F::PLANES>::index(p));
  }
  template <class... F> __device__ __forceinline__ void fetch_next(List<F...>) const {
    (fetch<F>(F::NEWEST + Shape::AHEAD, this->Places<F::PLANES>::slot[Places<F::PLANES>::index(F::NEWEST + Shape::AHEAD)]), ...);
    pg_fetched();
  }

  // What threads keep of the plane that leaves a ring's reach.
  template <class F> __device__ __forceinline__ void hold() {
    if constexpr (F::HELD > 0) {
#pragma unroll
      for (int r = 0; r < Shape::ROWS_EACH; ++r) {
#pragma unroll
        for (int k = F::HELD - 1; k > 0; --k) held[F::HELD_FROM + k][r] = held[F::HELD_FROM + k - 1][r];
        held[F::HELD_FROM][r] = read<F, F::OLDEST, 0, 0>(r);
      }
    }
  }
  template <class... F> __device__ __forceinline__ void hold_all(List<F...>) { (hold<F>(), ...); }

  template <class... N> __device__ __forceinline__ void make_all(List<N...>) const { (make<N>(), ...); }
  template <class N> __device__ __forceinline__ void make() const;
  template <class N, class M> __device__ __forceinline__ void keep(Cells (&made)[Shape::ROWS_EACH][N::VALUES]) const;
  template <class N, class... M>
  __device__ __forceinline__ void keep_all(Cells (&made)[Shape::ROWS_EACH][N::VALUES], List<M...>) const {
    (keep<N, M>(made), ...);
  }

  template <class... P> __device__ __forceinline__ void turn(List<P...>) { (this->P::next(), ...); }

  // The columns low <= k < high of W cells from column x on.
  static __device__ __forceinline__ void store(R* to, const Cells& values, int x, int low, int high) {
    if (x >= low && x + W <= high) {
      if constexpr (Shape::STREAM)
        pg_stream(reinterpret_cast<Cells*>(to), values);
      else
        *reinterpret_cast<Cells*>(to) = values;
      return;
    }
#pragma unroll
    for (int n = 0; n < W; ++n)
      if (x + n >= low && x + n < high) to[n] = values.v[n];
  }
};

// What an update is given: the values around the thread's cells in one row.
template <class Plan, int LEAD> struct Around {
  const Stream<Plan>& stream;
  const int r;

  template <class F, int Z, int Y, int X> __device__ __forceinline__ Cells operator()(Read<F, Z, Y, X>) const {
    return stream.template read<F, LEAD + Z, Y, X>(r);
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ R operator()(Along<FIELD, 0, OFFSET>) const {
    return __ldg(stream.a.fields[FIELD].slot[0] + stream.plane + LEAD + OFFSET);
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ R operator()(Along<FIELD, 1, OFFSET>) const {
    return __ldg(stream.a.fields[FIELD].slot[0] + stream.top + stream.row + r + OFFSET);
  }
  template <int FIELD, int OFFSET> __device__ __forceinline__ Cells operator()(Along<FIELD, 2, OFFSET>) const {
    Cells found;
#pragma unroll
    for (int n = 0; n < W; ++n)
      found.v[n] = __ldg(stream.a.fields[FIELD].slot[0] + stream.left + stream.column + n + OFFSET);
    return found;
  }
};

// One node of the pipeline: its plane at this clock.
template <class Plan> template <class N> __device__ __forceinline__ void Stream<Plan>::make() const {
  if constexpr (N::BARRIER) __syncthreads();  // what other threads made at this clock is read
  if (WORKING < Shape::THREADS && threadIdx.x >= WORKING) return;
  const int z = plane + N::LEAD;
  if (z < tile.lo[0] + N::NEED::lo(0) || z >= tile.hi[0] + N::NEED::hi(0)) return;
  Cells made[Shape::ROWS_EACH][N::VALUES];
#pragma unroll
  for (int r = 0; r < Shape::ROWS_EACH; ++r) N::update(Around<Plan, N::LEAD>{*this, r}, a, step, made[r]);
  keep_all<N>(made, typename N::Makes{});
}

template <class Plan>
template <class N, class M>
__device__ __forceinline__ void Stream<Plan>::keep(Cells (&made)[Shape::ROWS_EACH][N::VALUES]) const {
  const int z = plane + N::LEAD, x = left + column;
#pragma unroll
  for (int r = 0; r < Shape::ROWS_EACH; ++r) {
    const int y = top + row + r;
    Cells& value = made[r][M::N];
    if constexpr (!Same<typename M::OLD, void>::value) {
      const bool line = z >= M::BOX::lo(0) && z < M::BOX::hi(0) && y >= M::BOX::lo(1) && y < M::BOX::hi(1);
      if (!line || x < M::BOX::lo(2) || x + W > M::BOX::hi(2)) {
        const Cells old = read<typename M::OLD, N::LEAD, 0, 0>(r);
#pragma unroll
        for (int n = 0; n < W; ++n)
          if (!line || x + n < M::BOX::lo(2) || x + n >= M::BOX::hi(2)) value.v[n] = old.v[n];
      }
    }
    if constexpr (!Same<typename M::RING, void>::value)
      *reinterpret_cast<Cells*>(at<typename M::RING, N::LEAD>() + r * M::RING::PITCH) = value;
    if constexpr (M::FIELD >= 0) {
      const bool mine = z >= lowest<M>(0) && z < highest<M>(0) && y >= lowest<M>(1) && y < highest<M>(1);
      const Field& field = a.fields[M::FIELD];
      R* const to = block_of<M::FIELD, M::VERSION>(a) + plane_at(field, z) + (y * static_cast<int>(field.pitch[1]) + x);
      if (mine) store(to, value, x, lowest<M>(2), highest<M>(2));
    }
  }
}

// ---------------------------------------------------------------- tiles
template <class Plan>
__device__ __forceinline__ void stream_tile(const Arguments& a, const Region& tile, Pacer& pacer, const Wraps& wraps, R* shared) {
  Stream<Plan> stream(a, wraps, tile, shared);
  stream.start(typename Plan::Counts{});
  stream.begin(typename Plan::Fields{});
#pragma unroll 1
  for (; stream.plane < tile.hi[0]; ++stream.plane) {
    pacer.before();
    pg_await<Shape::AHEAD - 1>();
    __syncthreads();  // the planes of this clock are there, those before are read
    stream.fetch_next(typename Plan::Fields{});
    stream.make_all(typename Plan::Nodes{});
    stream.hold_all(typename Plan::Rings{});
    stream.turn(typename Plan::Counts{});
  }
  pg_await<0>();
}

// Blocks that keep in step are all at work at once, each on several tiles; others have one each.
template <class Plan>
__device__ __forceinline__ void stream_tiles(const Arguments& a, const Pace& pace, const Wraps& wraps, R* shared) {
  Pacer pacer(pace);
  stream_tile<Plan>(a, a.regions[blockIdx.x], pacer, wraps, shared);
  if constexpr (Shape::PACED) {
#pragma unroll 1
    for (int n = blockIdx.x + gridDim.x; n < a.count; n += gridDim.x) {
      __syncthreads();  // the tile before is read
      stream_tile<Plan>(a, a.regions[n], pacer, wraps, shared);
    }
    pacer.end();
  }
}

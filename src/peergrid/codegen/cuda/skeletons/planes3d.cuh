// What streams of 3D grids (`stream3d.cuh`) are made of: copies and barriers, blocks in step, periodic edges, and the rings
// of planes in shared memory with what fills them and what nodes make. `Shape` comes before this text, see there.

// ---------------------------------------------------------------- copies and counters
#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 800
// Copies bring the rest of their lines into the L2 cache: a tile's neighbours ask for it.
__device__ __forceinline__ void pg_fetch_line(void* to, const void* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
}
#else
__device__ __forceinline__ void pg_fetch_line(void* to, const void* from) { pg_fetch<16>(to, from); }
#endif
// Barriers in memory that all threads share: `count` arrivals end a phase, of which each has the other parity. GPUs
// without them have a whole barrier where others wait.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void pg_barrier_start(unsigned long long* barrier, unsigned count) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(place), "r"(count) : "memory");
}
__device__ __forceinline__ void pg_barrier_arrive(unsigned long long* barrier) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(place) : "memory");
}
__device__ __forceinline__ bool pg_barrier_passed(unsigned long long* barrier, unsigned parity) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  unsigned found;
#if __CUDA_ARCH__ >= 900
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#else
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#endif
               : "=r"(found) : "r"(place), "r"(parity) : "memory");
  return found;
}
#else
__device__ __forceinline__ void pg_barrier_start(unsigned long long*, unsigned) {}
__device__ __forceinline__ void pg_barrier_arrive(unsigned long long*) {}
__device__ __forceinline__ bool pg_barrier_passed(unsigned long long*, unsigned) {
  __syncthreads();
  return true;
}
#endif
__device__ __forceinline__ void pg_count(unsigned* counter) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
__device__ __forceinline__ unsigned pg_look(const unsigned* counter) {
  unsigned found;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(counter) : "memory");
  return found;
}
#endif

// Makes the compiler compute again what follows from a number: registers that keep such things from clock to clock are
// missing elsewhere.
__device__ __forceinline__ void pg_again(int& number) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(number));
#endif
}

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

// ---------------------------------------------------------------- tiles that a queue awaits
// A queue may wait for the first tiles of a launch alone: those of the boundary region, which others need. The block that
// ends the last of them sets a word, which the queue awaits and sets back.
struct Awaited {
  unsigned long long* word;  // and behind it the number of those that are done, 0 between launches
  int tiles;                 // 0: nobody waits

  __device__ __forceinline__ void done(int tile) const {
    if (tile >= tiles) return;
    __syncthreads();  // all threads have stored their cells
    if (threadIdx.x) return;
    __threadfence_system();
    if (atomicAdd(word + 1, 1ull) + 1 < tiles) return;
    word[1] = 0;
    __threadfence_system();
    *reinterpret_cast<volatile unsigned long long*>(word) = 1;
  }
};

// ---------------------------------------------------------------- a barrier in two halves
// Warps arrive when others may read what they have made in a clock, and wait before they read what others have, most of a
// clock later: none stands still meanwhile. Where SPLIT, that takes the place of a barrier at the start of each clock.
struct Halves {
  unsigned long long* barrier = nullptr;
  unsigned parity = 1;

  __device__ __forceinline__ explicit Halves(R* shared) {
    if constexpr (Shape::SPLIT) {
      barrier = reinterpret_cast<unsigned long long*>(shared + Shape::BARRIER_AT);
      if (threadIdx.x == 0) pg_barrier_start(barrier, Shape::THREADS / 32);
      __syncthreads();
    }
  }
  __device__ __forceinline__ void arrive() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) pg_barrier_arrive(barrier);
  }
  __device__ __forceinline__ void await() {
    while (!pg_barrier_passed(barrier, parity)) {}
    parity ^= 1;
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
  __device__ __forceinline__ bool crossed(int at, int axis) const {
    return Shape::PERIODIC && cells[axis] && (at < 0 || at >= cells[axis]);
  }
  // How many of the places from first to end are before the edge, and behind it.
  __device__ __forceinline__ int before(int first, int axis) const { return cells[axis] ? max(-first, 0) : 0; }
  __device__ __forceinline__ int behind(int end, int axis) const { return cells[axis] ? max(end - cells[axis], 0) : 0; }
};

// ---------------------------------------------------------------- rings of planes
template <class... Parts> struct List {};

// Where the planes of all rings of PLANES planes of SIZE values are: slot[k] is that of the plane k after the clock,
// modulo PLANES, in values behind the start of a ring.
template <int PLANES, int SIZE> struct Places {
  int slot[PLANES];

  __device__ __forceinline__ void start(int nothing) {
#pragma unroll
    for (int k = 0; k < PLANES; ++k) slot[k] = nothing + k * SIZE;
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
// the tile. START: its first value in shared memory. KEPT, KEPT_FROM, YOUNGEST: how many planes threads keep of their own
// cells, from which place on, and the newest of them.
template <int START_, int PLANES_, int OLDEST_, int NEWEST_, int LEFT_, int RIGHT_, int ABOVE_, int BELOW_,
          int KEPT_FROM_, int KEPT_, int YOUNGEST_>
struct Ring {
  static constexpr int START = START_, PLANES = PLANES_, OLDEST = OLDEST_, NEWEST = NEWEST_;
  static constexpr int LEFT = LEFT_, RIGHT = RIGHT_, ABOVE = ABOVE_, BELOW = BELOW_;
  static constexpr int KEPT_FROM = KEPT_FROM_, KEPT = KEPT_, YOUNGEST = YOUNGEST_;
  static constexpr int WIDTH = LEFT_ + Shape::COLUMNS + RIGHT_, HEIGHT = ABOVE_ + Shape::ROWS + BELOW_;
  static constexpr int LINE = (Shape::TENSOR ? 8 : 32) * W;  // 128 bytes of a tensor copy, or what whole warps copy
  static constexpr int SIZE = (WIDTH * HEIGHT + LINE - 1) / LINE * LINE;
  typedef Places<PLANES_, SIZE> Slots;
};

// The cells lo <= index < hi along the three axes.
template <int LO0, int HI0, int LO1, int HI1, int LO2, int HI2> struct Bounds {
  static __device__ __forceinline__ constexpr int lo(int axis) { return axis == 0 ? LO0 : axis == 1 ? LO1 : LO2; }
  static __device__ __forceinline__ constexpr int hi(int axis) { return axis == 0 ? HI0 : axis == 1 ? HI1 : HI2; }
  static __device__ __forceinline__ bool has(int z, int y, int x) {
    return z >= LO0 && z < HI0 && y >= LO1 && y < HI1 && x >= LO2 && x < HI2;
  }
};

// Where a field is: as before the pass, as the pass leaves it, or in between in scratch block VERSION.
constexpr int SOURCE = -1, TARGET = -2;
template <int FIELD, int VERSION> __device__ __forceinline__ R* block_of(const Arguments& a) {
  if constexpr (VERSION >= 0) return a.scratch[VERSION];
  return a.fields[FIELD].slot[VERSION == TARGET ? a.target : a.source];
}

// A ring that is filled from field FIELD. NEED: how far beyond a tile it is read (as the bounds of a tile of no cells);
// REACH: how far beyond the box of the pass there are values; HOME: the cells that have any; NUMBER: its place among such rings.
template <class Ring, int FIELD_, int VERSION_, class NEED_, class REACH_, class HOME_, int NUMBER_> struct Loaded : Ring {
  static constexpr int FIELD = FIELD_, VERSION = VERSION_, NUMBER = NUMBER_;
  typedef NEED_ NEED;
  typedef REACH_ REACH;
  typedef HOME_ HOME;
};

// Which of the copies that make a plane of a ring a thread asks for, and where each comes from in a plane in memory.
template <class F> struct Copies {
  static constexpr int COUNT = F::SIZE / W, EACH = (COUNT + Shape::THREADS - 1) / Shape::THREADS;
  long long corner;     // of the ring's cells that there are, in values
  unsigned from[EACH];  // in bytes behind it

  static __device__ __forceinline__ int number(int k) { return static_cast<int>(threadIdx.x) + k * Shape::THREADS; }
  // The same for all threads of a warp: copies that say how long caches keep them take that from registers of the warp.
  static __device__ __forceinline__ bool any(int k) { return (k + 1) * Shape::THREADS <= COUNT || number(k) < COUNT; }
  // left, top: the first cell of the ring; first, last: the rows that there are. Others are read by no cell that counts.
  __device__ __forceinline__ void place(int left, int top, int first, int last, int pitch, const Wraps& wraps) {
    const int low = min(first, 0), begin = min(left, 0);  // no place is before these, also across periodic edges
    corner = static_cast<long long>(low) * pitch + begin;
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int y = number(k) / (F::WIDTH / W), x = number(k) % (F::WIDTH / W) * W;
      const int line = wraps(min(max(top + y, first), last), 1) - low;
      from[k] = (static_cast<unsigned>(line) * static_cast<unsigned>(pitch) + (wraps(left + x, 2) - begin)) * sizeof(R);
    }
  }
};

// The accesses of a ring's plane that lie beyond periodic edges, which tensor copies leave empty. from: where those of a
// thread are in a plane in memory; to: where in the ring.
constexpr int NOTHING = -0x7fffffff - 1;
template <class F, bool PACED = Shape::PACED> struct Beyond;

// Where blocks keep in step, the slowest warp holds them all up: threads go through all accesses of a plane, so that each warp
// has a few of these, and all blocks carry out the same instructions.
template <class F> struct Beyond<F, true> {
  static constexpr int EACH = (F::WIDTH * F::HEIGHT / W + Shape::THREADS - 1) / Shape::THREADS;
  int from[EACH];

  static __device__ __forceinline__ int number(int k) { return static_cast<int>(threadIdx.x) + k * Shape::THREADS; }
  static __device__ __forceinline__ int to(int k) { return number(k) * W; }
  // Whether there may be any; left, top: the first cell of the ring; low, bottom, right: where the rows and columns that are
  // read begin and end.
  __device__ __forceinline__ bool place(int left, int top, int low, int bottom, int right, int pitch, const Wraps& wraps) {
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int y = top + number(k) / (F::WIDTH / W), x = left + number(k) % (F::WIDTH / W) * W;
      const bool here = (wraps.crossed(y, 1) || wraps.crossed(x, 2)) && y >= low && y < bottom && x < right;
      from[k] = here ? wraps(y, 1) * pitch + wraps(x, 2) : NOTHING;
    }
    return true;
  }
};

// Else the fewest instructions are best: the last threads have those of columns, in all rows that are read, then those of rows.
template <class F> struct Beyond<F, false> {
  typedef typename F::NEED Need;
  static constexpr int COLUMNS = (W - 1 - Need::lo(2)) / W + (Need::hi(2) + W - 1) / W;
  static constexpr int MOST = F::HEIGHT * COLUMNS + F::WIDTH / W * (Need::hi(1) - Need::lo(1));
  static constexpr int EACH = MOST > Shape::THREADS ? (MOST + Shape::THREADS - 1) / Shape::THREADS : 1;
  int from[EACH], places[EACH];

  __device__ __forceinline__ int to(int k) const { return places[k]; }
  __device__ __forceinline__ bool place(int left, int top, int low, int bottom, int right, int pitch, const Wraps& wraps) {
    const int rows = bottom - low, across = (right - left) / W;
    const int before = wraps.before(left, 2) / W, above = wraps.before(low, 1);
    const int columns = rows * (before + wraps.behind(right, 2) / W);
    const int count = columns + across * (above + wraps.behind(bottom, 1));
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      const int n = (k + 1) * Shape::THREADS - 1 - static_cast<int>(threadIdx.x);
      from[k] = NOTHING;
      if (n >= count) continue;
      int y, x;
      if (n < columns) {
        x = n / rows, y = n - x * rows + low;
        x = x < before ? left + x * W : wraps.cells[2] + (x - before) * W;
      } else {
        y = (n - columns) / across, x = left + (n - columns - y * across) * W;
        y = y < above ? low + y : wraps.cells[1] + y - above;
      }
      places[k] = (y - top) * F::WIDTH + (x - left), from[k] = wraps(y, 1) * pitch + wraps(x, 2);
    }
    return count > 0;
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

  // Whether the n-th of a thread's cells may lie outside the columns of BOX, as cells begin at a multiple of W.
  static __device__ __forceinline__ constexpr bool outside(int n) {
    bool found = false;
    for (int k = 0; k < W; ++k) {
      found = found || (HOME::lo(2) + k < BOX::lo(2) && (HOME::lo(2) + k - n) % W == 0);
      found = found || (HOME::hi(2) - 1 - k >= BOX::hi(2) && (HOME::hi(2) - 1 - k - n) % W == 0);
    }
    return found;
  }
};

// What an update reads: a ring's value at an offset; a coefficient that varies along one axis.
template <class Ring, int Z, int Y, int X> struct Read {};
template <int FIELD, int AXIS, int OFFSET> struct Along {};
// What a thread keeps of a coefficient that varies along rows or columns: the same in all planes.
template <int FIELD, int AXIS, int OFFSET> struct Profile;
template <int FIELD, int OFFSET> struct Profile<FIELD, 1, OFFSET> {
  R value[Shape::ROWS_EACH];

  __device__ __forceinline__ void load(const Arguments& a, int y, int) {
#pragma unroll
    for (int r = 0; r < Shape::ROWS_EACH; ++r) value[r] = __ldg(a.fields[FIELD].slot[0] + y + r + OFFSET);
  }
};
template <int FIELD, int OFFSET> struct Profile<FIELD, 2, OFFSET> {
  Cells value;

  __device__ __forceinline__ void load(const Arguments& a, int, int x) {
#pragma unroll
    for (int n = 0; n < W; ++n) value.v[n] = __ldg(a.fields[FIELD].slot[0] + x + n + OFFSET);
  }
};
// The same of a correction: a field in memory; the K-th of the values that it asked for before.
template <int FIELD> struct Here {};
template <int K> struct Mine {};
// Columns of layers; a cell of a plane.
template <int FROM_, int END_> struct Columns { static constexpr int FROM = FROM_, END = END_; };
struct Place { int y, x; };

// What a correction makes as its N-th value: a field of the layer alone, in memory; what a node has made, in place, as M
// describes, and in a ring (void: nobody reads it there). What a node gives to a ring for that.
template <int N_, int FIELD> struct Own { static constexpr int N = N_; };
template <int N_, class M, class Ring> struct InPlace { static constexpr int N = N_; };
template <int PLACE, class Ring> struct Given {};

// Whether a correction that makes a list of values changes what a node makes as M describes.
template <class M, class T> struct Changes { static constexpr bool value = false; };
template <class M, int K, class Ring> struct Changes<M, InPlace<K, M, Ring>> { static constexpr bool value = true; };
template <class M, class... T> __device__ __forceinline__ constexpr bool changes(List<T...>) {
  return (... || Changes<M, T>::value);
}

template <class A, class B> struct Same { static constexpr bool value = false; };
template <class A> struct Same<A, A> { static constexpr bool value = true; };

// Kernels on neighbouring devices keep step with each other: counters, and rows stored into ghost cells.
//
// Devices own slabs along axis 0. A tile within BOUNDARY_ROWS of a neighbour's slab lies in the boundary region: before
// it computes it awaits the neighbour's counter, after it has computed it stores what the neighbour needs of its rows
// into the neighbour's ghost cells and adds one to its counter. All `expected` boundary tiles of that neighbour have
// read their ghost cells and put their rows: so the same counter says that ghost cells may be read, and that they may
// be overwritten.
//
// A counter is a pair of words, for even and for odd passes. Blocks of one kernel may signal pass p + 1 while another
// has not yet signalled pass p, so that one sum over both would not say that pass p is complete. Nobody signals pass
// p + 2 before all have signalled p: a block comes to the barrier at the end of p + 1 after it has signalled p.
//
// Whoever waits looks at the fault log, stops when anybody else stopped or its timeout ends, and says there what it
// waited for (see `faults.cuh`). All of this runs before and after the tile's own loop and costs it no register.
#include "bounds.cuh"
#include "faults.cuh"

constexpr unsigned LOOKS = 1 << 13;  // at a counter, between two at the fault log: that lies in host memory, and reading
// it every 256 looks made tiles on multiprocessors whose other blocks waited 14 times slower

struct Side { const long long* local; long long* remote; long long expected; long long op; Field fields[FIELD_COUNT]; };
struct Exchange {
  Side side[2];
  long long passed; long long timeout; long long* fault_log; long long record; long long op;
  long long* begun; long long last;
#ifdef WITH_NOTES
  long long* notes;
#endif
};

// A recorded run's kernels note what tiles do (see `record.cuh`), by one thread where the warp or the block has met.
#ifdef WITH_NOTES
enum Noted2D { AWAITED = -1, BEGUN = -2, COMPUTED = -3, SIGNALLED = -4, ARRIVED = -5, MET = -6 };
__device__ __noinline__ void note_tile(const Exchange& e, Noted2D what, int side, long long passed, long long seen,
                                       const Region& tile) {
  long long* const place = next_place(e.notes);
  if (!place) return;
  place[1] = e.record; place[2] = side; place[3] = passed; place[4] = seen;
  place[5] = (long long)tile.lo[0] << 32 | (unsigned)tile.lo[1];
  place[6] = (long long)tile.hi[0] << 32 | (unsigned)tile.hi[1];
  place[0] = what;
}
// The passes of a neighbour that its counter has counted, of those that a pass waits for.
__device__ __forceinline__ long long passes_seen(const Side& side, long long passed) {
  const long long odd = (passed + 1) & 1, complete = acquire_system(side.local + odd) / side.expected;
  return complete ? 2 * complete - 1 + odd : 0;
}
#define NOTE_IF(when, ...) if (when) note_tile(e, __VA_ARGS__)
#define NOTE_WARP(...) { __syncwarp(); NOTE_IF((threadIdx.x & 31) == 0, __VA_ARGS__); __syncwarp(); }
#define NOTE_BLOCK(...) { __syncthreads(); NOTE_IF(threadIdx.x == 0, __VA_ARGS__); __syncthreads(); }
#define NOTE_WAITS(when, ...) if (when) note_waits(a, e, __VA_ARGS__)
#else
#define NOTE_IF(...)
#define NOTE_WARP(...)
#define NOTE_BLOCK(...)
#define NOTE_WAITS(...)
#endif

// By one thread of each block: the last of those that a device runs at once says that they have all begun.
__device__ __forceinline__ void mark_begun(const Exchange& e, long long block) {
  if (e.begun && block == e.last) release_system(e.begun, e.passed + 1);
}

__device__ __noinline__ void abort_run(const Exchange& e, long long op, long long wanted, long long seen) {
  put_fault(e.fault_log, e.record, op, wanted, seen);
}
// Whether the neighbour's first `passed` passes are complete before the timeout ends or somebody stops.
__device__ __noinline__ bool await_neighbour(const Exchange& e, const Side& side, long long passed) {
  const long long odd = (passed + 1) & 1, wanted = (passed + 1) / 2 * side.expected, start = nanoseconds();
  for (unsigned look = 1;; ++look) {
    const long long seen = acquire_system(side.local + odd);
    if (seen >= wanted) return true;
    if (look % LOOKS) continue;
    if (!acquire_system(e.fault_log) && nanoseconds() - start < e.timeout) continue;
    const long long complete = seen / side.expected;
    abort_run(e, side.op, passed, complete ? 2 * complete - 1 + odd : 0);
    return false;
  }
}
__device__ __forceinline__ bool in_boundary(const Arguments& a, const Exchange& e, const Region& tile, int side) {
  if (!e.side[side].local) return false;
  return side ? tile.hi[0] > a.hi[0] - BOUNDARY_ROWS : tile.lo[0] < a.lo[0] + BOUNDARY_ROWS;
}
__device__ __forceinline__ bool in_boundary(const Arguments& a, const Exchange& e, const Region& tile) {
  return in_boundary(a, e, tile, 0) || in_boundary(a, e, tile, 1);
}
#ifdef WITH_NOTES
// What all of a block awaited before its first tile.
__device__ __forceinline__ void note_waits(const Arguments& a, const Exchange& e, const Region& tile, long long passed) {
  for (int side = 0; side < 2; ++side)
    NOTE_IF(in_boundary(a, e, tile, side), AWAITED, side, passed, passes_seen(e.side[side], passed), tile);
}
#endif
// By one thread: whether the neighbours let the tile begin.
__device__ __forceinline__ bool await_neighbours(const Arguments& a, const Exchange& e, const Region& tile,
                                                 long long passed) {
  bool fine = true;
  for (int side = 0; side < 2 && fine; ++side)
    if (in_boundary(a, e, tile, side)) {
      fine = await_neighbour(e, e.side[side], passed);
      NOTE_IF(fine, AWAITED, side, passed, passes_seen(e.side[side], passed), tile);
    }
  return fine;
}
// By one thread, after all stores of the pass that follows `passed` others are fenced.
__device__ __forceinline__ void signal_neighbours(const Arguments& a, const Exchange& e, const Region& tile,
                                                  long long passed) {
  for (int side = 0; side < 2; ++side)
    if (in_boundary(a, e, tile, side)) {
      NOTE_IF(true, SIGNALLED, side, passed, 0, tile);
      add_system(e.side[side].remote + (passed & 1));
    }
}
// Values of a column: all loads of a batch are on their way before the first store waits for one.
__device__ __forceinline__ void put_column(R* const to, const long long to_pitch, const R* const from,
                                           const long long pitch, const int lo, const int hi) {
  constexpr int BATCH = 8;
  for (int y = lo; y < hi; y += BATCH) {
    R v[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
      if (y + k < hi) v[k] = from[(y + k) * pitch];
#pragma unroll
    for (int k = 0; k < BATCH; ++k)
      if (y + k < hi) to[(y + k) * to_pitch] = v[k];
  }
}
// By many threads: the rows that the neighbours need, in one loop for all fields: neighbours wait for its text as well.
__device__ __forceinline__ void put_halos(const Arguments& a, const Exchange& e, const Region& tile, const int target,
                                          const int thread, const int threads) {
#pragma unroll 1
  for (int side = 0; side < 2; ++side) {
    if (!in_boundary(a, e, tile, side)) continue;
    const Side& there = e.side[side];
#pragma unroll 1
    for (const Halo& halo : HALOS) {
      const int lo = max(side ? a.hi[0] - halo.down : a.lo[0], max(tile.lo[0], halo.first));
      const int hi = min(side ? a.hi[0] : a.lo[0] + halo.up, min(tile.hi[0], halo.last));
      const int right = min(tile.hi[1], halo.right);
      if (lo >= hi) continue;
      const Field &from = a.fields[halo.field], &to = there.fields[halo.field];
#pragma unroll 1
      for (int x = max(tile.lo[1], halo.left) + thread; x < right; x += threads)
        put_column(to.slot[target] + x, to.pitch[0], from.slot[target] + x, from.pitch[0], lo, hi);
    }
  }
}

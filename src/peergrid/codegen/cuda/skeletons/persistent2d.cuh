// All passes of a run in one cooperative kernel on each device, for grids so small that launches would cost most.
//
// A block takes *units*: a boundary tile for the whole block (`block2d.cuh`), or an interior tile for each of its warps
// (`stream2d.cuh`), those of the boundary region first; on the smallest grids all tiles are boundary tiles. Between
// passes the blocks of a device use a barrier in its memory; devices keep step through the counters of
// `exchange2d.cuh` alone, each with its neighbours only, so that the way across hides behind the barrier at home.
//
// `Arguments.source` and `target` are the slots of the first pass. The kernel has to be launched with all its blocks
// resident at once, and with no more blocks than units: every block comes to every barrier.
//
// What makes a pass see the one before, and not be overwritten by the one after:
//
// - At home: all threads of a block store, reach the block's barrier, then one thread arrives (release, GPU). One lane
//   sees that all arrived (acquire, GPU or wider, which also empties the multiprocessor's first-level cache), then the
//   block's barrier: what follows reads what others stored. A block arrives after its last read of the pass, so the
//   slot that was read may be written. Fields that a kernel writes are never read by way of the read-only path.
// - All loads and stores are of the generic proxy (`cp.async` included; bulk copies would need a proxy fence).
// - Across: threads store into the neighbour's memory, reach the barrier, then one thread signals (release, system: what it saw of
//   the others at the barrier goes before it). See `exchange2d.cuh` for why the counters are pairs.
// - Shared memory goes from a tile to the next: a boundary tile ends with a barrier, an interior tile's lanes touch
//   their own places only, and a pass ends with a barrier.
#include "exchange2d.cuh"

struct Passes {
  const Region* interior;
  const Region* boundary;
  long long interior_count, boundary_count, passes;
  long long* arrived;
  long long before;  // barriers that the blocks have met at
};

// Whether all blocks of the device arrived, before the timeout ends (later than across) or somebody stops.
__device__ __noinline__ bool await_blocks(const Exchange& e, const Passes& p, long long wanted) {
  const long long start = nanoseconds();
  for (unsigned look = 1;; ++look) {
    const long long seen = acquire_system(p.arrived);
    if (seen >= wanted) return true;
    if (look % LOOKS) continue;
    if (acquire_system(e.fault_log)) return false;
    if (nanoseconds() - start < 2 * e.timeout) continue;
    abort_run(e, e.op, wanted / gridDim.x, seen / gridDim.x);
    return false;
  }
}
// By the first lanes of a block: whether the pass may begin for its first unit. sides: where that borders a neighbour.
__device__ __forceinline__ bool await_pass(const Exchange& e, const Passes& p, int lane, int sides, long long pass) {
  if (lane && !(sides & lane)) return true;
  const Side& side = e.side[lane == 2];
  const long long passed = e.passed + pass;
  const long long* const counter = lane ? side.local + ((passed + 1) & 1) : p.arrived;
  const long long wanted = lane ? (passed + 1) / 2 * side.expected : (p.before + pass) * gridDim.x;
  for (int look = 0; look < 1 << 12; ++look)
    if (acquire_system(counter) >= wanted) return true;
  return lane ? await_neighbour(e, side, passed) : await_blocks(e, p, wanted);
}

// In place of interior tiles where there are none.
struct NoTiles {
  static constexpr bool ANY = false;
  static constexpr int WARP_BYTES = 0;
};

// STEPS: of a pass; WARPS: of a block; HEAD, ROOM: bytes of shared memory before the block's first tiles, and before
// what tiles use.
template <int STEPS, int WARPS, int HEAD, int ROOM, class Interior, class Boundary>
__device__ __forceinline__ void all_passes(const Arguments& a, const Exchange& e, const Passes& p, unsigned char* shared) {
  volatile int* const stop = reinterpret_cast<int*>(shared);
  Region* const first = reinterpret_cast<Region*>(shared + HEAD);
  unsigned char* const room = shared + ROOM;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const long long units = p.boundary_count + (p.interior_count + WARPS - 1) / WARPS;
  const bool begins_with_boundary = blockIdx.x < p.boundary_count;
  if (threadIdx.x == 0) *stop = 0;
  if (lane == 0) {
    const long long number = (blockIdx.x - p.boundary_count) * WARPS + warp;
    if (begins_with_boundary) first[warp] = p.boundary[blockIdx.x];
    else if (number < p.interior_count) first[warp] = p.interior[number];
    else first[warp] = p.interior[p.interior_count - 1];
  }
  __syncthreads();
  int sides = 0;
  for (int n = 0; n < WARPS; ++n)
    for (int side = 0; side < 2; ++side) sides |= in_boundary(a, e, first[n], side) << side;
  for (long long pass = 0; pass < p.passes; ++pass) {
    const int source = pass & 1 ? a.target : a.source, target = pass & 1 ? a.source : a.target;
    const long long step = now(a) + pass * STEPS, passed = e.passed + pass;
    if (threadIdx.x < 3 && !await_pass(e, p, threadIdx.x, sides, pass)) *stop = 1;
    __syncthreads();
    if (*stop) return;
    NOTE_BLOCK(MET, 0, passed, 0, first[0]);
    for (long long unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const bool begun = unit == blockIdx.x, last = unit + gridDim.x >= units;
      if (unit < p.boundary_count) {
        const Region tile = begun ? first[0] : p.boundary[unit];
        if (!begun) {
          if (threadIdx.x == 0 && !await_neighbours(a, e, tile, passed)) *stop = 1;
          __syncthreads();
          if (*stop) return;
        }
        NOTE_WAITS(begun && threadIdx.x == 0, tile, passed);
        NOTE_BLOCK(BEGUN, 0, passed, 0, tile);
        block2d_tile<Boundary>(a, e, tile, source, target, step, room);
        NOTE_BLOCK(COMPUTED, 0, passed, 0, tile);
        NOTE_IF(last && threadIdx.x == 0, ARRIVED, 0, passed, 0, tile);
        if (last && threadIdx.x == 0) arrive_device(p.arrived);
        if (threadIdx.x == 32 && in_boundary(a, e, tile)) signal_neighbours(a, e, tile, passed);
        continue;
      }
      // A unit of interior tiles; a block comes to the barrier at home before it stores across.
      if constexpr (Interior::ANY) {
        const long long number = (unit - p.boundary_count) * WARPS + warp;
        bool borders = false;
        if (number < p.interior_count) {
          const Region tile = begun ? first[warp] : p.interior[number];
          int fine = 1;
          if (!begun) {
            if (lane == 0) fine = await_neighbours(a, e, tile, passed);
            __syncwarp();
            fine = __shfl_sync(0xffffffffu, fine, 0);
          }
          if (fine) {
            NOTE_WAITS(begun && lane == 0, tile, passed);
            NOTE_WARP(BEGUN, 0, passed, 0, tile);
            Interior::advance(a, tile, source, target, step, room + warp * Interior::WARP_BYTES);
            pg_await<0>();  // rows that it asked for and did not need
            NOTE_WARP(COMPUTED, 0, passed, 0, tile);
            borders = in_boundary(a, e, tile);
          } else {
            *stop = 1;
          }
        }
        if (last) {
          __syncthreads();
          NOTE_IF(threadIdx.x == 0, ARRIVED, 0, passed, 0, first[0]);
          if (threadIdx.x == 0) arrive_device(p.arrived);
        }
        if (borders) {
          const Region tile = begun ? first[warp] : p.interior[number];
          __syncwarp();
          put_halos(a, e, tile, target, lane, 32);
          __syncwarp();
          if (lane == 0) signal_neighbours(a, e, tile, passed);
        }
      }
    }
    __syncthreads();
    if (*stop) return;
  }
}

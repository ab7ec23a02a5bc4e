// A reduction: the values of an expression on many cells become a few numbers, in the order of `codegen.reductions`.
//
// A thread block makes one group of 64 leaves, each of its warps every eighth leaf: at most 1024 cells of a row, of
// which a lane takes four neighbours, then the four that are 128 cells on, and so on, with several loads under way.
// Where the device has a part of a group only, the results of the leaves are left for the
// host; where it has a part of a leaf only, the values of the cells.
//
// `Cell` gives the expression: `READS` values that it reads, how far along the row (`dx`), on which row each of them lies
// (`rows`), and `value`.

constexpr int LEAF = 1024, GROUP = 64, LANE_CELLS = 4, WARP_CELLS = 32 * LANE_CELLS, LOADS = LEAF / WARP_CELLS;
constexpr int REDUCE_WARPS = 8;

// Where results go. A record holds the results of all groups of which the device has a part, then those of the leaves
// of the first and the last of them if it has not the whole, then the values of the cells of the first and last leaf.
struct Reduced {
  double* records;
  long long record;       // doubles in one
  long long first, last;  // groups of which the device has a part: first <= group < last
  long long begin, end;   // those of which it has the whole
  int every;              // steps between two records
  int edges;              // 1 if leaves may be cut
};

struct alignas(LANE_CELLS * sizeof(R)) Four {
  R of[LANE_CELLS];
};

enum Kind { SUM, SQUARES, LARGEST, SMALLEST };

template <int KIND> __device__ __forceinline__ double neutral() {
  if (KIND == LARGEST) return __longlong_as_double(0xfff0000000000000ll);
  if (KIND == SMALLEST) return __longlong_as_double(0x7ff0000000000000ll);
  return 0.0;
}
template <int KIND> __device__ __forceinline__ double combine(double one, double two) {
  if (KIND == LARGEST) return pg_max(one, two);
  if (KIND == SMALLEST) return pg_min(one, two);
  return one + two;
}
template <int KIND> __device__ __forceinline__ double term(double value) { return KIND == SQUARES ? value * value : value; }

// A cell's place on a row of `count` cells that may end in reflecting edges.
template <bool REFLECTS> __device__ __forceinline__ int folded(int x, int count) {
  return REFLECTS ? pg_mirror(x, count) : x;
}

// What the expression reads for one cell.
template <class Cell> __device__ __forceinline__ void read(const R* const (&rows)[Cell::READS], int x, R (&v)[Cell::READS]) {
#pragma unroll
  for (int n = 0; n < Cell::READS; ++n)
    v[n] = rows[n][Cell::varies(n) ? folded<Cell::REFLECTS>(x + Cell::dx(n), Cell::COLUMNS) : 0];
}

// The same for four neighbours, all of which read inside the grid: aligned reads are one access.
template <class Cell>
__device__ __forceinline__ void read_four(const R* const (&rows)[Cell::READS], int x, Four (&v)[Cell::READS]) {
#pragma unroll
  for (int n = 0; n < Cell::READS; ++n) {
    if (Cell::wide(n)) {
      v[n] = *reinterpret_cast<const Four*>(rows[n] + x + Cell::dx(n));
    } else {
#pragma unroll
      for (int k = 0; k < LANE_CELLS; ++k) v[n].of[k] = rows[n][Cell::varies(n) ? x + k + Cell::dx(n) : 0];
    }
  }
}

// Those of the cells begin <= x < end that belong to some loads of a lane, one by one.
template <class Cell>
__device__ __forceinline__ void some_cells(const Arguments& a, const R* const (&rows)[Cell::READS], int first, int begin,
                                           int end, int load, int last, double (&found)[LANE_CELLS]) {
  constexpr int KIND = Cell::KIND;
#pragma unroll 1
  for (; load < last && first + load * WARP_CELLS < end; ++load) {
    const int x = first + load * WARP_CELLS + (int)(threadIdx.x % 32) * LANE_CELLS;
#pragma unroll
    for (int k = 0; k < LANE_CELLS; ++k) {
      if (x + k < begin || x + k >= end) continue;
      R one[Cell::READS];
      read<Cell>(rows, x + k, one);
      found[k] = combine<KIND>(found[k], term<KIND>(Cell::value(a, one)));
    }
  }
}

// The result of the cells begin <= x < end of the leaf that begins at `first`; lane 0 has it.
template <class Cell>
__device__ __forceinline__ double leaf(const Arguments& a, const R* const (&rows)[Cell::READS], int first, int begin,
                                       int end) {
  constexpr int KIND = Cell::KIND;
  const int lane = threadIdx.x % 32;
  double found[LANE_CELLS];
#pragma unroll
  for (int k = 0; k < LANE_CELLS; ++k) found[k] = neutral<KIND>();
  // The loads of which all cells count and read inside the grid, between those of which some do.
  const int from = max(begin, Cell::LEFT), to = min(end, Cell::COLUMNS - Cell::RIGHT);
  const int whole = (from - first + WARP_CELLS - 1) / WARP_CELLS, rest = max(whole, (to - first) / WARP_CELLS);
  some_cells<Cell>(a, rows, first, begin, end, 0, min(whole, LOADS), found);
#pragma unroll (Cell::UNROLL)
  for (int load = whole; load < rest; ++load) {
    Four v[Cell::READS];
    read_four<Cell>(rows, first + load * WARP_CELLS + lane * LANE_CELLS, v);
#pragma unroll
    for (int k = 0; k < LANE_CELLS; ++k) {
      R one[Cell::READS];
#pragma unroll
      for (int n = 0; n < Cell::READS; ++n) one[n] = v[n].of[k];
      found[k] = combine<KIND>(found[k], term<KIND>(Cell::value(a, one)));
    }
  }
  some_cells<Cell>(a, rows, first, begin, end, rest, LOADS, found);
  double result = combine<KIND>(combine<KIND>(found[0], found[1]), combine<KIND>(found[2], found[3]));
#pragma unroll
  for (int half = 16; half; half /= 2) result = combine<KIND>(result, __shfl_down_sync(0xffffffffu, result, half));
  return result;
}

// The values of cells of a leaf that another device has a part of, in their places.
template <class Cell>
__device__ __forceinline__ void values(const Arguments& a, const R* const (&rows)[Cell::READS], int first, int begin,
                                       int end, double* to) {
  for (int x = begin + (int)(threadIdx.x % 32); x < end; x += 32) {
    R one[Cell::READS];
    read<Cell>(rows, x, one);
    to[x - first] = Cell::value(a, one);
  }
}

template <class Cell> __device__ __forceinline__ void reduce(const Arguments& a, const Reduced& r, double* results) {
  constexpr int KIND = Cell::KIND, LAST = Cell::AXES - 1;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const long long group = r.first + blockIdx.x;
  double* const record = r.records + (unsigned(now(a)) / unsigned(r.every) - 1) * r.record;
  double* const leaves = record + (r.last - r.first) + (group == r.first ? 0 : GROUP);
  double* const cells = record + (r.last - r.first) + 2 * GROUP;
  for (int n = warp; n < GROUP; n += REDUCE_WARPS) {
    const unsigned number = unsigned(group) * GROUP + n, row = number / Cell::LEAVES;
    const int first = int(number % Cell::LEAVES) * LEAF, i = row / Cell::LINES, j = row % Cell::LINES;
    const bool here = Cell::AXES == 1 ? row == 0
                    : Cell::AXES == 2 ? i >= a.lo[0] && i < a.hi[0]
                                      : i >= a.lo[0] && i < a.hi[0] && j >= a.lo[1] && j < a.hi[1];
    const int counted = max(first, Cell::FROM), until = min(first + LEAF, Cell::TO);
    const int begin = max(counted, a.lo[LAST]), end = min(until, a.hi[LAST]);
    double result = neutral<KIND>();
    if (here && begin < end) {
      const R* rows[Cell::READS];
      Cell::rows(a, i, j, rows);
      if (r.edges && (begin > counted || end < until))
        values<Cell>(a, rows, first, begin, end, cells + (begin > counted ? 0 : LEAF));
      else
        result = leaf<Cell>(a, rows, first, begin, end);
    }
    if (lane == 0) results[n] = result;
  }
  __syncthreads();
  if (group < r.begin || group >= r.end) {
    if (threadIdx.x < GROUP) leaves[threadIdx.x] = results[threadIdx.x];
    return;
  }
  for (int half = GROUP / 2; half; half /= 2) {
    if (threadIdx.x < half) results[threadIdx.x] = combine<KIND>(results[threadIdx.x], results[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x == 0) record[group - r.first] = results[0];
}

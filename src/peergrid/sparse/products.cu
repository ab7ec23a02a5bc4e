// Rows of a sparse matrix times a vector. The products of a row are added one by one in the order in which its nonzeros
// are stored, by one thread: so its sum has the same bits wherever it is made. Vectors begin at the place of cell 0.

typedef unsigned int u32;

constexpr int THREADS = 256, SLICE = 32;
constexpr u32 NONE = 0xffffffffu;  // the column of a place that holds no nonzero

// The rows of a device, and beyond as far as slices go.
struct Matrix {
  const u32* starts;   // of rows, or of slices: places of their first nonzeros; one more for the end
  const u32* columns;
  const R* values;
  long long first;     // the row, or slice, of starts[0]
};

// Nonzeros of a row after another (CSR). A block fetches the nonzeros of its rows in their order, whatever rows they
// belong to, a round of them at a time, and leaves their products in shared memory, where each row's thread adds its
// own. It is the stream of J. L. Greathouse and M. Daga, "Efficient sparse matrix-vector multiplication on GPUs using the
// CSR storage format", SC14, for rows of any length.
constexpr int EACH = 32 / sizeof(R), ROUND = EACH * THREADS;  // products of a thread, and of a block, in a round

// The place of a product: rows of 16 or 32 nonzeros would else begin in the same bank of shared memory.
__device__ __forceinline__ int place(int product) { return product + product / (int)(128 / sizeof(R)); }

__device__ __forceinline__ void round_of(const Matrix& m, const R* x, u32 base, u32 left, R* products) {
  u32 columns[EACH];
  R values[EACH];
#pragma unroll
  for (int k = 0; k < EACH; ++k) {
    const u32 at = k * THREADS + threadIdx.x;
    columns[k] = at < left ? __ldcs(m.columns + base + at) : NONE;
    values[k] = at < left ? __ldcs(m.values + base + at) : R(0);
  }
#pragma unroll
  for (int k = 0; k < EACH; ++k)
    if (columns[k] != NONE) products[place(k * THREADS + threadIdx.x)] = values[k] * __ldg(x + columns[k]);
}

extern "C" __global__ void __launch_bounds__(256) multiply_rows(const __grid_constant__ Arguments a,
                                                                const __grid_constant__ Matrix m) {
  extern __shared__ __align__(128) unsigned char shared[];
  R* const products = reinterpret_cast<R*>(shared);
  const R* const x = a.fields[0].slot[a.source];
  const u32* const starts = m.starts - m.first;
  const int first = a.lo[0] + (int)blockIdx.x * THREADS, last = min(first + THREADS, a.hi[0]);
  const int row = first + (int)threadIdx.x;
  const u32 end = starts[last];
  u32 next = row < last ? starts[row] : end;
  const u32 until = row < last ? starts[row + 1] : end;
  R total = R(0);
  for (u32 base = starts[first]; base < end; base += min(end - base, (u32)ROUND)) {
    const u32 left = min(end - base, (u32)ROUND);
    round_of(m, x, base, left, products);
    __syncthreads();
    for (const u32 stop = min(until, base + left); next < stop; ++next) total += products[place((int)(next - base))];
    __syncthreads();
  }
  if (row < last) a.fields[0].slot[a.target][row] = total;
}

// Slices of 32 rows, of which nonzero k of all comes after nonzero k - 1 of all, as many as the longest row has (sliced
// ELLPACK: A. Monakov, A. Lokhmotov and A. Avetisyan, "Automatically tuning sparse matrix-vector multiplication for GPU
// architectures", HiPEAC 2010). A thread has a row.
constexpr int AHEAD = 4;  // nonzeros that a thread fetches at a time

template <int COUNT> __device__ __forceinline__ R added(const Matrix& m, const R* x, u32 at, R total) {
  u32 columns[COUNT];
  R values[COUNT], others[COUNT];
#pragma unroll
  for (int k = 0; k < COUNT; ++k) {
    columns[k] = __ldcs(m.columns + at + k * SLICE);
    values[k] = __ldcs(m.values + at + k * SLICE);
  }
#pragma unroll
  for (int k = 0; k < COUNT; ++k) others[k] = columns[k] == NONE ? R(0) : __ldg(x + columns[k]);
#pragma unroll
  for (int k = 0; k < COUNT; ++k)
    if (columns[k] != NONE) total += values[k] * others[k];
  return total;
}

extern "C" __global__ void __launch_bounds__(256) multiply_slices(const __grid_constant__ Arguments a,
                                                                  const __grid_constant__ Matrix m) {
  const int row = a.lo[0] / SLICE * SLICE + (int)(blockIdx.x * THREADS + threadIdx.x);
  if (row < a.lo[0] || row >= a.hi[0]) return;
  const R* const x = a.fields[0].slot[a.source];
  const u32* const starts = m.starts + (row / SLICE - m.first);
  const u32 begin = starts[0], end = starts[1];
  u32 at = begin;
  R total = R(0);
  for (; at + AHEAD * SLICE <= end; at += AHEAD * SLICE) total = added<AHEAD>(m, x, at + row % SLICE, total);
  for (; at < end; at += SLICE) total = added<1>(m, x, at + row % SLICE, total);
  a.fields[0].slot[a.target][row] = total;
}

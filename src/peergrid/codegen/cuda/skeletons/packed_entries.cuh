// Look-ups of neighbouring cells: see `entries.cuh`.
template <int COUNT> __device__ __forceinline__ Cells pg_entry(const R* table, const Cells& index) {
  Cells found;
#pragma unroll
  for (int n = 0; n < W; ++n) found.v[n] = pg_entry<COUNT>(table, index.v[n]);
  return found;
}

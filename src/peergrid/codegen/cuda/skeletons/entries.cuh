// Look-ups in a table of COUNT entries: the entry of the whole number not above an index, or the nearest one.
template <int COUNT, typename R> __device__ __forceinline__ R pg_entry(const R* table, R index) {
  const R last = COUNT - 1;
  const R above = index > 0 ? index : R(0);
  return __ldg(table + static_cast<int>(above < last ? above : last));
}

// What the boundary tiles of a 2D pass do with whole rows: to and from shared memory. See `blocked2d.edge`.

// A row of a field into its ring of DEPTH rows, STRIDE values apart; zero where there is no such cell.
template <int FIELD, int DEPTH, int STRIDE>
__device__ __forceinline__ void load_row(const Arguments& a, R* const ring, int source, int row, int x0, int width) {
  for (int c = threadIdx.x & 31; c < width; c += 32) {
    R* const to = ring + pg_place<DEPTH>(row) * STRIDE + c;
    const int x = x0 + c;
    if (row >= known_from<FIELD, 0>(a) && row < known_to<FIELD, 0>(a) && x >= known_from<FIELD, 1>(a) &&
        x < known_to<FIELD, 1>(a))
      pg_fetch<sizeof(R)>(to, a.fields[FIELD].slot[STATE[FIELD] ? source : 0] + (row * a.fields[FIELD].pitch[0] + x));
    else
      *to = R(0);
  }
}

// The values of a profile from `begin` on; beyond its ends the nearest, which is never used. MIRROR: the values that an
// axis which reflects has, else 0.
template <int FIELD, int COUNT, int THREADS, int MIRROR = 0>
__device__ __forceinline__ void load_profile(const Arguments& a, R* const to, int begin) {
  constexpr int axis = PROFILE[FIELD];
  for (int i = threadIdx.x; i < COUNT; i += THREADS) {
    const int at = MIRROR ? pg_mirror(begin + i, MIRROR) : begin + i;
    to[i] = a.fields[FIELD].slot[0][pg_clamp(at, known_from<FIELD, axis>(a), known_to<FIELD, axis>(a))];
  }
}

// What a row has between two rows and two columns of the grid, to memory.
__device__ __forceinline__ void store_row(const Field& field, int target, const R* const row, int x0, int y, int top,
                                          int bottom, int left, int right) {
  if (y >= top && y < bottom)
    for (int x = left + (threadIdx.x & 31); x < right; x += 32)
      field.slot[target][y * field.pitch[0] + x] = row[x - x0];
}

// A field's row to the receivers on it.
__device__ __forceinline__ void record_row(const Arguments& a, const Region& tile, int field, const R* const row,
                                           int x0, int y, long long step) {
  for (int k = tile.first + (threadIdx.x & 31); k < tile.first + tile.variant; k += 32) {
    const Receiver q = a.receivers[k];
    if (q.field == field && q.cell[0] == y) a.traces[q.number * a.total_steps + step] = row[q.cell[1] - x0];
  }
}

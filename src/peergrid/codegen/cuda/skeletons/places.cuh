// Where updates apply, places across the grid's edges, and receivers of what no step changes: for tiles that ask.

// The cells of an update: where they begin, as a constant or, of one that may lie elsewhere in the next run, as the
// number of a corner; how many they are along each axis.
struct UpdateBox { int corner, begin[AXES], shape[AXES]; };

template <int AXIS> __device__ __forceinline__ int wrapped(int at) {
  return GRID_WRAPS[AXIS] ? pg_wrap(at, GRID_SHAPE[AXIS]) : at;
}
template <int AXIS> __device__ __forceinline__ int mirrored(int at) {
  return GRID_MIRRORS[AXIS] ? pg_mirror(at, GRID_SHAPE[AXIS]) : at;
}
template <class Stage, int UPDATE, int AXIS> __device__ __forceinline__ int begin_of(const Arguments& a) {
  constexpr UpdateBox box = Stage::BOXES[UPDATE];
  if constexpr (box.corner < 0)
    return box.begin[AXIS];
  else
    return a.corners[box.corner][AXIS];
}
// Whether a cell, as `wrapped` gives it, lies in an update's box along an axis.
template <class Stage, int UPDATE, int AXIS> __device__ __forceinline__ bool inside(const Arguments& a, int at) {
  constexpr UpdateBox box = Stage::BOXES[UPDATE];
  constexpr int count = box.shape[AXIS];
  if constexpr (GRID_WRAPS[AXIS] && box.corner < 0 && count == GRID_SHAPE[AXIS])
    return true;
  else
    return at >= begin_of<Stage, UPDATE, AXIS>(a) && at < begin_of<Stage, UPDATE, AXIS>(a) + count;
}

// Receivers of coefficients in a tile, by one thread for a step.
template <int FIELD> __device__ __forceinline__ void record_constant(const Arguments& a, const Receiver& q, long long step) {
  if constexpr (RECORDED[FIELD] && !STATE[FIELD]) {
    constexpr int axis = PROFILE_AXIS[FIELD];
    const long long place = axis < 0 ? q.cell[0] * a.fields[FIELD].pitch[0] + q.cell[1] : q.cell[axis < 0 ? 0 : axis];
    if (q.field == FIELD) a.traces[q.number * a.total_steps + step] = a.fields[FIELD].slot[0][place];
  }
}
template <int... FIELD>
__device__ __forceinline__ void record_constants(const Arguments& a, const Region& tile, long long step, Numbers<FIELD...>) {
  if constexpr (((RECORDED[FIELD] && !STATE[FIELD]) || ...))
    for (int k = tile.first; k < tile.first + tile.variant; ++k) (record_constant<FIELD>(a, a.receivers[k], step), ...);
}
__device__ __forceinline__ void record_constants(const Arguments& a, const Region& tile, long long step) {
  record_constants(a, tile, step, UpTo<FIELD_COUNT>{});
}

// What a device has of fields, for kernels that ask: by the tables of a problem, which Python writes.

constexpr int FAR = 1 << 30;

// Where a device holds values of a field along an axis, for a pass.
template <int FIELD, int AXIS> __device__ __forceinline__ int known_from(const Arguments& a) {
  constexpr int below = KNOWN[FIELD][AXIS][0], least = KNOWN[FIELD][AXIS][1];
  return least == -FAR ? a.lo[AXIS] - below : max(a.lo[AXIS] - below, least);
}
template <int FIELD, int AXIS> __device__ __forceinline__ int known_to(const Arguments& a) {
  constexpr int above = KNOWN[FIELD][AXIS][2], most = KNOWN[FIELD][AXIS][3];
  return most == FAR ? a.hi[AXIS] + above : min(a.hi[AXIS] + above, most);
}

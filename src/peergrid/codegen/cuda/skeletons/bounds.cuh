// What a device has of fields, by the tables of a problem: of each field, STATE, whether it has two slots, to read and to
// write; RECORDED, whether receivers record it; PROFILE_AXIS, of one that is a profile, else -1; CONFINED, a bit if only
// some tiles touch it; KNOWN[AXES], cells read below a box, its first row or -FAR, cells read above, its last row or FAR;
// BOX[AXES], its first and last row.

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
// Whether a place from `lo` to `hi` along an axis is in a field.
template <int FIELD, int AXIS> __device__ __forceinline__ bool within(int at, int lo, int hi) {
  constexpr int least = KNOWN[FIELD][AXIS][1], most = KNOWN[FIELD][AXIS][3];
  return at >= (least == -FAR ? lo : max(lo, least)) && at < (most == FAR ? hi : min(hi, most));
}
// A value of a profile; where the device has none, the nearest, which is never used.
template <int FIELD, int AXIS> __device__ __forceinline__ R coefficient(const Arguments& a, int at) {
  return a.fields[FIELD].slot[0][pg_clamp(at, known_from<FIELD, AXIS>(a), known_to<FIELD, AXIS>(a))];
}

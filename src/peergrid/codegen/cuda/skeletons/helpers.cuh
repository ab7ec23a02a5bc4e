// Samples of signals, the step, places across an edge and in a ring.

__device__ __forceinline__ R sample(const Signal& s, long long step) { return step < s.count ? s.samples[step] : R(0); }
__device__ __forceinline__ long long now(const Arguments& a) { return a.step + (a.clock ? *a.clock : 0); }

__device__ __forceinline__ int pg_wrap(int i, int n) { i %= n; return i < 0 ? i + n : i; }
__device__ __forceinline__ int pg_mirror(int i, int n) { return i < 0 ? -1 - i : i >= n ? 2 * n - 1 - i : i; }
__device__ __forceinline__ int pg_clamp(int i, int lo, int hi) { return i < lo ? lo : i >= hi ? hi - 1 : i; }
template <int N> __device__ __forceinline__ int pg_place(int row) {
  return static_cast<int>(static_cast<unsigned>(row + (N << 20)) % N);
}

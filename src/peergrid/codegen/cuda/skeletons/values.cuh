// minimum and maximum as NumPy has them: NaN where either is NaN, the second where both are equal.
template <typename R> __device__ __forceinline__ R pg_min(R a, R b) { return a < b || a != a ? a : b; }
template <typename R> __device__ __forceinline__ R pg_max(R a, R b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ float pg_sqrt(float a) { return __fsqrt_rn(a); }
__device__ __forceinline__ double pg_sqrt(double a) { return __dsqrt_rn(a); }
__device__ __forceinline__ float pg_abs(float a) { return fabsf(a); }
__device__ __forceinline__ double pg_abs(double a) { return fabs(a); }

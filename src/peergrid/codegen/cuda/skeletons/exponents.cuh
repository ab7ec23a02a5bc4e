// 2 to the nearest whole number (the sum has it in its last digits); the exponent of a normal number; of packs, too.
__device__ __forceinline__ float pg_power_of_two(float a) {
  return __int_as_float(__float_as_int(a + 12583039.0f) << 23);
}
__device__ __forceinline__ double pg_power_of_two(double a) {
  return __longlong_as_double(__double_as_longlong(a + 6755399441056767.0) << 52);
}
__device__ __forceinline__ float pg_exponent(float a) { return float((__float_as_int(fabsf(a)) >> 23) - 127); }
__device__ __forceinline__ double pg_exponent(double a) {
  return double((__double_as_longlong(fabs(a)) >> 52) - 1023);
}
template <class C> __device__ __forceinline__ C pg_power_of_two(const C& a) {
  C found;
#pragma unroll
  for (int n = 0; n < sizeof(a.v) / sizeof(a.v[0]); ++n) found.v[n] = pg_power_of_two(a.v[n]);
  return found;
}
template <class C> __device__ __forceinline__ C pg_exponent(const C& a) {
  C found;
#pragma unroll
  for (int n = 0; n < sizeof(a.v) / sizeof(a.v[0]); ++n) found.v[n] = pg_exponent(a.v[n]);
  return found;
}

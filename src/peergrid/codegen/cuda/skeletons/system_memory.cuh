// Flags that threads of several devices see, and time; the tests on hosts put others in their place.

__device__ __forceinline__ long long acquire_system(const long long* p) {
  long long v;
  asm volatile("ld.acquire.sys.global.s64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void release_system(long long* p, long long v) {
  asm volatile("st.release.sys.global.s64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ __forceinline__ void add_system(long long* p) {
  asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
}
__device__ __forceinline__ long long add_device(long long* p) {
  long long v;
  asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], 1;" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void arrive_device(long long* p) {
  asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(p) : "memory");
}
__device__ __forceinline__ long long nanoseconds() {
  long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

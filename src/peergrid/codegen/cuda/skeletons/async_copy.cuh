// Copies of their own into shared memory; the tests on hosts put others in their place.

#if __CUDA_ARCH__ >= 800
// Copies of 16 bytes pass the first-level cache unless NEAR; shorter ones go through it.
template <int BYTES, bool NEAR = false> __device__ __forceinline__ void pg_fetch(void* to, const void* from) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (BYTES == 16 && !NEAR)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from), "n"(BYTES) : "memory");
}
__device__ __forceinline__ void pg_fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void pg_await() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
// A pointer into shared memory whose address stays in a register: else compilers read where a block's shared memory
// begins again for each row.
__device__ __forceinline__ unsigned char* pg_kept(unsigned char* shared) {
  unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("" : "+r"(place));
  return static_cast<unsigned char*>(__cvta_shared_to_generic(place));
}
#else  // no copies on their own there
template <int BYTES> struct __align__(BYTES) Bytes { unsigned v[BYTES / 4]; };
template <int BYTES, bool NEAR = false> __device__ __forceinline__ void pg_fetch(void* to, const void* from) {
  *static_cast<Bytes<BYTES>*>(to) = *static_cast<const Bytes<BYTES>*>(from);
}
__device__ __forceinline__ void pg_fetched() {}
template <int N> __device__ __forceinline__ void pg_await() {}
__device__ __forceinline__ unsigned char* pg_kept(unsigned char* shared) { return shared; }
#endif
template <int N> struct __align__(N * sizeof(R)) Pack { R v[N]; };

// Tensor copies: the hardware copies a box of a block of memory into shared memory by itself (compute capability 9.0 and
// later), as one thread asks for it. Where a box lies beyond the block, it is filled with zeros. The tests on hosts put others
// in their place.

// A block of memory as tensor copies see it, in elements of 8 bytes: the maps of its two slots; the cell with which it begins.
struct __align__(64) Tensor {
  unsigned long long map[2][16];
  int first[3];
  int unused[13];
};

#ifdef __CUDACC__
#if __CUDA_ARCH__ >= 900
// Barriers that have been started are seen by copies from here on.
__device__ __forceinline__ void pg_barriers_started() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}
// The phase of a barrier ends when so many bytes have come.
__device__ __forceinline__ void pg_barrier_expect(unsigned long long* barrier, unsigned bytes) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(place), "r"(bytes) : "memory");
}
// KEPT: the L2 cache gives up other lines first.
template <bool KEPT>
__device__ __forceinline__ void pg_copy_box(void* to, const unsigned long long* map, int x, int y, int z,
                                            unsigned long long* barrier) {
  const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(barrier));
  if constexpr (KEPT) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0;" : "=l"(policy));
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(place), "l"(map), "r"(x), "r"(y), "r"(z), "r"(at), "l"(policy) : "memory");
  } else {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
                     "r"(place), "l"(map), "r"(x), "r"(y), "r"(z), "r"(at) : "memory");
  }
}
// The same of what is stored: the L2 cache gives it up first.
template <class A> __device__ __forceinline__ void pg_store_once(void* to, const A& value) {
  static_assert(sizeof(A) == 16, "an access");
  const uint4 v = reinterpret_cast<const uint4&>(value);
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
  asm volatile("st.global.L2::cache_hint.v4.b32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w),
               "l"(policy) : "memory");
}
// What threads have written into shared memory is there before copies write there again.
__device__ __forceinline__ void pg_written() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else  // no such copies there: kernels that ask for them are not launched
__device__ __forceinline__ void pg_barriers_started() {}
__device__ __forceinline__ void pg_barrier_expect(unsigned long long*, unsigned) {}
template <bool KEPT>
__device__ __forceinline__ void pg_copy_box(void*, const unsigned long long*, int, int, int, unsigned long long*) {}
template <class A> __device__ __forceinline__ void pg_store_once(void* to, const A& value) { *static_cast<A*>(to) = value; }
__device__ __forceinline__ void pg_written() {}
#endif
#endif

// The planes that are on their way: those of a clock end a phase of one barrier. All threads wait for them in order; one asks.
struct Arrivals {
  static constexpr int COUNT = Shape::AHEAD + 1;  // a thread may still wait for those of a clock when the next are asked for
  // Clocks before they are read by which planes have come whose cells beyond periodic edges threads fetch: those copies
  // are seen behind a barrier and, where SPLIT, a clock later.
  static constexpr int EARLY = Shape::PERIODIC ? 1 + Shape::SPLIT : 0;
  unsigned long long* barriers;
  int asked = 0, awaited = 0;
  unsigned parity = 0;

  __device__ __forceinline__ explicit Arrivals(R* shared) {
    barriers = reinterpret_cast<unsigned long long*>(shared + Shape::ARRIVALS_AT);
    if constexpr (Shape::TENSOR) {
      if (threadIdx.x == 0) {
        for (int k = 0; k < COUNT; ++k) pg_barrier_start(barriers + k, 1);
        pg_barriers_started();
      }
      __syncthreads();
    }
  }
  // The barrier of the planes that are asked for next, so many bytes.
  __device__ __forceinline__ unsigned long long* expect(unsigned bytes) {
    unsigned long long* const barrier = barriers + asked;
    asked = asked + 1 < COUNT ? asked + 1 : 0;
    pg_barrier_expect(barrier, bytes);
    return barrier;
  }
  __device__ __forceinline__ void await() {
    while (!pg_barrier_passed(barriers + awaited, parity)) {}
    if (++awaited == COUNT) awaited = 0, parity ^= 1;
  }
};

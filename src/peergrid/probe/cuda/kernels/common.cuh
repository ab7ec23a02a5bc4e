// Common to all experiments: words, clocks, loads and stores with their order, and bounded waiting.

typedef unsigned int u32;
typedef unsigned long long u64;

// About two seconds: no wait in any kernel outlasts it.
#define BUDGET 4000000000ull

__device__ __forceinline__ u64 nanoseconds() {
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__device__ __forceinline__ u32 load_relaxed_sys(const u32* at) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ u32 load_acquire_sys(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ u32 load_acquire_gpu(const u32* at) {
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

__device__ __forceinline__ void store_relaxed_sys(u32* at, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ void store_release_sys(u32* at, u32 value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

__device__ __forceinline__ u32 add_acq_rel_gpu(u32* at, u32 value) {
    u32 before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(at), "r"(value) : "memory");
    return before;
}

__device__ __forceinline__ void fence_sys() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// True once `value` has come or been passed (counts may wrap); false when the budget is spent.
__device__ __forceinline__ bool reached(u32 seen, u32 value) { return (int)(seen - value) >= 0; }

__device__ inline bool await_sys(const u32* at, u32 value, u64 budget) {
    u64 begin = clock64();
    while (!reached(load_acquire_sys(at), value))
        if ((u64)clock64() - begin > budget) return false;
    return true;
}

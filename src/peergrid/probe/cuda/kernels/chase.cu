// Pointer chasing: every load gives the address of the next.

#define LOAD(modifier)                                                                             \
    __device__ __forceinline__ u64 load_##modifier(u64 at) {                                       \
        u64 next;                                                                                  \
        asm volatile("ld.global." #modifier ".u64 %0, [%1];" : "=l"(next) : "l"(at) : "memory");   \
        return next;                                                                               \
    }
LOAD(ca)
LOAD(cg)
LOAD(cv)

// One thread follows the chain `warm` times `steps` links without the clock, then once with it.
// out[0]: cycles of the timed pass; out[1]: the end of the chain, so that nothing is optimised away.
#define CHASE(modifier)                                                                            \
    extern "C" __global__ void chase_##modifier(u64 start, u32 steps, u32 warm, u64* out) {        \
        u64 at = start;                                                                            \
        for (u32 w = 0; w < warm; ++w) {                                                           \
            at = start;                                                                            \
            for (u32 i = 0; i < steps; ++i) at = load_##modifier(at);                              \
        }                                                                                          \
        u64 last = at;                                                                             \
        at = start;                                                                                \
        u64 begin = clock64();                                                                     \
        for (u32 i = 0; i < steps; ++i) at = load_##modifier(at);                                  \
        u64 end = clock64();                                                                       \
        out[0] = end - begin;                                                                      \
        out[1] = at ^ last;                                                                        \
    }
CHASE(ca)
CHASE(cg)
CHASE(cv)

// `N` independent chains in one thread, interleaved; chain k starts at starts[k].
// The clock is read after the ends of all chains are known: `at` feeds the second reading.
#define CHAINS(N)                                                                                  \
    extern "C" __global__ void chains_##N(const u64* starts, u32 steps, u64* out) {                \
        u64 at[N];                                                                                 \
        _Pragma("unroll") for (int k = 0; k < N; ++k) at[k] = starts[k];                           \
        u64 begin = clock64();                                                                     \
        for (u32 i = 0; i < steps; ++i) {                                                          \
            _Pragma("unroll") for (int k = 0; k < N; ++k) {                                        \
                u64 next;                                                                          \
                asm volatile("ld.global.cv.u64 %0, [%1];" : "=l"(next) : "l"(at[k]));              \
                at[k] = next;                                                                      \
            }                                                                                      \
        }                                                                                          \
        u64 sum = 0;                                                                               \
        _Pragma("unroll") for (int k = 0; k < N; ++k) sum ^= at[k];                                \
        out[1] = sum;                                                                              \
        __threadfence();                                                                           \
        out[0] = clock64() - begin;                                                                \
    }
CHAINS(1)
CHAINS(2)
CHAINS(4)
CHAINS(8)
CHAINS(16)
CHAINS(32)

// One chain per warp of a single block; the first thread of a warp follows it.
extern "C" __global__ void warps(const u64* starts, u32 steps, u64* out) {
    u64 at = starts[threadIdx.x / 32];
    __syncthreads();
    u64 begin = clock64();
    if (threadIdx.x % 32 == 0) {
        for (u32 i = 0; i < steps; ++i) at = load_cv(at);
        out[1 + threadIdx.x / 32] = at;
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// A chain of loads, and own work beside each: `sums` times 16 dependent additions, issued while the load is on its way.
// out[0]: cycles; out[1]: the end of the chain.
#define BESIDE(name, load)                                                                         \
    extern "C" __global__ void beside_##name(u64 start, u32 steps, u32 sums, float q, u64* out) {  \
        u64 at = start;                                                                            \
        float p = q;                                                                               \
        u64 begin = clock64();                                                                     \
        for (u32 i = 0; i < steps; ++i) {                                                          \
            u64 next = load;                                                                       \
            for (u32 s = 0; s < sums; ++s) {                                                       \
                _Pragma("unroll") for (int k = 0; k < 16; ++k) p = added(p, q);                    \
            }                                                                                      \
            at = next;                                                                             \
        }                                                                                          \
        out[1] = at + (p == 0.5f);                                                                 \
        __threadfence();                                                                           \
        out[0] = clock64() - begin;                                                                \
    }
__device__ __forceinline__ float added(float p, float q) {
    asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(p) : "f"(q));
    return p;
}
BESIDE(load, load_cv(at))
BESIDE(nothing, at)

// Loads one after the other from places that are known beforehand, each fetched `distance` places ahead.
// The high bits of what is read are zero, and lead to the next.
#define AHEAD(name, fetch)                                                                         \
    extern "C" __global__ void ahead_##name(u64 base, u32 count, u32 stride, u32 distance, u64* out) { \
        u64 seen = 0, begin = clock64();                                                           \
        for (u32 i = 0; i < count; ++i) {                                                          \
            const u64 later = base + (u64)(i + distance < count ? i + distance : i) * stride;      \
            fetch;                                                                                 \
            seen = load_ca(base + (u64)i * stride + (seen >> 63));                                 \
        }                                                                                          \
        out[1] = seen;                                                                             \
        __threadfence();                                                                           \
        out[0] = clock64() - begin;                                                                \
    }
__device__ __forceinline__ void fetch_l1(u64 at) { asm volatile("prefetch.global.L1 [%0];" ::"l"(at) : "memory"); }
__device__ __forceinline__ void fetch_l2(u64 at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory"); }
AHEAD(nothing, (void)later)
AHEAD(l1, fetch_l1(later))
AHEAD(l2, fetch_l2(later))

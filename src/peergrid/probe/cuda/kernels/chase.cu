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

// Sums of doubles on a tree that depends on their number alone: chunks of `chunk` pairs, each summed by a block of
// THREADS threads, and the sums of the chunks by one block. Whoever sums a chunk, on whatever GPU, the bits are the same.

#define THREADS 256
#define FLIGHT 8  // loads of a thread at a time

// The sum over the block, in its first thread.
__device__ __forceinline__ double block_sum(double own) {
    __shared__ double warps[THREADS / 32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) own += __shfl_down_sync(~0u, own, step);
    __syncthreads();  // the sums before have been read
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
    __syncthreads();
    double sum = warps[0];
#pragma unroll
    for (int w = 1; w < THREADS / 32; ++w) sum += warps[w];
    return sum;
}

__device__ __forceinline__ double chunk_sum(const double2* from, u32 pairs) {
    double own = 0.0;
    u32 i = threadIdx.x;
    for (; i + (FLIGHT - 1) * THREADS < pairs; i += THREADS * FLIGHT) {
        double2 v[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) v[k] = from[i + k * THREADS];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) own += v[k].x + v[k].y;
    }
    for (; i < pairs; i += THREADS) own += from[i].x + from[i].y;
    return block_sum(own);
}

// The sums of all chunks that begin in `pairs`, to partials[0], partials[1], …
__device__ __forceinline__ void sum_chunks(const double2* from, u64 pairs, u32 chunk, volatile double* partials) {
    for (u64 c = blockIdx.x; c * chunk < pairs; c += gridDim.x) {
        const u64 left = pairs - c * chunk;
        const double sum = chunk_sum(from + c * chunk, left < chunk ? (u32)left : chunk);
        if (threadIdx.x == 0) partials[c] = sum;
    }
}

// A thread's part of the chunks' sums from `first` to `last`, added to what it has of those before: many loads at a time,
// added in their order. A thread has every THREADS-th of all, wherever `first` lies.
__device__ __forceinline__ double added(double own, const volatile double* partials, u32 first, u32 last) {
    for (u32 i = first + (threadIdx.x - first) % THREADS; i < last; i += THREADS * FLIGHT) {
        double v[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) v[k] = i + k * THREADS < last ? partials[i + k * THREADS] : 0.0;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) own += v[k];
    }
    return own;
}

// Chunks' sums to another GPU's memory, by one block: many at a time.
__device__ __forceinline__ void hand_over(const volatile double* from, u32 count, double* to) {
    for (u32 i = threadIdx.x; i < count; i += THREADS * FLIGHT) {
        double v[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) v[k] = i + k * THREADS < count ? from[i + k * THREADS] : 0.0;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            if (i + k * THREADS < count) to[i + k * THREADS] = v[k];
    }
}

// The sum of the chunks' sums, by one block, from what its threads have of them.
__device__ __forceinline__ void total(double own, double* out) {
    const double sum = block_sum(own);
    if (threadIdx.x == 0) *out = sum;
}

// Two kernels in a stream: the end of the first is the barrier.
extern "C" __global__ void __launch_bounds__(THREADS) chunks(const double2* from, u64 pairs, u32 chunk, double* partials) {
    sum_chunks(from, pairs, chunk, partials);
}
extern "C" __global__ void __launch_bounds__(THREADS) of_chunks(const double* partials, u32 count, double* out) {
    total(added(0.0, partials, 0, count), out);
}

// COUNT of the smallest chunks, the last of which may be short, all by one block: each thread's loads are under way at
// once, and nobody asks who is last. The tree is the same: of each chunk the sums of warps in their order, then those of
// chunks as the first lanes of a warp add them, to which the zeros of the others change nothing.
#define SMALLEST 512
template <int COUNT>
__device__ __forceinline__ void sum_few(const double2* from, u32 pairs, double* out, double* room) {
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    double2 v[COUNT * SMALLEST / THREADS];
#pragma unroll
    for (int k = 0; k < COUNT * SMALLEST / THREADS; ++k) {
        v[k].x = v[k].y = 0.0;
        if (k * THREADS + threadIdx.x < pairs) v[k] = from[k * THREADS + threadIdx.x];
    }
    double sums[COUNT];
#pragma unroll
    for (int c = 0; c < COUNT; ++c) {
        sums[c] = 0.0;
#pragma unroll
        for (int k = c * SMALLEST / THREADS; k < (c + 1) * SMALLEST / THREADS; ++k) sums[c] += v[k].x + v[k].y;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
#pragma unroll
        for (int c = 0; c < COUNT; ++c) sums[c] += __shfl_down_sync(~0u, sums[c], step);
#pragma unroll
    for (int c = 0; c < COUNT; ++c)
        if (lane == 0) room[c * (THREADS / 32) + warp] = sums[c];
    __syncthreads();
    if (warp > 0) return;
    double own = 0.0;
    if (lane < COUNT) {
        double sum = room[lane * (THREADS / 32)];
#pragma unroll
        for (int w = 1; w < THREADS / 32; ++w) sum += room[lane * (THREADS / 32) + w];
        own += sum;
    }
#pragma unroll
    for (int step = COUNT / 2; step > 0; step /= 2) own += __shfl_down_sync(~0u, own, step);
    if (lane == 0) *out = own;
}
extern "C" __global__ void __launch_bounds__(THREADS) by_one_block(const double2* from, u32 pairs, double* out) {
    __shared__ double parts[4 * THREADS / 32];
    if (pairs <= SMALLEST) return sum_few<1>(from, pairs, out, &parts[0]);
    if (pairs <= 2 * SMALLEST) return sum_few<2>(from, pairs, out, &parts[0]);
    sum_few<4>(from, pairs, out, &parts[0]);
}

// A cooperative kernel with a barrier of the grid in the middle; `goal`: blocks that have come to it, all launches counted.
extern "C" __global__ void __launch_bounds__(THREADS)
    by_grid_barrier(const double2* from, u64 pairs, u32 chunk, double* partials, u32 count, double* out, u32* counter,
                    u32 goal, u32* fault) {
    sum_chunks(from, pairs, chunk, partials);
    if (threadIdx.x == 0) {
        add_acq_rel_gpu(counter, 1);
        const u64 begin = clock64();
        while (!reached(load_acquire_gpu(counter), goal))
            if ((u64)clock64() - begin > BUDGET) {
                *fault = 1;
                break;
            }
    }
    __syncthreads();
    if (blockIdx.x == 0) total(added(0.0, partials, 0, count), out);
}

// One kernel, on one GPU or on each of `gpus`: the block that comes last adds the sums of the chunks, on GPU 0. Another GPU
// has its own in `mine`, and its last block alone takes them to GPU 0, from `first` of `partials` on: blocks do not wait
// for stores to another GPU. flags: a word on GPU 0 for every other, a line apart, in which they say that theirs are there;
// until then GPU 0 adds its own.
extern "C" __global__ void __launch_bounds__(THREADS, 8)
    by_last_block(const double2* from, u64 pairs, u32 chunk, double* mine, double* partials, u32 first, u32 count,
                  double* out, u32* counter, u32* flags, u32 me, u32 gpus, u32 goal, u32* fault) {
    __shared__ bool last;
    sum_chunks(from, pairs, chunk, mine);
    if (threadIdx.x == 0) {
        last = add_acq_rel_gpu(counter, 1) == gridDim.x - 1;
        if (last) *counter = 0;
    }
    __syncthreads();
    if (!last) return;
    const u32 made = (u32)((pairs + chunk - 1) / chunk);
    if (me) {
        hand_over(mine, made, partials + first);
        fence_sys();
        __syncthreads();
        if (threadIdx.x == 0) store_release_sys(flags + 32 * me, goal);
        return;
    }
    const double own = added(0.0, mine, 0, made);
    if (threadIdx.x > 0 && threadIdx.x < gpus && !await_sys(flags + 32 * threadIdx.x, goal, BUDGET)) *fault = 1;
    __syncthreads();
    total(added(own, partials, made, count), out);
}

// 32 doubles in shared memory, summed by one thread or by a warp, seven ways; `all` is the mask of the whole warp, which
// the compiler cannot know. Each repeat begins with values that depend on the sum before.

__device__ __forceinline__ void meet_warp(u32 mask) { asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory"); }
__device__ __forceinline__ void keep_order() { asm volatile("" ::: "memory"); }

// The lane of a rank of a coalesced group, found in its mask.
__device__ __forceinline__ u32 ranked(u32 mask, u32 rank) { return __fns(mask, 0, rank + 1); }

#define SUM32(name, type, body)                                                                    \
    extern "C" __global__ void sum32_##name(u32 repeats, u32 all, u64* out, double* sink) {        \
        __shared__ type values[32];                                                                \
        const u32 tid = threadIdx.x;                                                               \
        double sum = 0.0;                                                                          \
        u64 begin = clock64();                                                                     \
        for (u32 r = 0; r < repeats; ++r) {                                                        \
            for (u32 i = tid; i < 32; i += blockDim.x) values[i] = i + 1 + sum * 1e-300;           \
            meet_warp(all);                                                                        \
            body                                                                                   \
        }                                                                                          \
        u64 end = clock64();                                                                       \
        if (tid == 0) {                                                                            \
            out[0] = end - begin;                                                                  \
            sink[0] = sum;                                                                         \
        }                                                                                          \
    }

#define HALVES(before, barrier)                                                                    \
    before;                                                                                        \
    _Pragma("unroll") for (u32 step = 16; step > 0; step /= 2) {                                   \
        if (tid < step) values[tid] += values[tid + step];                                         \
        barrier;                                                                                   \
    }                                                                                              \
    sum = values[0];                                                                               \
    barrier;

SUM32(serial, double, {
    sum = 0.0;
    _Pragma("unroll") for (u32 i = 0; i < 32; ++i) sum += values[i];
    keep_order();
})
SUM32(nosync, double, { HALVES(keep_order(), keep_order()) })
SUM32(volatile_tile, volatile double, { HALVES(keep_order(), meet_warp(all)) })
SUM32(tile, double, { HALVES(keep_order(), meet_warp(all)) })
SUM32(coalesced, double, { HALVES(const u32 group = __activemask(), meet_warp(group)) })
SUM32(tile_shuffle, double, {
    sum = values[tid];
    _Pragma("unroll") for (u32 step = 16; step > 0; step /= 2) sum += __shfl_down_sync(all, sum, step);
})
SUM32(coalesced_shuffle, double, {
    const u32 group = __activemask();
    sum = values[tid];
    _Pragma("unroll") for (u32 step = 16; step > 0; step /= 2) {
        const double other = __shfl_sync(group, sum, ranked(group, tid + step < 32 ? tid + step : tid));
        sum += other;
    }
})

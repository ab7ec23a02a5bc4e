// Barriers inside a warp and a block, repeated and timed by the clock register.

#define UNROLL 16

// `step` as often as `repeats` says, times UNROLL.
#define REPEATED(repeats, step)                                                                    \
    for (u32 r = 0; r < (repeats); ++r) {                                                          \
        _Pragma("unroll") for (int k = 0; k < UNROLL; ++k) { step; }                               \
    }

__device__ __forceinline__ void warp_sync(u32 mask) { asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory"); }

__device__ __forceinline__ u32 lane() { return threadIdx.x % 32; }

// The mask of the tile of `size` lanes (a power of two) that this lane is in.
__device__ __forceinline__ u32 tile_mask(u32 size) {
    u32 ones = size == 32 ? 0xffffffffu : (1u << size) - 1;
    return ones << (lane() / size * size);
}

// One barrier after the other with one mask would be merged: a compiler drops those between lanes that it knows to be
// together. `size` is at most 32, so that the mask stays the same, which the compiler cannot know.
#define ANEW(mask, size) (mask += (size) >> 6)

// One block; out[0]: cycles from before the first to after the last barrier of all warps.
extern "C" __global__ void tile(u32 size, u32 repeats, u64* out) {
    u32 mask = tile_mask(size);
    __syncthreads();
    u64 begin = clock64();
    REPEATED(repeats, (warp_sync(mask), ANEW(mask, size)))
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// A shuffle within the tiles of a whole warp, whose mask needs no check.
extern "C" __global__ void shuffle(u32 size, u32 repeats, u64* out) {
    u32 value = threadIdx.x, other = lane() / size * size + (lane() + 1) % size;
    __syncthreads();
    u64 begin = clock64();
    REPEATED(repeats, value = __shfl_sync(0xffffffffu, value, other))
    out[1 + threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// The first `size` lanes of each warp form a coalesced group.
extern "C" __global__ void coalesced(u32 size, u32 repeats, u64* out) {
    __syncthreads();
    u64 begin = clock64();
    if (lane() < size) {
        u32 mask = __activemask();
        REPEATED(repeats, (warp_sync(mask), ANEW(mask, size)))
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// The lane of a rank is the rank-th set bit of the group's mask, found as cooperative groups do.
__device__ __forceinline__ u32 lane_of(u32 mask, u32 rank) {
    return rank == 0 ? __ffs(mask) - 1 : mask == 0xffffffffu ? rank : __fns(mask, 0, rank + 1);
}

// The same groups, shuffling by rank. Each value is the next source's rank, so that its lane is found every time.
extern "C" __global__ void coalesced_shuffle(u32 size, u32 repeats, u64* out) {
    u32 rank = (lane() + 1) % size;
    __syncthreads();
    u64 begin = clock64();
    if (lane() < size) {
        u32 mask = __activemask();
        REPEATED(repeats, rank = __shfl_sync(mask, rank, lane_of(mask, rank)))
    }
    out[1 + threadIdx.x] = rank;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// Block barriers; every block writes its own cycles.
extern "C" __global__ void block(u32 repeats, u64* out) {
    __syncthreads();
    u64 begin = clock64();
    REPEATED(repeats, __syncthreads())
    if (threadIdx.x == 0) out[blockIdx.x] = clock64() - begin;
}

// Every lane reaches the barrier in a branch of its own. A barrier that blocks lets no lane out before the last is in.
#define APART(name, barrier)                                                                       \
    extern "C" __global__ void apart_##name(u64* starts, u64* ends) {                              \
        u64 start = 0, end = 0;                                                                    \
        u32 value = lane(), all = __activemask();                                                  \
        _Pragma("unroll") for (u32 k = 0; k < 32; ++k) {                                           \
            if (lane() == k) {                                                                     \
                start = clock64();                                                                 \
                barrier;                                                                           \
                end = clock64();                                                                   \
            }                                                                                      \
        }                                                                                          \
        starts[lane()] = start;                                                                    \
        ends[lane()] = end + (value == 99) + (all == 0);                                                       \
    }
APART(tile, warp_sync(0xffffffffu))
APART(shuffle, value = __shfl_sync(0xffffffffu, value, 0))
APART(coalesced, warp_sync(all))

// Half of the lanes, or of the warps, leave before the barrier: hardware does not count the ones that left.
extern "C" __global__ void part_of_warp(u32* done) {
    if (lane() >= 16) return;
    warp_sync(0xffffffffu);
    atomicAdd(done, 1);
}

extern "C" __global__ void part_of_block(u32* done) {
    if (threadIdx.x >= blockDim.x / 2) return;
    __syncthreads();
    atomicAdd(done, 1);
}

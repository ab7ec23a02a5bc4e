// Barriers and shuffles inside a warp by the names of cooperative groups; compare warp.cu.

#include <cooperative_groups.h>

namespace groups = cooperative_groups;

#define UNROLL 16
#define REPEATED(repeats, step)                                                                    \
    for (u32 r = 0; r < (repeats); ++r) {                                                          \
        _Pragma("unroll") for (int k = 0; k < UNROLL; ++k) { step; }                               \
    }

// Every warp of the block is cut into tiles of SIZE lanes, known when compiled, as tiles of cooperative groups are.
// out[0]: cycles from before the first to after the last of all warps.
#define TILES(SIZE)                                                                                \
    extern "C" __global__ void groups_tile_##SIZE(u32 size, u32 repeats, u64* out) {               \
        auto tile = groups::tiled_partition<SIZE>(groups::this_thread_block());                    \
        __syncthreads();                                                                           \
        u64 begin = clock64();                                                                     \
        REPEATED(repeats, tile.sync())                                                             \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) out[0] = clock64() - begin;                                          \
    }                                                                                              \
    extern "C" __global__ void groups_shuffle_##SIZE(u32 size, u32 repeats, u64* out) {            \
        auto tile = groups::tiled_partition<SIZE>(groups::this_thread_block());                    \
        u32 value = threadIdx.x, other = (tile.thread_rank() + 1) % SIZE;                          \
        __syncthreads();                                                                           \
        u64 begin = clock64();                                                                     \
        REPEATED(repeats, value = tile.shfl(value, other))                                         \
        out[1 + threadIdx.x] = value;                                                              \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) out[0] = clock64() - begin;                                          \
    }
TILES(1)
TILES(2)
TILES(4)
TILES(8)
TILES(16)
TILES(32)

// The first `size` lanes of each warp form a coalesced group.
extern "C" __global__ void groups_coalesced(u32 size, u32 repeats, u64* out) {
    __syncthreads();
    u64 begin = clock64();
    if (threadIdx.x % 32 < size) {
        auto group = groups::coalesced_threads();
        REPEATED(repeats, group.sync())
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

// The same groups; each value is the next source's rank.
extern "C" __global__ void groups_coalesced_shuffle(u32 size, u32 repeats, u64* out) {
    u32 rank = (threadIdx.x % 32 + 1) % size;
    __syncthreads();
    u64 begin = clock64();
    if (threadIdx.x % 32 < size) {
        auto group = groups::coalesced_threads();
        REPEATED(repeats, rank = group.shfl(rank, rank))
    }
    out[1 + threadIdx.x] = rank;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = clock64() - begin;
}

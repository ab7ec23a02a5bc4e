// Atomic additions to one word, or to one word per thread, wherever the memory lies.

extern "C" __global__ void add(u32* words, u32 spread, u32 repeats) {
    u32* mine = words + (spread ? blockIdx.x * blockDim.x + threadIdx.x : 0);
    for (u32 r = 0; r < repeats; ++r) asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(mine) : "memory");
}

// The first `lanes` lanes of each warp add, to one word or each to a word of its own: what does a warp send?
#define BY_LANES(name, addition)                                                                   \
    extern "C" __global__ void lanes_##name(u32* words, u32 lanes, u32 spread, u32 repeats) {      \
        u32* mine = words + (spread ? blockIdx.x * blockDim.x + threadIdx.x : 0);                  \
        if (threadIdx.x % 32 >= lanes) return;                                                     \
        for (u32 r = 0; r < repeats; ++r) addition;                                                \
    }
BY_LANES(instruction, asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(mine) : "memory"))
BY_LANES(language, atomicAdd_system(mine, 1u))

// The same by hand: lanes with one word find each other, and one of them adds for all.
extern "C" __global__ void lanes_together(u32* words, u32 lanes, u32 spread, u32 repeats) {
    u32* mine = words + (spread ? blockIdx.x * blockDim.x + threadIdx.x : 0);
    const u32 lane = threadIdx.x % 32;
    for (u32 r = 0; r < repeats; ++r) {
        const u32 with = __match_any_sync(0xffffffffu, lane < lanes ? (u64)mine : 0);
        if (lane < lanes && lane == __ffs(with) - 1) atomicAdd_system(mine, (u32)__popc(with));
    }
}

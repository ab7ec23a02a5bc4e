// Atomic additions to one word, or to one word per thread, wherever the memory lies.

extern "C" __global__ void add(u32* words, u32 spread, u32 repeats) {
    u32* mine = words + (spread ? blockIdx.x * blockDim.x + threadIdx.x : 0);
    for (u32 r = 0; r < repeats; ++r) asm volatile("red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(mine) : "memory");
}

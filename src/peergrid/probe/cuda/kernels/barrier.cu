// Barriers over a grid and over several GPUs, on words in memory.

// A barrier of all blocks of the grid. It ends when the counter has reached `goal`, or when the first thread of a block
// has waited for longer than its budget in cycles, which is 0 from then on. Only that thread knows this: to inform the
// block, every barrier would have to read shared memory.
__device__ __forceinline__ void grid_barrier(u32* counter, u32 goal, u64& budget) {
    __syncthreads();
    if (threadIdx.x == 0) {
        add_acq_rel_gpu(counter, 1);
        u64 begin = clock64();
        while (!reached(load_acquire_gpu(counter), goal))
            if ((u64)clock64() - begin > budget) {
                budget = 0;
                break;
            }
    }
    __syncthreads();
}

extern "C" __global__ void grid(u32* counter, u32 repeats, u32* fault) {
    u64 budget = BUDGET;
    for (u32 r = 1; r <= repeats; ++r) grid_barrier(counter, gridDim.x * r, budget);
    if (threadIdx.x == 0 && !budget) *fault = 1;
}

// Over `count` GPUs, at most 32. The last block of a GPU to arrive raises that GPU's flag on every GPU, each by a lane
// of its own; all blocks then wait for all flags in their own memory. flags[g]: address of GPU g's flags, one per
// sender, a line apart. False for a lane that has waited for longer than `budget` cycles, now or before.
__device__ __forceinline__ bool devices_barrier(u32* counter, const u64* flags, u32 me, u32 count, u32 repeats,
                                             u64 budget) {
    const u32 lane = threadIdx.x;
    const bool concerned = lane < count;
    u32* const raised = concerned ? (u32*)flags[lane] + me * 32 : nullptr;
    const u32* const watched = concerned ? (const u32*)flags[me] + lane * 32 : nullptr;
    for (u32 r = 1; r <= repeats; ++r) {
        __syncthreads();
        if (lane < 32) {
            const bool last = __any_sync(~0u, lane == 0 && add_acq_rel_gpu(counter, 1) == gridDim.x * r - 1);
            __syncwarp();
            if (last && concerned) store_release_sys(raised, r);
            if (concerned && !await_sys(watched, r, budget)) budget = 0;
        }
        __syncthreads();
    }
    return !concerned || budget;
}

extern "C" __global__ void devices(u32* counter, const u64* flags, u32 me, u32 count, u32 repeats, u32* fault) {
    if (!devices_barrier(counter, flags, me, count, repeats, BUDGET)) *fault = 1;
}

// A grid barrier that the last block never reaches: the budget ends what would wait for ever.
extern "C" __global__ void part_of_grid(u32* counter, u32* caught) {
    if (blockIdx.x == gridDim.x - 1) return;
    u64 budget = 20000000ull;
    grid_barrier(counter, gridDim.x, budget);
    if (threadIdx.x == 0 && !budget) atomicAdd(caught, 1u);
}

// The same over GPUs: where `leaves` is set the last block goes before the barrier. Counts the blocks that wait in vain.
extern "C" __global__ void part_of_devices(u32* counter, const u64* flags, u32 me, u32 count, u32 leaves, u32* caught) {
    if (leaves && blockIdx.x == gridDim.x - 1) return;
    const bool met = devices_barrier(counter, flags, me, count, 1, 20000000ull);
    const bool vain = __any_sync(~0u, !met);
    if (threadIdx.x == 0 && vain) atomicAdd(caught, 1u);
}

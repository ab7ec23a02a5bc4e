// Barriers over a grid and over several GPUs, on words in memory.

// All blocks of the grid meet for the `round`-th time. False when the budget is spent.
__device__ __forceinline__ bool meet_grid(u32* counter, u32 blocks, u32 round, u64 budget) {
    __shared__ bool fine;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 goal = blocks * round;
        add_acq_rel_gpu(counter, 1);
        u64 begin = clock64();
        fine = true;
        while (fine && !reached(load_acquire_gpu(counter), goal)) fine = (u64)clock64() - begin <= budget;
    }
    __syncthreads();
    return fine;
}

extern "C" __global__ void grid(u32* counter, u32 repeats, u32* fault) {
    for (u32 r = 1; r <= repeats; ++r)
        if (!meet_grid(counter, gridDim.x, r, BUDGET)) {
            if (threadIdx.x == 0) *fault = 1;
            return;
        }
}

// Over `count` GPUs. The last block of a GPU to arrive raises that GPU's flag on every GPU; all blocks then wait
// for all flags in their own memory. flags[g]: address of GPU g's flags, one per sender, a line apart.
extern "C" __global__ void devices(u32* counter, const u64* flags, u32 me, u32 count, u32 repeats, u32* fault) {
    __shared__ bool fine;
    for (u32 r = 1; r <= repeats; ++r) {
        __syncthreads();
        if (threadIdx.x == 0) {
            fine = true;
            if (add_acq_rel_gpu(counter, 1) == gridDim.x * r - 1) {
                fence_sys();
                for (u32 g = 0; g < count; ++g) store_release_sys((u32*)flags[g] + me * 32, r);
            }
        }
        __syncthreads();
        if (threadIdx.x < count && !await_sys((const u32*)flags[me] + threadIdx.x * 32, r, BUDGET)) fine = false;
        __syncthreads();
        if (!fine) {
            if (threadIdx.x == 0) *fault = 1;
            return;
        }
    }
}

// A grid barrier that the last block never reaches: the budget ends what would wait for ever.
extern "C" __global__ void part_of_grid(u32* counter, u32* caught) {
    if (blockIdx.x == gridDim.x - 1) return;
    if (!meet_grid(counter, gridDim.x, 1, 20000000ull) && threadIdx.x == 0) atomicAdd(caught, 1);
}

// The same over GPUs: whoever runs this waits for a GPU that was never started.
extern "C" __global__ void part_of_devices(u32* flag, u32* caught) {
    if (threadIdx.x == 0 && !await_sys(flag, 1, 20000000ull)) atomicAdd(caught, 1);
}

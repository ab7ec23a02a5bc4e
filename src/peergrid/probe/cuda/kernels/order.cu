// Data, then a flag: how often does the reader see the flag and stale data behind it?
// Each block is a pair of its own with WIDE lines of data. Words are counted up; data older than the flag is stale.

#define WIDE 32
#define LINE 32

// Writes round after round into the reader's memory and waits for its answer in `acks` (own memory).
extern "C" __global__ void write_flags(u32* data, u32* flags, const u32* acks, u32 rounds, u32 fenced, u32* fault) {
    u32* line = data + ((u64)blockIdx.x * WIDE + threadIdx.x) * LINE;
    u32* flag = flags + blockIdx.x * LINE;
    for (u32 r = 1; r <= rounds; ++r) {
        store_relaxed_sys(line, r);
        if (fenced) fence_sys();
        __syncwarp();
        if (threadIdx.x == 0) {
            if (fenced)
                store_release_sys(flag, r);
            else
                store_relaxed_sys(flag, r);
        }
        bool fine = true;
        if (threadIdx.x == 0) fine = await_sys(acks + blockIdx.x * LINE, r, BUDGET);
        if (!__shfl_sync(0xffffffffu, (int)fine, 0)) {
            if (threadIdx.x == 0) *fault = 1;
            return;
        }
    }
}

// Polls its own memory, counts stale words, and answers into the writer's memory.
extern "C" __global__ void read_flags(const u32* data, const u32* flags, u32* acks, u32 rounds, u32 fenced,
                                      u32* stale, u32* fault) {
    const u32* line = data + ((u64)blockIdx.x * WIDE + threadIdx.x) * LINE;
    const u32* flag = flags + blockIdx.x * LINE;
    u32 seen_stale = 0;
    for (u32 r = 1; r <= rounds; ++r) {
        // Every lane polls by itself: the fastest way from seeing the flag to reading the data.
        u64 begin = clock64();
        bool fine = true;
        if (fenced)
            while (fine && !reached(load_acquire_sys(flag), r)) fine = (u64)clock64() - begin <= BUDGET;
        else
            while (fine && !reached(load_relaxed_sys(flag), r)) fine = (u64)clock64() - begin <= BUDGET;
        if (!reached(load_relaxed_sys(line), r)) ++seen_stale;
        if (__any_sync(0xffffffffu, !fine)) {
            if (threadIdx.x == 0) *fault = 1;
            break;
        }
        __syncwarp();
        if (threadIdx.x == 0) store_release_sys(acks + blockIdx.x * LINE, r);
    }
    if (seen_stale) atomicAdd(stale, seen_stale);
}

// Polls a flag that a copy engine or the host raises; all `count` words of data must be at least as new.
// One block. Answers in `ack` when it is not null. Ends when the flag reaches `rounds`.
extern "C" __global__ void watch(const u32* data, u32 count, const u32* flag, u32* ack, u32 rounds, u32 fenced,
                                 u32* stale, u32* looks, u32* fault) {
    __shared__ u32 newest;
    u32 seen = 0, bad = 0, seen_flags = 0;
    while (seen < rounds) {
        if (threadIdx.x == 0) {
            u64 begin = clock64();
            u32 now;
            do {
                now = fenced ? load_acquire_sys(flag) : load_relaxed_sys(flag);
            } while (now == seen && (u64)clock64() - begin <= BUDGET);
            newest = now;
        }
        __syncthreads();
        u32 now = newest;
        if (now == seen) {
            if (threadIdx.x == 0) *fault = 1;
            return;
        }
        for (u32 i = threadIdx.x; i < count; i += blockDim.x)
            if (!reached(load_relaxed_sys(data + i), now)) ++bad;
        seen = now;
        ++seen_flags;
        __syncthreads();
        if (threadIdx.x == 0 && ack) store_release_sys(ack, seen);
    }
    if (bad) atomicAdd(stale, bad);
    if (threadIdx.x == 0) *looks = seen_flags;
}

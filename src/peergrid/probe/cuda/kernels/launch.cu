// Kernels whose only purpose is to be launched.

// Holds its stream until the host raises the word.
extern "C" __global__ void gate(const u32* word) {
    u64 begin = clock64();
    while (load_relaxed_sys(word) == 0)
        if ((u64)clock64() - begin > 5 * BUDGET) return;
}

extern "C" __global__ void nothing() {}

// Waits a number of units of `cycles` cycles.
extern "C" __global__ void wait(u32 units, u32 cycles) {
    u64 begin = clock64(), goal = (u64)units * cycles;
    while ((u64)clock64() - begin < goal) {}
}

// The same for programmatic dependent launch: lets the next kernel come in at once, then waits for the one before.
extern "C" __global__ void wait_dependent(u32 units, u32 cycles) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    u64 begin = clock64(), goal = (u64)units * cycles;
    while ((u64)clock64() - begin < goal) {}
}

// Kernels of a fixed length, long enough to hide what the host needs to launch the next: about 25 us, 250 us, 2.5 ms.
__device__ __forceinline__ void pass(u64 cycles) {
    u64 begin = clock64();
    while ((u64)clock64() - begin < cycles) {}
}

extern "C" __global__ void busy_25() { pass(45000); }
extern "C" __global__ void busy_250() { pass(450000); }
extern "C" __global__ void busy_2500() { pass(4500000); }

// Additions, and sums over shared memory: the method checked, and Little's law.

#define UNROLL 64

// Dependent additions of one thread. out[0]: cycles, out[1]: nanoseconds of the same stretch.
extern "C" __global__ void additions(u32 repeats, float q, u64* out, float* sink) {
    float p = q;
    u64 ns = nanoseconds(), begin = clock64();
    for (u32 r = 0; r < repeats; ++r) {
#pragma unroll
        for (int k = 0; k < UNROLL; ++k) asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(p) : "f"(q));
    }
    u64 end = clock64(), ns_end = nanoseconds();
    *sink = p;
    out[0] = end - begin;
    out[1] = ns_end - ns;
}

#define MOST 4096

// Sum of `n` doubles in shared memory by the threads of one block: each takes every blockDim-th, twice adding.
// `reduce` 0 leaves the partial sums, 1 adds them by the barriers that as many threads need.
// out[0]: cycles for `repeats` sums.
extern "C" __global__ void sum_shared(u32 n, u32 repeats, u32 reduce, u64* out, double* sink) {
    __shared__ double data[MOST];
    __shared__ double partial[32];
    for (u32 i = threadIdx.x; i < MOST; i += blockDim.x) data[i] = i * 0.5;
    __syncthreads();
    double total = 0;
    u64 begin = clock64();
    for (u32 r = 0; r < repeats; ++r) {
        double sum = total * 1e-30;  // ties each repeat to the one before
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += data[i];
        if (reduce && blockDim.x >= 32) {
#pragma unroll
            for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
            if (blockDim.x > 32) {
                if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
                __syncthreads();
                if (threadIdx.x < 32) {
                    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0;
#pragma unroll
                    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
                }
                __syncthreads();
            }
        }
        total = sum;
    }
    __syncthreads();
    u64 end = clock64();
    if (threadIdx.x == 0) out[0] = end - begin;
    sink[threadIdx.x] = total;
}

// A load from shared memory and the addition that waits for it; the sum (always 0) leads to the next load.
extern "C" __global__ void chase_shared(u32 repeats, u64* out, double* sink) {
    __shared__ double zeros[64];
    for (u32 i = threadIdx.x; i < 64; i += blockDim.x) zeros[i] = 0.0;
    __syncthreads();
    double sum = 0;
    u64 begin = clock64();
    for (u32 r = 0; r < repeats; ++r) {
#pragma unroll
        for (int k = 0; k < 16; ++k) sum += *(const double*)((const char*)zeros + __double2loint(sum));
    }
    u64 end = clock64();
    out[0] = end - begin;
    *sink = sum;
}

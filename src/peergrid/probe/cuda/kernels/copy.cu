// Bandwidth by stores and by loads of a kernel. `count` is in words of 16 bytes; any grid covers it.

// Four loads in flight per thread before the stores: enough to fill an NVLink from all multiprocessors.
extern "C" __global__ void copy(uint4* __restrict__ to, const uint4* __restrict__ from, u64 count, u32 repeats) {
    const u64 step = (u64)gridDim.x * blockDim.x, first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (u32 r = 0; r < repeats; ++r) {
        u64 i = first;
        for (; i + 3 * step < count; i += 4 * step) {
            uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
            to[i] = a;
            to[i + step] = b;
            to[i + 2 * step] = c;
            to[i + 3 * step] = d;
        }
        for (; i < count; i += step) to[i] = from[i];
    }
}

__device__ __forceinline__ u32 fold(uint4 v) { return (v.x ^ v.y) + (v.z ^ v.w); }

// Reads only; the sum is stored where it cannot be optimised away and is never true.
extern "C" __global__ void sweep(const uint4* __restrict__ from, u64 count, u32* sink) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    u32 sum = 0;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
        sum += fold(a) + fold(b) + fold(c) + fold(d);
    }
    for (; i < count; i += step) sum += fold(from[i]);
    if (sum == 0x9e3779b9u) *sink = sum;
}

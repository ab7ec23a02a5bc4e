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
extern "C" __global__ void read_all(const uint4* __restrict__ from, u64 count, u32* sink) {
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

// Where word i lies when `hundredths` of 100 pieces of PIECE words are remote; the pieces are spread over the range.
#define PIECE 1024
__device__ __forceinline__ const uint4* lies(const uint4* own, const uint4* remote, u64 i, u32 hundredths) {
    return ((u32)(i / PIECE % 100) * 61 % 100 < hundredths ? remote : own) + i;
}

// Reads words of which a share is remote, four in flight; the sum is stored where it is never true.
extern "C" __global__ void mixed(const uint4* __restrict__ own, const uint4* __restrict__ remote, u64 count,
                                 u32 hundredths, u32* sink) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    u32 sum = 0;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        uint4 a = *lies(own, remote, i, hundredths), b = *lies(own, remote, i + step, hundredths);
        uint4 c = *lies(own, remote, i + 2 * step, hundredths), d = *lies(own, remote, i + 3 * step, hundredths);
        sum += fold(a) + fold(b) + fold(c) + fold(d);
    }
    for (; i < count; i += step) sum += fold(*lies(own, remote, i, hundredths));
    if (sum == 0x9e3779b9u) *sink = sum;
}

// A sparse matrix in rows of equal width, and its product with a vector. Nonzero k of row i lies at k * rows + i.

__device__ __forceinline__ u32 mixed(u32 x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// Row i of this part is row `first + i` of `total`; its columns lie within `band` of the diagonal, or anywhere (0).
extern "C" __global__ void fill_rows(u32* columns, float* values, u32 rows, u32 width, u32 first, u32 total, u32 band) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    for (u32 k = 0; k < width; ++k) {
        u32 drawn = mixed((first + i) * width + k);
        columns[(u64)k * rows + i] = band ? (first + i + total - band / 2 + drawn % band) % total : drawn % total;
        values[(u64)k * rows + i] = (float)(drawn >> 16) * 0x1p-16f;
    }
}

extern "C" __global__ void multiply(const u32* __restrict__ columns, const float* __restrict__ values,
                                    const float* __restrict__ x, float* __restrict__ y, u32 rows, u32 width) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float sum = 0.0f;
    for (u32 k = 0; k < width; ++k) sum += values[(u64)k * rows + i] * x[columns[(u64)k * rows + i]];
    y[i] = sum;
}

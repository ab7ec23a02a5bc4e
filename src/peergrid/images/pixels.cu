// The pixels of an image, each by the same formula, whose values are known for all values that a pixel can have.
//
// Before this text stand the type `Pixel` and `constexpr bool STRAIGHT`: true where the new values lie on a line, which
// takes a multiplication, an addition and a shift; else they are looked up in a table.

struct Image {
  const Pixel* in;
  Pixel* out;
  const Pixel* table;
  long long pixels, offset;
  int slope, spare;  // new value: (slope * old + offset) >> 30
};

constexpr int PACK = 16 / sizeof(Pixel);  // pixels that a thread loads at once
struct alignas(16) Pack {
  Pixel of[PACK];
};

__device__ __forceinline__ Pixel changed(const Image& image, Pixel old) {
  return STRAIGHT ? (Pixel)(((long long)image.slope * (int)old + image.offset) >> 30) : image.table[old];
}

// One pixel for each thread.
extern "C" __global__ void __launch_bounds__(256) each_pixel(const __grid_constant__ Image image) {
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at < image.pixels) image.out[at] = changed(image, image.in[at]);
}

// As many pixels for each thread as a load of 16 bytes brings; the last thread has what is left.
extern "C" __global__ void __launch_bounds__(256) packed_pixels(const __grid_constant__ Image image) {
  const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * PACK;
  if (at + PACK <= image.pixels) {
    Pack pack = *reinterpret_cast<const Pack*>(image.in + at);
#pragma unroll
    for (int n = 0; n < PACK; ++n) pack.of[n] = changed(image, pack.of[n]);
    *reinterpret_cast<Pack*>(image.out + at) = pack;
  } else {
    for (long long one = at; one < image.pixels; ++one) image.out[one] = changed(image, image.in[one]);
  }
}

// The same with the table in shared memory, whose banks answer more looks at values anywhere than the cache does. As many
// blocks as find room at once load the table and share the pixels, a load after another.
constexpr int VALUES = 1 << 8 * sizeof(Pixel), AHEAD = 4;  // loads of a thread under way

extern "C" __global__ void __launch_bounds__(1024) shared_pixels(const __grid_constant__ Image image) {
  extern __shared__ __align__(128) unsigned char shared[];
  Pixel* const table = reinterpret_cast<Pixel*>(shared);
  for (int at = threadIdx.x * PACK; at < VALUES; at += blockDim.x * PACK)
    *reinterpret_cast<Pack*>(table + at) = *reinterpret_cast<const Pack*>(image.table + at);
  __syncthreads();
  const long long packs = image.pixels / PACK, threads = (long long)gridDim.x * blockDim.x;
  const Pack* const in = reinterpret_cast<const Pack*>(image.in);
  Pack* const out = reinterpret_cast<Pack*>(image.out);
  for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < packs; at += AHEAD * threads) {
    Pack pack[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; ++k)
      if (at + k * threads < packs) pack[k] = in[at + k * threads];
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
      if (at + k * threads >= packs) break;
#pragma unroll
      for (int n = 0; n < PACK; ++n) pack[k].of[n] = table[pack[k].of[n]];
      out[at + k * threads] = pack[k];
    }
  }
  const long long rest = packs * PACK + threadIdx.x;
  if (blockIdx.x == 0 && rest < image.pixels) image.out[rest] = table[image.in[rest]];
}

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

// NVSHMEM's functions of threads, without the collective ones; tests on hosts put others in their place.
// Its library has them for the `uint64_t` of C compilers, which is NVRTC's under another name: the headers of CUDA that
// define the latter come first.

#include <cuda/std/cstdint>
#include <cuda_awbarrier_primitives.h>
#include <cuda/atomic>
#define uint64_t unsigned long
#include <device/nvshmem_defines.h>
#include <device/nvshmemx_defines.h>

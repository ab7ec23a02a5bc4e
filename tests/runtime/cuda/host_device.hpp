// What generated kernels use of CUDA, for a C++ compiler on the host.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#define __device__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
using std::min; using std::max;
struct Dim { unsigned x, y, z; };
static thread_local Dim blockIdx, threadIdx, blockDim, gridDim;
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
template <typename T> inline T __ldg(const T* p) { return *p; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline float __int_as_float(unsigned b) { float f; std::memcpy(&f, &b, 4); return f; }
inline double __longlong_as_double(unsigned long long b) { double f; std::memcpy(&f, &b, 8); return f; }
inline void __threadfence_system() {}
inline long long host_acquire(const long long* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
template <typename T> inline T atomicMin(T* p, T v) { T old = *p; *p = std::min(old, v); return old; }

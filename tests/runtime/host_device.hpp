// What generated kernels use of CUDA, for a C++ compiler on the host. `fibres.cpp` carries them out; no header of the
// standard library, whose templates would take longer to compile than the kernels.
#pragma once
#include <stdint.h>

#define __global__
#define __device__
#define __shared__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Dim { unsigned x = 0, y = 0, z = 0; };
extern Dim threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

template <typename A> A min(A a, A b) { return b < a ? b : a; }
template <typename A> A max(A a, A b) { return a < b ? b : a; }
template <typename A> A __ldg(const A* p) { return *p; }
template <typename A> A __ldcs(const A* p) { return *p; }
template <typename A> A atomicAdd(A* p, A v) { const A old = *p; *p += v; return old; }
template <typename A> A atomicMin(A* p, A v) { const A old = *p; *p = min(old, v); return old; }
extern "C" float fabsf(float) noexcept;
extern "C" double fabs(double) noexcept;
extern "C" double fma(double, double, double) noexcept;
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
inline int __float_as_int(float a) { return __builtin_bit_cast(int, a); }
inline long long __double_as_longlong(double a) { return __builtin_bit_cast(long long, a); }
inline float __int_as_float(uint32_t a) { return __builtin_bit_cast(float, a); }
inline double __longlong_as_double(uint64_t a) { return __builtin_bit_cast(double, a); }

namespace host {
// A kernel with the structs that it takes.
typedef void Kernel(const void* const* structs);
struct Running;

// Every thread of every block on its own, from its first line to its last.
void one_by_one(Kernel* kernel, const void* const* structs, int blocks, int threads);
// Every block on its own, in order; a fault that the kernel made is returned as a word.
const char* launch(Kernel* kernel, const void* const* structs, int wide, int high, int threads, int bytes);
const char* launch_one(Kernel* kernel, const void* const* structs, int number, int wide, int high, int threads, int bytes);
// The blocks of several devices at the same time; each device has as many structs of its own.
const char* together(Kernel* kernel, const void* const* structs, int each, int devices, int wide, int threads, int bytes);
// A kernel that others run beside: its blocks, to be given turns as long as there is more to do.
Running* begin(Kernel* kernel, const void* const* structs, int wide, int threads, int bytes);
bool more(Running* running);

unsigned char* memory();
double exchange(double value, int from);
bool all(bool here);
void meet_warp();
void meet_block();
int lane();
void yield();
void linger();
void fetch(void* to, const void* from, int bytes);
void fetched();
void await(int left);
void copy_box(void* to, const unsigned long long* map, int x, int y, int z, unsigned long long* barrier);
void expect(unsigned long long* barrier, unsigned bytes);
bool come(unsigned long long* barrier);
}  // namespace host

template <typename V> V __shfl_sync(unsigned, V v, int from) { return (V)host::exchange(v, from); }
template <typename V> V __shfl_up_sync(unsigned, V v, int d) { return (V)host::exchange(v, host::lane() - d); }
template <typename V> V __shfl_down_sync(unsigned, V v, int d) { return (V)host::exchange(v, host::lane() + d); }
template <typename V> V __shfl_xor_sync(unsigned, V v, int d) { return (V)host::exchange(v, host::lane() ^ d); }
inline unsigned __ballot_sync(unsigned, bool p) {
  unsigned word = 0;
  for (int lane = 0; lane < 32; ++lane) word |= (unsigned)host::exchange(p, lane) << lane;
  return word;
}
inline int __all_sync(unsigned, int p) { return host::all(p != 0); }
inline void __syncwarp(unsigned = ~0u) { host::meet_warp(); }
inline void __syncthreads() { host::meet_block(); }
inline void __threadfence() {}
inline void __threadfence_system() {}
template <typename A> A atomicAdd_system(A* p, A v) { const A old = *p; *p += v; return old; }

template <int BYTES, bool NEAR = false> void pg_fetch(void* to, const void* from) { host::fetch(to, from, BYTES); }
inline void pg_fetched() { host::fetched(); }
template <int N> void pg_await() { host::await(N); }
inline unsigned char* pg_kept(unsigned char* shared) { return shared; }
inline void pg_fetch_line(void* to, const void* from) { host::fetch(to, from, 16); }
inline void pg_barrier_start(unsigned long long* b, unsigned n) { *b = (unsigned long long)n << 32 | n << 1; }
inline void arrive(unsigned long long* b) {
  const unsigned count = *b >> 32, left = ((unsigned)*b >> 1) - 1, phase = *b & 1;
  *b = (unsigned long long)count << 32 | (left ? left << 1 | phase : count << 1 | (phase ^ 1));
}
inline void pg_barrier_arrive(unsigned long long* b) {
  arrive(b);
  host::linger();
}
inline bool pg_barrier_passed(unsigned long long* b, unsigned parity) {
  host::yield();
  if (host::come(b)) arrive(b);
  return (*b & 1) != parity;
}
inline void pg_barriers_started() {}
inline void pg_barrier_expect(unsigned long long* b, unsigned bytes) { host::expect(b, bytes); }
template <bool KEPT> void pg_copy_box(void* to, const unsigned long long* map, int x, int y, int z, unsigned long long* b) {
  host::copy_box(to, map, x, y, z, b);
}
inline void pg_written() {}
template <class A> void pg_store_once(void* to, const A& value) { *static_cast<A*>(to) = value; }
inline void pg_count(unsigned* counter) { ++*counter; }
inline unsigned pg_look(const unsigned* counter) { host::yield(); return *counter; }

inline long long acquire_system(const long long* p) { host::yield(); return *p; }
inline void release_system(long long* p, long long v) { *p = v; }
inline void add_system(long long* p) { ++*p; }
inline void arrive_device(long long* p) { ++*p; }
inline long long add_device(long long* p) { return (*p)++; }
inline long long nanoseconds() {
  static long long now;  // every look at the clock takes a microsecond
  return now += 1000;
}

// A kernel as the driver on the host knows it.
struct HostKernel {
  host::Kernel* run;
  int structs;
  unsigned long long bytes[8];
  enum { THREADS, WARPS, TURNS, AWAITS } way;
  bool (*ready)(const void* const*);
};

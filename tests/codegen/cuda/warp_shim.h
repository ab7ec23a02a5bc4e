// Generated kernels as plain C++: every thread of a block is a fibre; a shuffle or barrier waits for its warp or block.
// Asynchronous copies leave NaN behind until they are awaited, so that a missing wait shows.
#include <ucontext.h>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Dim { int x = 0, y = 0, z = 0; };
static Dim threadIdx, blockIdx, blockDim, gridDim;
__attribute__((aligned(128))) unsigned char shared[1 << 20];

template <typename A> A min(A a, A b) { return b < a ? b : a; }
template <typename A> A max(A a, A b) { return a < b ? b : a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline float __int_as_float(uint32_t a) { float f; memcpy(&f, &a, 4); return f; }
inline double __longlong_as_double(uint64_t a) { double f; memcpy(&f, &a, 8); return f; }

namespace shim {
struct Copy { void* to; const void* from; int bytes; };
struct Fibre {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(1 << 16);
  std::vector<std::vector<Copy>> groups = {{}};
  bool done = false;
};
struct Meeting { int members = 0, here = 0; long turn = 0; };
static std::vector<Fibre>* fibres;
static ucontext_t scheduler;
static int current;
static std::vector<Meeting>* warps;
static Meeting block;
static std::vector<double>* slots;
static const char* fault;

inline void yield() { swapcontext(&(*fibres)[current].context, &scheduler); }
inline void meet(Meeting& m) {
  const long turn = m.turn;
  if (++m.here == m.members) { m.here = 0; ++m.turn; return; }
  while (m.turn == turn) yield();
}
inline Meeting& warp() { return (*warps)[current / 32]; }
template <typename V> V exchange(V value, int from) {
  (*slots)[current] = value;
  meet(warp());
  const int lane = current % 32;
  const V found = from < 0 || from > 31 ? value : static_cast<V>((*slots)[current - lane + from]);
  meet(warp());
  return found;
}
inline void leave(Meeting& m) { if (--m.members && m.here == m.members) { m.here = 0; ++m.turn; } }
}  // namespace shim

template <typename V> V __shfl_up_sync(unsigned, V v, int d) { return shim::exchange(v, shim::current % 32 - d); }
template <typename V> V __shfl_down_sync(unsigned, V v, int d) { return shim::exchange(v, shim::current % 32 + d); }
template <typename V> V __shfl_xor_sync(unsigned, V v, int d) { return shim::exchange(v, (shim::current % 32) ^ d); }
inline void __syncwarp(unsigned = ~0u) { shim::meet(shim::warp()); }
inline void __syncthreads() { shim::meet(shim::block); }

template <int BYTES> void pg_fetch(void* to, const void* from) {
  if (reinterpret_cast<uintptr_t>(from) % BYTES || reinterpret_cast<uintptr_t>(to) % BYTES) shim::fault = "alignment";
  if (static_cast<unsigned char*>(to) < shared || static_cast<unsigned char*>(to) + BYTES > shared + sizeof shared)
    shim::fault = "shared memory";
  memset(to, 0xff, BYTES);
  (*shim::fibres)[shim::current].groups.back().push_back({to, from, BYTES});
}
inline void pg_fetched() { (*shim::fibres)[shim::current].groups.push_back({}); }
template <int N> void pg_await() {
  auto& groups = (*shim::fibres)[shim::current].groups;
  while (static_cast<int>(groups.size()) > N + 1) {
    for (auto& c : groups.front()) memcpy(c.to, c.from, c.bytes);
    groups.erase(groups.begin());
  }
}

namespace shim {
static std::function<void()> kernel;
inline void run() {
  kernel();
  (*fibres)[current].done = true;
  leave(warp());
  leave(block);
  yield();
}

// Every block on its own, in order; a fault that the kernel made is returned as a word.
inline const char* launch(int blocks, int high, int threads, std::function<void()> body) {
  kernel = body;
  fault = nullptr;
  blockDim.x = threads;
  gridDim = {blocks, high, 1};
  for (int number = 0; number < blocks * high; ++number) {
    blockIdx = {number % blocks, number / blocks, 0};
    std::vector<Fibre> all(threads);
    std::vector<Meeting> groups(threads / 32, Meeting{32});
    std::vector<double> values(threads);
    fibres = &all; warps = &groups; slots = &values; block = Meeting{threads};
    memset(shared, 0xff, sizeof shared);
    for (auto& f : all) {
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.data();
      f.context.uc_stack.ss_size = f.stack.size();
      f.context.uc_link = &scheduler;
      makecontext(&f.context, run, 0);
    }
    for (int left = threads; left;) {
      left = 0;
      for (current = 0; current < threads; ++current) {
        if (all[current].done) continue;
        threadIdx.x = current;
        swapcontext(&scheduler, &all[current].context);
        left += !all[current].done;
      }
    }
  }
  return fault;
}
}  // namespace shim

// Generated kernels as plain C++: every thread of a block is a fibre; a shuffle or barrier waits for its warp or block.
// Asynchronous copies leave NaN behind until they are awaited, so that a missing wait shows.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __shared__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Dim { int x = 0, y = 0, z = 0; };
static Dim threadIdx, blockIdx, blockDim, gridDim;

template <typename A> A min(A a, A b) { return b < a ? b : a; }
template <typename A> A max(A a, A b) { return a < b ? b : a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline float __int_as_float(uint32_t a) { float f; memcpy(&f, &a, 4); return f; }
inline double __longlong_as_double(uint64_t a) { double f; memcpy(&f, &a, 8); return f; }

#if defined(__x86_64__)
// Leaves one stack, whose place it writes down, for another; no system call, unlike swapcontext.
extern "C" __attribute__((visibility("hidden"))) void shim_switch(void** from, void* to);
asm(R"(
.text
.hidden shim_switch
.globl shim_switch
.type shim_switch, @function
shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
namespace shim {
struct Context { void* stack = nullptr; };
inline void go(Context& from, Context& to) { shim_switch(&from.stack, to.stack); }
inline void start(Context& c, std::vector<char>& stack, void (*run)()) {
  auto top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack.data() + stack.size()) & ~uintptr_t{15});
  *--top = nullptr;  // where run() would return to
  *--top = reinterpret_cast<void*>(run);
  for (int n = 0; n < 6; ++n) *--top = nullptr;
  c.stack = top;
}
}  // namespace shim
#else
#include <ucontext.h>
namespace shim {
struct Context { ucontext_t all; };
inline void go(Context& from, Context& to) { swapcontext(&from.all, &to.all); }
inline void start(Context& c, std::vector<char>& stack, void (*run)()) {
  getcontext(&c.all);
  c.all.uc_stack.ss_sp = stack.data();
  c.all.uc_stack.ss_size = stack.size();
  makecontext(&c.all, run, 0);
}
}  // namespace shim
#endif

namespace shim {
struct Copy { void* to; const void* from; int bytes; };
struct Fibre {
  Context context;
  std::vector<char> stack = std::vector<char>(1 << 16);
  std::vector<std::vector<Copy>> groups = {{}};
  bool done = false;
};
struct Meeting { int members = 0, here = 0; long turn = 0; };
struct Block {
  std::function<void()> kernel;
  Dim place, grid;
  int threads;
  std::vector<Fibre> fibres;
  std::vector<Meeting> warps;
  Meeting all;
  std::vector<double> values;
  std::vector<unsigned char> memory;
};
static Block* block;
static int current;
static Context scheduler;
static const char* fault;

inline void yield() { go(block->fibres[current].context, scheduler); }
inline void meet(Meeting& m) {
  const long turn = m.turn;
  if (++m.here == m.members) { m.here = 0; ++m.turn; return; }
  while (m.turn == turn) yield();
}
inline Meeting& warp() { return block->warps[current / 32]; }
template <typename V> V exchange(V value, int from) {
  block->values[current] = value;
  meet(warp());
  const int lane = current % 32;
  const V found = from < 0 || from > 31 ? value : static_cast<V>(block->values[current - lane + from]);
  meet(warp());
  return found;
}
inline void leave(Meeting& m) { if (--m.members && m.here == m.members) { m.here = 0; ++m.turn; } }
inline unsigned char* memory() { return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(block->memory.data()) + 127) & ~uintptr_t{127}); }
}  // namespace shim

template <typename V> V __shfl_sync(unsigned, V v, int from) { return shim::exchange(v, from); }
template <typename V> V __shfl_up_sync(unsigned, V v, int d) { return shim::exchange(v, shim::current % 32 - d); }
template <typename V> V __shfl_down_sync(unsigned, V v, int d) { return shim::exchange(v, shim::current % 32 + d); }
template <typename V> V __shfl_xor_sync(unsigned, V v, int d) { return shim::exchange(v, (shim::current % 32) ^ d); }
inline int __all_sync(unsigned, int p) {
  bool all = true;
  for (int lane = 0; lane < 32; ++lane) all &= shim::exchange(p, lane) != 0;
  return all;
}
inline void __syncwarp(unsigned = ~0u) { shim::meet(shim::warp()); }
inline void __syncthreads() { shim::meet(shim::block->all); }

template <int BYTES> void pg_fetch(void* to, const void* from) {
  if (reinterpret_cast<uintptr_t>(from) % BYTES || reinterpret_cast<uintptr_t>(to) % BYTES) shim::fault = "alignment";
  const auto at = static_cast<unsigned char*>(to) - shim::block->memory.data();
  if (at < 0 || at + BYTES > static_cast<long>(shim::block->memory.size())) shim::fault = "shared memory";
  memset(to, 0xff, BYTES);
  shim::block->fibres[shim::current].groups.back().push_back({to, from, BYTES});
}
inline void pg_fetched() { shim::block->fibres[shim::current].groups.push_back({}); }
template <int N> void pg_await() {
  auto& groups = shim::block->fibres[shim::current].groups;
  while (static_cast<int>(groups.size()) > N + 1) {
    for (auto& c : groups.front()) memcpy(c.to, c.from, c.bytes);
    groups.erase(groups.begin());
  }
}

inline void __threadfence_system() {}
inline long long pg_acquire(const long long* p) { shim::yield(); return *p; }
inline long long pg_acquire_here(const long long* p) { shim::yield(); return *p; }
inline void pg_release(long long* p, long long v) { *p = v; }
inline void pg_add(long long* p) { ++*p; }
inline void pg_come_here(long long* p) { ++*p; }
inline long long pg_add_here(long long* p) { return (*p)++; }
inline long long pg_nanoseconds() {
  static long long now;  // every look at the clock takes a microsecond
  return now += 1000;
}

namespace shim {
inline void run() {
  block->kernel();
  block->fibres[current].done = true;
  leave(warp());
  leave(block->all);
  yield();
}

inline Block make(std::function<void()> kernel, Dim place, Dim grid, int threads, int bytes) {
  Block b{kernel, place, grid, threads, std::vector<Fibre>(threads), std::vector<Meeting>(threads / 32, Meeting{32}),
          Meeting{threads}, std::vector<double>(threads), std::vector<unsigned char>(bytes + 128, 0xff)};
  return b;
}

inline void prepare(std::vector<Block>& blocks) {
  for (auto& b : blocks)
    for (auto& f : b.fibres) start(f.context, f.stack, run);
}
static bool down;
// A warp, ahead of the others as long as its threads meet nobody else, so that a missing barrier shows.
inline bool advance(Block& b, int w) {
  bool left = false;
  for (int round = 0; round < 1 << 20; ++round) {
    const long met = b.warps[w].turn;
    left = false;
    for (current = 32 * w; current < 32 * (w + 1); ++current) {
      if (b.fibres[current].done) continue;
      threadIdx.x = current;
      go(scheduler, b.fibres[current].context);
      left |= !b.fibres[current].done;
    }
    if (b.warps[w].turn == met) break;
  }
  return left;
}
// Every thread as far as it gets; whether any is left.
inline bool turn(std::vector<Block>& blocks) {
  bool left = false;
  for (auto& b : blocks) {
    block = &b;
    blockIdx = b.place;
    gridDim = b.grid;
    blockDim = {b.threads, 1, 1};
    const int warps = b.threads / 32;
    down = !down;
    for (int w = 0; w < warps; ++w) left |= advance(b, down ? warps - 1 - w : w);
  }
  return left;
}
// All blocks at the same time.
inline void carry_out(std::vector<Block>& blocks) {
  prepare(blocks);
  while (turn(blocks)) {
  }
}

// Every block on its own, in order; a fault that the kernel made is returned as a word.
inline const char* launch(int wide, int high, int threads, int bytes, std::function<void()> kernel) {
  fault = nullptr;
  for (int y = 0; y < high; ++y)
    for (int x = 0; x < wide; ++x) {
      std::vector<Block> one;
      one.push_back(make(kernel, {x, y, 0}, {wide, high, 1}, threads, bytes));
      carry_out(one);
    }
  return fault;
}

// A kernel that others run beside: its blocks, to be given turns.
inline std::vector<Block>* begin(int wide, int threads, int bytes, std::function<void()> kernel) {
  fault = nullptr;
  auto* const blocks = new std::vector<Block>;
  for (int x = 0; x < wide; ++x) blocks->push_back(make(kernel, {x, 0, 0}, {wide, 1, 1}, threads, bytes));
  prepare(*blocks);
  return blocks;
}

// The blocks of several devices at the same time; each device has a kernel of its own.
inline const char* together(int devices, int wide, int threads, int bytes, std::function<void(int)> kernel) {
  fault = nullptr;
  std::vector<Block> blocks;
  blocks.reserve(devices * wide);
  for (int d = 0; d < devices; ++d)
    for (int x = 0; x < wide; ++x) blocks.push_back(make([=] { kernel(d); }, {x, 0, 0}, {wide, 1, 1}, threads, bytes));
  carry_out(blocks);
  return fault;
}
}  // namespace shim

// Generated kernels on the host: every thread of a block is a fibre; a shuffle or barrier waits for its warp or block.
// Asynchronous copies leave NaN behind until they are awaited, so that a missing wait shows.
#include "host_device.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

Dim threadIdx, blockIdx, blockDim, gridDim;

namespace host {
constexpr int STACK = 1 << 16;
constexpr size_t KEPT = 1 << 10;  // stacks of a thread of the host
}

#if defined(__x86_64__)
// Leaves one stack, whose place it writes down, for another; no system call, unlike swapcontext.
extern "C" __attribute__((visibility("hidden"))) void host_switch(void** from, void* to);
asm(R"(
.text
.hidden host_switch
.globl host_switch
.type host_switch, @function
host_switch:
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
namespace host {
struct Context { void* stack = nullptr; };
static void go(Context& from, Context& to) { host_switch(&from.stack, to.stack); }
static void start(Context& c, char* stack, void (*run)()) {
  auto top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + STACK) & ~uintptr_t{15});
  *--top = nullptr;  // where run() would return to
  *--top = reinterpret_cast<void*>(run);
  for (int n = 0; n < 6; ++n) *--top = nullptr;
  c.stack = top;
}
}  // namespace host
#else
#include <ucontext.h>
namespace host {
struct Context { ucontext_t all; };
static void go(Context& from, Context& to) { swapcontext(&from.all, &to.all); }
static void start(Context& c, char* stack, void (*run)()) {
  getcontext(&c.all);
  c.all.uc_stack.ss_sp = stack;
  c.all.uc_stack.ss_size = STACK;
  makecontext(&c.all, run, 0);
}
}  // namespace host
#endif

namespace host {
struct Copy { void* to; const void* from; int bytes; };
// A box on its way, as `tensor_map` in `host_maps.py` describes it, and a phase of a barrier that awaits some.
struct BoxCopy { unsigned char* to; const unsigned long long* map; long at[3]; unsigned long long* barrier; };
struct Awaiting { unsigned long long* barrier; long bytes; };
// A stack, from those of threads that have ended where there are any.
struct Stack {
  std::unique_ptr<char[]> memory;
  Stack() {
    if (ended().empty()) { memory.reset(new char[STACK]); return; }
    memory = std::move(ended().back());
    ended().pop_back();
  }
  Stack(Stack&&) = default;
  Stack& operator=(Stack&&) = delete;
  ~Stack() { if (memory && ended().size() < KEPT) ended().push_back(std::move(memory)); }
  static std::vector<std::unique_ptr<char[]>>& ended() { thread_local std::vector<std::unique_ptr<char[]>> all; return all; }
};
struct Fibre {
  Context context;
  Stack stack;
  std::vector<Copy> copies;  // that have not come
  std::vector<size_t> groups;  // how many there were at the end of each group that is awaited
  bool done = false;
  int late = 0;  // rounds of the scheduler that it stands still
};
struct Meeting { int members = 0, here = 0; long turn = 0; };
struct Block {
  Kernel* kernel;
  const void* const* structs;
  Dim place, grid;
  int threads;
  std::vector<Fibre> fibres;
  std::vector<Meeting> warps;
  Meeting all;
  std::vector<double> values[2];  // of this exchange and the last
  std::vector<unsigned char> memory;
  std::vector<BoxCopy> boxes;
  std::vector<Awaiting> awaiting;
  unsigned char* shared() { return reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(memory.data()) + 127) & ~uintptr_t{127}); }
};
struct Running { std::vector<Block> blocks; };
static Block* block;
static int current;
static Context scheduler;
static const char* fault;

// Now and then a thread that has arrived at a barrier in two halves goes on only when others have long done so.
void linger() {
  static unsigned seed = 1;
  seed = seed * 1664525u + 1013904223u;
  block->fibres[current].late = seed >> 30 ? 0 : 8;
  yield();
}
void yield() { go(block->fibres[current].context, scheduler); }
static void meet(Meeting& m) {
  const long turn = m.turn;
  if (++m.here == m.members) { m.here = 0; ++m.turn; return; }
  while (m.turn == turn) yield();
}
static void leave(Meeting& m) { if (--m.members && m.here == m.members) { m.here = 0; ++m.turn; } }
static Meeting& warp() { return block->warps[current / 32]; }
void meet_warp() { meet(warp()); }
void meet_block() { meet(block->all); }
int lane() { return current % 32; }
unsigned char* memory() { return block->shared(); }

// Where the values of a warp stand when all have given theirs; they last until all have given two more.
static const double* given(double value) {
  auto& values = block->values[warp().turn & 1];
  values[current] = value;
  meet(warp());
  return &values[current / 32 * 32];
}
double exchange(double value, int from) {
  const double* const values = given(value);
  return from < 0 || from > 31 ? value : values[from];
}
bool all(bool here) {
  const double* const values = given(here);
  for (int n = 0; n < 32; ++n) if (values[n] == 0) return false;
  return true;
}

void fetch(void* to, const void* from, int bytes) {
  if (reinterpret_cast<uintptr_t>(from) % bytes || reinterpret_cast<uintptr_t>(to) % bytes) fault = "alignment";
  const auto at = static_cast<unsigned char*>(to) - block->memory.data();
  if (at < 0 || at + bytes > static_cast<long>(block->memory.size())) fault = "shared memory";
  memset(to, 0xff, bytes);
  block->fibres[current].copies.push_back({to, from, bytes});
}
void fetched() { block->fibres[current].groups.push_back(block->fibres[current].copies.size()); }
void await(int left) {
  auto& copies = block->fibres[current].copies;
  auto& groups = block->fibres[current].groups;
  if (static_cast<int>(groups.size()) <= left) return;
  const auto first = groups.end() - left;
  const size_t come = first[-1];
  for (size_t n = 0; n < come; ++n) memcpy(copies[n].to, copies[n].from, copies[n].bytes);
  copies.erase(copies.begin(), copies.begin() + come);
  groups.erase(groups.begin(), first);
  for (auto& end : groups) end -= come;
}

void copy_box(void* to, const unsigned long long* map, int x, int y, int z, unsigned long long* barrier) {
  const long bytes = map[6] * map[7] * 8;
  const auto at = static_cast<unsigned char*>(to) - block->memory.data();
  if (at < 0 || at + bytes > static_cast<long>(block->memory.size())) fault = "shared memory";
  if (reinterpret_cast<uintptr_t>(to) % 128) fault = "alignment";
  memset(to, 0xff, bytes);
  block->boxes.push_back({static_cast<unsigned char*>(to), map, {x, y, z}, barrier});
}
void expect(unsigned long long* barrier, unsigned bytes) { block->awaiting.push_back({barrier, static_cast<long>(bytes)}); }
static void carry_out(const BoxCopy& c) {
  for (long y = 0; y < static_cast<long>(c.map[7]); ++y)
    for (long x = 0; x < static_cast<long>(c.map[6]); ++x) {
      const long place[3] = {c.at[0] + x, c.at[1] + y, c.at[2]};
      bool inside = true;
      for (int axis = 0; axis < 3; ++axis) inside = inside && place[axis] >= 0 && place[axis] < static_cast<long>(c.map[1 + axis]);
      unsigned char* const to = c.to + (y * c.map[6] + x) * 8;
      if (!inside) memset(to, 0, 8);
      else memcpy(to, reinterpret_cast<const void*>(c.map[0] + place[0] * 8 + place[1] * c.map[4] + place[2] * c.map[5]), 8);
    }
}
// What a phase of a barrier awaits comes as soon as anybody looks.
bool come(unsigned long long* barrier) {
  auto& all = block->awaiting;
  for (auto phase = all.begin(); phase != all.end(); ++phase) {
    if (phase->barrier != barrier) continue;
    long bytes = phase->bytes;
    auto& boxes = block->boxes;
    for (auto box = boxes.begin(); box != boxes.end();) {
      if (box->barrier != barrier) { ++box; continue; }
      carry_out(*box);
      bytes -= box->map[6] * box->map[7] * 8;
      box = boxes.erase(box);
    }
    if (bytes) fault = "bytes of tensor copies";
    all.erase(phase);
    return true;
  }
  return false;
}

static void run() {
  block->kernel(block->structs);
  block->fibres[current].done = true;
  leave(warp());
  leave(block->all);
  yield();
}

static Block make(Kernel* kernel, const void* const* structs, Dim place, Dim grid, int threads, int bytes) {
  return {kernel, structs, place, grid, threads, std::vector<Fibre>(threads), std::vector<Meeting>(threads / 32, Meeting{32}),
          Meeting{threads}, {std::vector<double>(threads), std::vector<double>(threads)},
          std::vector<unsigned char>(bytes + 128, 0xff)};
}

static void prepare(std::vector<Block>& blocks) {
  for (auto& b : blocks)
    for (auto& f : b.fibres) start(f.context, f.stack.memory.get(), run);
}
static bool down;
// A warp, ahead of the others as long as its threads meet nobody else, so that a missing barrier shows.
static bool advance(Block& b, int w) {
  bool left = false;
  for (int round = 0; round < 1 << 20; ++round) {
    const long met = b.warps[w].turn;
    left = false;
    for (current = 32 * w; current < 32 * (w + 1); ++current) {
      if (b.fibres[current].done) continue;
      left |= b.fibres[current].late > 0;
      if (b.fibres[current].late > 0 && (round || --b.fibres[current].late > 0)) continue;
      threadIdx.x = current;
      go(scheduler, b.fibres[current].context);
      left |= !b.fibres[current].done;
    }
    if (b.warps[w].turn == met) break;
  }
  return left;
}
// Every thread as far as it gets; whether any is left.
static bool turn(std::vector<Block>& blocks) {
  bool left = false;
  for (auto& b : blocks) {
    block = &b;
    blockIdx = b.place;
    gridDim = b.grid;
    blockDim = {(unsigned)b.threads, 1, 1};
    const int warps = b.threads / 32;
    down = !down;
    for (int w = 0; w < warps; ++w) left |= advance(b, down ? warps - 1 - w : w);
  }
  return left;
}
static void carry_out(std::vector<Block> blocks) {
  prepare(blocks);
  while (turn(blocks)) {
  }
}

void one_by_one(Kernel* kernel, const void* const* structs, int blocks, int threads) {
  blockDim = {(unsigned)threads, 1, 1};
  gridDim = {(unsigned)blocks, 1, 1};
  for (blockIdx = {}; blockIdx.x < gridDim.x; ++blockIdx.x)
    for (threadIdx = {}; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(structs);
  threadIdx = {};
}

const char* launch_one(Kernel* kernel, const void* const* structs, int number, int wide, int high, int threads, int bytes) {
  fault = nullptr;
  const Dim grid{(unsigned)wide, (unsigned)high, 1}, place{(unsigned)(number % wide), (unsigned)(number / wide), 0};
  std::vector<Block> one;
  one.push_back(make(kernel, structs, place, grid, threads, bytes));
  carry_out(std::move(one));
  return fault;
}
const char* launch(Kernel* kernel, const void* const* structs, int wide, int high, int threads, int bytes) {
  for (int number = 0; number < wide * high; ++number)
    if (const char* found = launch_one(kernel, structs, number, wide, high, threads, bytes)) return found;
  return nullptr;
}

static void add_row(std::vector<Block>& blocks, Kernel* kernel, const void* const* structs, int wide, int threads, int bytes) {
  const Dim grid{(unsigned)wide, 1, 1};
  for (unsigned x = 0; x < grid.x; ++x) blocks.push_back(make(kernel, structs, {x, 0, 0}, grid, threads, bytes));
}
const char* together(Kernel* kernel, const void* const* structs, int each, int devices, int wide, int threads, int bytes) {
  fault = nullptr;
  std::vector<Block> blocks;
  for (int d = 0; d < devices; ++d) add_row(blocks, kernel, structs + d * each, wide, threads, bytes);
  carry_out(std::move(blocks));
  return fault;
}
Running* begin(Kernel* kernel, const void* const* structs, int wide, int threads, int bytes) {
  fault = nullptr;
  auto* const running = new Running;
  add_row(running->blocks, kernel, structs, wide, threads, bytes);
  prepare(running->blocks);
  return running;
}
bool more(Running* running) {
  if (turn(running->blocks)) return true;
  delete running;
  if (fault) abort();
  return false;
}
}  // namespace host

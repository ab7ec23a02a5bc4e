// The driver's entry points on the host: streams are queues of tasks, worked off in a random order when asked for.
#include "host_device.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <vector>
#include <functional>
#include <signal.h>
#include <sys/mman.h>
typedef long long W;
struct Task { std::function<void()> run; W event; long long point; W notice; std::function<bool()> able = nullptr;
              std::function<bool()> more = nullptr; };
struct Notice { long long* flag; long long value; long long budget; long long* board; long long op; long long report; };
static std::recursive_mutex lock;
static std::map<W, std::deque<Task>> streams;
static std::map<W, long long> recorded, reached, stamps;
static long long work = 0;
static std::mt19937 order(1);
static std::vector<std::pair<W, Task>>* capturing = nullptr;

using Clock = std::chrono::steady_clock;
static Clock::time_point moved;  // when something was last issued or done: others may be about to issue what is missing
static const auto PATIENCE = std::chrono::milliseconds(300);

static void put(W stream, Task task) { moved = Clock::now(); if (capturing) capturing->push_back({stream, task}); else streams[stream].push_back(task); }
static const int SPAN = 300;  // turns during which one stream has none as long as others can go on
static W late;
static int turns;
static bool ready(const Task& t) {
  if (t.able && !t.able()) return false;
  if (t.event && reached[t.event] < t.point) return false;
  if (t.notice) { auto n = (const Notice*)t.notice; return *n->flag >= n->value || n->board[0]; }
  return true;
}
static bool step(bool give_up) {
  std::vector<W> can, waiting;
  for (auto& [s, q] : streams) if (!q.empty()) (ready(q.front()) ? can : waiting).push_back(s);
  if (can.empty()) {
    if (!give_up || Clock::now() - moved < PATIENCE) return false;
    for (W s : waiting) if (streams[s].front().notice) {
      auto n = (const Notice*)streams[s].front().notice;
      long long* report = n->board + n->report;
      if (!report[0]) { report[0] = n->op + 1; report[1] = n->value; report[2] = *n->flag; }
      n->board[0] = 1;
    }
    return std::any_of(waiting.begin(), waiting.end(), [](W s) { return streams[s].front().notice != 0; });
  }
  moved = Clock::now();
  if (turns++ % SPAN == 0) late = std::next(streams.begin(), order() % streams.size())->first;
  if (can.size() > 1) std::erase(can, late);
  W s = can[order() % can.size()];
  if (auto& first = streams[s].front(); first.more && first.more()) return true;
  Task t = streams[s].front(); streams[s].pop_front();
  ++work;
  if (t.run) t.run();
  return true;
}
// Pages of ranges over several devices. While a kernel of a device runs the others' are closed to it, but where it was
// granted access; a stray access is noted, and then let be.
struct Page { char* at; W bytes; unsigned long long rights; };
static std::vector<Page> pages;
static bool strayed = false;
static thread_local W context = 0;
static struct sigaction usual;
static void stray(int, siginfo_t* info, void*) {
  for (auto& page : pages) if ((char*)info->si_addr >= page.at && (char*)info->si_addr < page.at + page.bytes) {
    strayed = true;
    mprotect(page.at, page.bytes, PROT_READ | PROT_WRITE);
    return;
  }
  sigaction(SIGSEGV, &usual, nullptr);
}
struct Within {
  explicit Within(W device) {
    if (pages.empty()) return;
    struct sigaction own{};
    own.sa_sigaction = stray;
    own.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &own, &usual);
    for (auto& page : pages) mprotect(page.at, page.bytes, page.rights >> device & 1 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  ~Within() {
    if (pages.empty()) return;
    for (auto& page : pages) mprotect(page.at, page.bytes, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &usual, nullptr);
  }
};
static int delay = 0;
// Threads that issue side by side get out of step: every call first waits for up to `delay` microseconds, now and then.
static int hold() {
  static std::atomic<int> born{0};
  static thread_local std::mt19937 mine(++born);
  if (delay && mine() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(mine() % delay));
  return 0;
}
#define GUARD int held = hold(); (void)held; std::lock_guard<std::recursive_mutex> guard(lock)
extern "C" {
void seed(int n) { order.seed(n); }
void delays(int most) { delay = most; }
int cuCtxSetCurrent(W wanted) { context = wanted; return 0; }
W current() { return context; }
W reserve(W count) { return (W)mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
void unreserve(W at, W count) { munmap((void*)at, count); }
void map_memory(W at, W count) { GUARD; pages.push_back({(char*)at, count, 0}); }
void unmap(W at) { GUARD; std::erase_if(pages, [=](auto& page) { return page.at == (char*)at; }); }
void grant(W at, W rights) { GUARD; for (auto& page : pages) if (page.at == (char*)at) page.rights = rights; }
int stray_access() { GUARD; const bool found = strayed; strayed = false; return found; }
int cuStreamQuery(W stream) { GUARD; while (!streams[stream].empty()) if (!step(true)) return 600; return 0; }
int cuEventQuery(W event) { GUARD; while (reached[event] < recorded[event]) if (!step(true)) return 600; return 0; }
W stamp(W event) { GUARD; return stamps[event]; }
int drain() { GUARD; while (step(false)); return 0; }
int cuEventRecord(W event, W stream) {
  GUARD;
  if (capturing) {  // the point is counted when the graph runs
    capturing->push_back({stream, {nullptr, event, -1, 0}}); return 0;
  }
  long long point = ++recorded[event];
  put(stream, {[=] { reached[event] = std::max(reached[event], point); stamps[event] = work; }, 0, 0, 0}); return 0;
}
int cuStreamWaitEvent(W stream, W event, W) {
  GUARD;
  if (capturing) { capturing->push_back({stream, {nullptr, event, -2, 0}}); return 0; }
  put(stream, {nullptr, event, recorded[event], 0}); return 0;
}
struct Word { W kind; long long* address; long long value; W flags, alias, none; };
int cuStreamBatchMemOp(W stream, W count, const Word* words, W) {
  GUARD;
  if (capturing || !count) return 1;  // the count that a graph would wait for were the same at every launch
  for (const Word& given : std::vector<Word>(words, words + count)) {
    Task task{nullptr, 0, 0, 0};
    if (given.kind == 4) task.able = [=] { return *given.address >= given.value; };
    else if (given.kind == 5) task.run = [=] { *given.address = given.value; };
    else return 1;
    put(stream, task);
  }
  return 0;
}
static void copy_runs(char* d, const char* s, W run, W rows, W dp, W sp, W planes, W dpp, W spp) {
  for (W p = 0; p < planes; ++p) for (W r = 0; r < rows; ++r) std::memcpy(d + p * dpp + r * dp, s + p * spp + r * sp, run);
}
int cuMemcpyAsync(W d, W s, W n, W stream) { GUARD; put(stream, {[=] { std::memcpy((void*)d, (void*)s, n); }, 0, 0, 0}); return 0; }
int cuMemcpy2DAsync(const W* w, W stream) {
  GUARD; std::vector<W> c(w, w + 16);
  put(stream, {[=] { copy_runs((char*)c[11], (char*)c[4], c[14], c[15], c[13], c[6], 1, 0, 0); }, 0, 0, 0}); return 0;
}
int cuMemcpy3DAsync(const W* w, W stream) {
  GUARD; std::vector<W> c(w, w + 25);
  put(stream, {[=] { copy_runs((char*)c[17], (char*)c[6], c[22], c[23], c[20], c[9], c[24], c[20] * c[21], c[9] * c[10]); }, 0, 0, 0});
  return 0;
}
int cuLaunchKernel(W f, W gx, W gy, W, W bx, W, W, W shared, W stream, void** params, W) {
  GUARD; auto k = (const HostKernel*)f;
  std::vector<std::shared_ptr<std::vector<char>>> given;
  for (int n = 0; n < k->structs; ++n)
    given.push_back(std::make_shared<std::vector<char>>((char*)params[n], (char*)params[n] + k->bytes[n]));
  auto all = std::make_shared<std::vector<const void*>>();
  for (auto& g : given) all->push_back(g->data());
  if (!gx) return 1;
  const W device = context - 1000;
  Task task{nullptr, 0, 0, 0};
  if (k->ready) task.able = [=] { return k->ready(all->data()); };
  switch (k->way) {
    case HostKernel::AWAITS: task.notice = (W)given[0]->data(); task.run = [given] {}; break;
    case HostKernel::THREADS: task.run = [=] { auto keep = given; host::one_by_one(k->run, all->data(), gx, bx); }; break;
    case HostKernel::WARPS: {  // block by block, in a random order, between which other streams have their turns
      auto left = std::make_shared<std::vector<int>>();
      task.more = [=] {
        auto keep = given;
        if (left->empty()) {
          for (int n = 0; n < gx * gy; ++n) left->push_back(n);
          std::shuffle(left->begin(), left->end(), order);
        }
        Within rights(device);
        if (host::launch_one(k->run, all->data(), left->back(), gx, gy, bx, shared)) abort();
        left->pop_back();
        return !left->empty();
      };
      break;
    }
    case HostKernel::TURNS: {
      auto held = std::make_shared<host::Running*>(nullptr);
      task.more = [=] {
        auto keep = given;
        if (!*held) *held = host::begin(k->run, all->data(), gx, bx, shared);
        const bool left = host::more(*held);
        if (!left) *held = nullptr;  // a graph launches it again
        return left;
      };
    }
  }
  put(stream, task);
  return 0;
}
int cuLaunchCooperativeKernel(W f, W gx, W gy, W gz, W bx, W by, W bz, W shared, W stream, void** params) {
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, 0);
}
// NCCL among processes: memory that they share has a line of slots from each rank to each other.
struct Comm { long long rank, size; char* slots; };
static const long long SLOTS = 64, STRIDE = 1 << 16;
static long long* slot(const Comm* c, W from, W to, long long n) {
  return (long long*)(c->slots + ((from * c->size + to) * SLOTS + n % SLOTS) * STRIDE);
}
static std::map<W, long long> sent, got;
int ncclGroupStart() { return 0; }
int ncclGroupEnd() { return 0; }
int ncclSend(const char* data, W count, W, W peer, const Comm* c, W stream) {
  GUARD;
  if (count > STRIDE - 8) return 1;
  long long* s = slot(c, c->rank, peer, sent[peer]++);
  Task task{[=] { std::memcpy(s + 1, data, count); __atomic_store_n(s, 1, __ATOMIC_RELEASE); }, 0, 0, 0};
  task.able = [=] { return !__atomic_load_n(s, __ATOMIC_ACQUIRE); };
  put(stream, task);
  return 0;
}
int ncclRecv(char* data, W count, W, W peer, const Comm* c, W stream) {
  GUARD;
  long long* s = slot(c, peer, c->rank, got[peer]++);
  Task task{[=] { std::memcpy(data, s + 1, count); __atomic_store_n(s, 0, __ATOMIC_RELEASE); }, 0, 0, 0};
  task.able = [=] { return __atomic_load_n(s, __ATOMIC_ACQUIRE) != 0; };
  put(stream, task);
  return 0;
}
W begin_capture() { GUARD; capturing = new std::vector<std::pair<W, Task>>(); return 0; }
W end_capture() { GUARD; W g = (W)capturing; capturing = nullptr; return g; }
int cuGraphLaunch(W graph, W origin) {
  GUARD;
  put(origin, {[=] {
    auto saved = streams; streams.clear();
    for (auto& [s, t] : *(std::vector<std::pair<W, Task>>*)graph) {
      if (t.point == -1) cuEventRecord(t.event, s);
      else if (t.point == -2) cuStreamWaitEvent(s, t.event, 0);
      else put(s, t);
    }
    for (auto until = Clock::now() + std::chrono::seconds(20); Clock::now() < until;) {  // other processes may be late
      while (step(false));
      if (std::all_of(streams.begin(), streams.end(), [](auto& one) { return one.second.empty(); })) break;
      std::this_thread::yield();
    }
    streams = saved;
  }, 0, 0, 0});
  return 0;
}
}

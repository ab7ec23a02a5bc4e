// A second opinion on the GPU experiments: a minimal C++ program with its own code and the CUDA runtime.
// Prints one JSON list for `tools/gpu_probe --reference PROGRAM`; words name the experiments, all of them for none.
// Build: nvcc -O3 -std=c++17 -arch=native tools/reference_probe.cu -o reference_probe
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/atomic>
#include <cuda_runtime.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace cg = cooperative_groups;

static void check(cudaError_t code, int line) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(code));
    std::exit(1);
}
#define CHECK(call) check((call), __LINE__)

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

static bool first = true;
static void say(const std::string& quantity, const std::string& at, double value) {
    std::printf("%s\n {\"quantity\": \"%s\", \"at\": {%s}, \"median\": %.9g}", first ? "[" : ",", quantity.c_str(),
                at.c_str(), value);
    first = false;
}

// Waits are bounded: about two seconds.
constexpr long long kBudget = 4000000000LL;

__global__ void hold(volatile int* word) {
    long long begin = clock64();
    while (*word == 0 && clock64() - begin < 5 * kBudget) {}
}
__global__ void nothing() {}
__global__ void linger(int units, int cycles) {
    long long begin = clock64();
    while (clock64() - begin < (long long)units * cycles) {}
}
__global__ void store(int4* to, const int4* from, size_t count) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}
__global__ void sync_cg(int repeats) {
    for (int r = 0; r < repeats; ++r) cg::this_grid().sync();
}

using Word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using Wide = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

__global__ void sync_counter(unsigned* counter, int repeats) {
    for (int r = 1; r <= repeats; ++r) {
        __syncthreads();
        if (threadIdx.x == 0) {
            long long begin = clock64();
            Word(*counter).fetch_add(1, cuda::memory_order_acq_rel);
            while ((int)(Word(*counter).load(cuda::memory_order_acquire) - gridDim.x * r) < 0 &&
                   clock64() - begin < kBudget) {}
        }
        __syncthreads();
    }
}

struct Flags {
    unsigned* of[16];
};

__global__ void sync_devices(unsigned* counter, const __grid_constant__ Flags flags, int me, int count, int repeats) {
    const int lane = threadIdx.x;
    const bool concerned = lane < count;
    unsigned* const raised = flags.of[concerned ? lane : 0] + me * 32;
    unsigned* const watched = flags.of[me] + lane * 32;
    for (int r = 1; r <= repeats; ++r) {
        __syncthreads();
        if (lane < 32) {
            const bool arrived = lane == 0 && Word(*counter).fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x * r - 1;
            const bool last = __any_sync(~0u, arrived);
            __syncwarp();
            if (last && concerned) Wide(*raised).store(r, cuda::memory_order_release);
            long long begin = clock64();
            while (concerned && (int)(Wide(*watched).load(cuda::memory_order_acquire) - r) < 0 &&
                   clock64() - begin < kBudget) {}
        }
        __syncthreads();
    }
}

// The gate, event, work, event method of bandwidth tests; seconds, the median of five.
static double behind_gate(cudaStream_t stream, const std::function<void()>& work) {
    int* word;
    cudaEvent_t a, b;
    CHECK(cudaHostAlloc(&word, sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped));
    CHECK(cudaEventCreate(&a));
    CHECK(cudaEventCreate(&b));
    work();
    CHECK(cudaDeviceSynchronize());
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
        *(volatile int*)word = 0;
        hold<<<1, 1, 0, stream>>>(word);
        CHECK(cudaEventRecord(a, stream));
        work();
        CHECK(cudaEventRecord(b, stream));
        *(volatile int*)word = 1;
        CHECK(cudaEventSynchronize(b));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, a, b));
        seconds.push_back(ms * 1e-3);
    }
    CHECK(cudaEventDestroy(a));
    CHECK(cudaEventDestroy(b));
    CHECK(cudaFreeHost(word));
    return median(seconds);
}

static void bandwidths(int devices) {
    const size_t size = 512u << 20;
    char *here, *there = nullptr, *also;
    cudaStream_t stream;
    CHECK(cudaSetDevice(0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&here, size));
    CHECK(cudaMalloc(&also, size));
    auto copies = [&](char* to) {
        return [=] { for (int i = 0; i < 16; ++i) CHECK(cudaMemcpyAsync(to, here, size, cudaMemcpyDefault, stream)); };
    };
    double s = behind_gate(stream, copies(also));
    say("device_copy_bandwidth", "\"device\": 0, \"route\": \"copy engine\"", 2.0 * 16 * size / s);
    if (devices > 1) {
        CHECK(cudaSetDevice(1));
        CHECK(cudaMalloc(&there, size));
        CHECK(cudaSetDevice(0));
        const std::string at = "\"ways\": 1, \"source\": 0, \"target\": 1, \"route\": ";
        s = behind_gate(stream, copies(there));
        say("peer_copy_bandwidth", at + "\"copy engine\"", 16.0 * size / s);
        int sms;
        CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
        s = behind_gate(stream, [&] {
            for (int i = 0; i < 4; ++i) store<<<sms * 4, 512, 0, stream>>>((int4*)there, (int4*)here, size / 16);
        });
        say("peer_copy_bandwidth", at + "\"store\"", 4.0 * size / s);
        CHECK(cudaFree(there));
    }
    CHECK(cudaFree(here));
    CHECK(cudaFree(also));
    CHECK(cudaStreamDestroy(stream));
}

// The driver's own launch calls, as the experiments use them; the runtime's <<<>>> goes through these.
using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                            void**, void**);
using Cooperative = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 CUstream, void**);
using Wait = CUresult (*)(CUstream);
using Use = CUresult (*)(CUcontext);
using Several = CUresult (*)(CUDA_LAUNCH_PARAMS*, unsigned, unsigned);

template <class Entry>
static Entry driver(const char* name) {
    void* entry;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found));
    return (Entry)entry;
}

static CUfunction function(const void* kernel) {
    cudaFunction_t found;
    CHECK(cudaGetFuncBySymbol(&found, kernel));
    return (CUfunction)found;
}

constexpr int kPlaces = 25;

// Moves this thread to another of the processors, the members of a crew far apart; some are slower than others. The
// last place gives all back.
static void move(int place, int member = 0, int crew = 1) {
    static cpu_set_t every;
    static const int once = sched_getaffinity(0, sizeof every, &every);
    const int count = CPU_COUNT(&every), wanted = (place * count / kPlaces + member * count / crew) % count;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &every) && seen++ == wanted) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, once || place == kPlaces ? &every : &one);
}

// Definitions, all by the host's clock from before the first launch to the return of the wait, pair by pair: medians
// over 25 or 9 pairs on one processor and stream after the other, and the median of these:
//   null_kernel_latency: (five launches and a wait - one launch and a wait) / 4; empty kernel, one block of 32.
//   round_trip: one launch of it and a wait.
//   launch_overhead: (33 kernels that wait 40000 cycles - one that waits 33 * 40000) / 32, equation 6 of the study.
static void launches() {
    CHECK(cudaSetDevice(0));
    cudaStream_t streams[5], stream;  // the first one of a process is faster than the others
    for (auto& each : streams) CHECK(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
    const auto start = driver<Launch>("cuLaunchKernel");
    const auto together = driver<Cooperative>("cuLaunchCooperativeKernel");
    const auto finish = driver<Wait>("cuStreamSynchronize");
    const CUfunction null = function((const void*)nothing), wait = function((const void*)linger);
    int units, cycles = 40000, worst = 0;
    auto timed = [&](int kernels, auto&& launch) {
        double begin = now();
        for (int i = 0; i < kernels; ++i) launch();
        worst |= finish(stream);
        return now() - begin;
    };
    auto latency = [&](const char* at, auto&& launch) {
        std::vector<double> medians, rounds;
        for (int place = 0; place < kPlaces; ++place) {
            std::vector<double> each, alone;
            move(place);
            stream = streams[place % 5];
            timed(5, launch);
            for (int i = 0; i < 25; ++i) {
                alone.push_back(timed(1, launch));
                each.push_back((timed(5, launch) - alone.back()) / 4);
            }
            medians.push_back(median(each));
            rounds.push_back(median(alone));
        }
        say("null_kernel_latency", at, median(medians));
        say("round_trip", at, median(rounds));
    };
    auto overhead = [&](const char* at, auto&& launch) {
        std::vector<double> medians;
        for (int place = 0; place < kPlaces; ++place) {
            std::vector<double> each;
            move(place);
            stream = streams[place % 5];
            timed(1, [&] { launch(1); });
            for (int i = 0; i < 9; ++i) {
                double many = timed(33, [&] { launch(1); });
                double one = timed(1, [&] { launch(33); });
                each.push_back((many - one) / 32);
            }
            medians.push_back(median(each));
        }
        say("launch_overhead", at, median(medians));
    };
    void* arguments[] = {&units, &cycles};
    latency("\"how\": \"plain\"", [&] { worst |= start(null, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr); });
    latency("\"how\": \"cooperative\"", [&] { worst |= together(null, 1, 1, 1, 32, 1, 1, 0, stream, nullptr); });
    latency("\"how\": \"plain\", \"by\": \"runtime\"", [&] { nothing<<<1, 32, 0, stream>>>(); });
    overhead("\"how\": \"plain\"", [&](int n) {
        units = n;
        worst |= start(wait, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
    });
    overhead("\"how\": \"cooperative\"", [&](int n) {
        units = n;
        worst |= together(wait, 1, 1, 1, 32, 1, 1, 0, stream, arguments);
    });
    overhead("\"how\": \"plain\", \"by\": \"runtime\"", [&](int n) { linger<<<1, 32, 0, stream>>>(n, cycles); });
    move(kPlaces);
    CHECK(worst ? cudaErrorLaunchFailure : cudaGetLastError());
    for (auto& each : streams) CHECK(cudaStreamDestroy(each));
}

static double per_barrier(int count, const std::function<void(int, int)>& launch) {
    std::vector<double> each;
    for (int i = 0; i < 16; ++i) {
        double seconds[2];
        for (int k = 0; k < 2; ++k) {
            double begin = now();
            launch(k ? 2050 : 50, i);
            for (int d = 0; d < count; ++d) {
                CHECK(cudaSetDevice(d));
                CHECK(cudaDeviceSynchronize());
            }
            seconds[k] = now() - begin;
        }
        if (i) each.push_back((seconds[1] - seconds[0]) / 2000);
    }
    return median(each);
}

static int multiprocessors() {
    int count;
    CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

static std::string shape(int blocks) {
    return "\"blocks_per_multiprocessor\": " + std::to_string(blocks) + ", \"threads\": 256";
}

// Every sample has a counter of its own: parts of the L2 lie at different distances.
static void grid_barriers() {
    unsigned* counters;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&counters, 16 * 4096));
    for (int blocks : {1, 2}) {
        const int grid = multiprocessors() * blocks;
        say("grid_sync_of_cooperative_groups", shape(blocks), per_barrier(1, [&](int repeats, int) {
                void* arguments[] = {&repeats};
                CHECK(cudaLaunchCooperativeKernel((void*)sync_cg, grid, 256, arguments, 0, 0));
            }));
        say("grid_barrier", shape(blocks), per_barrier(1, [&](int repeats, int sample) {
                unsigned* counter = counters + 1024 * sample;
                void* arguments[] = {&counter, &repeats};
                CHECK(cudaMemset(counter, 0, 4096));
                CHECK(cudaLaunchCooperativeKernel((void*)sync_counter, grid, 256, arguments, 0, 0));
            }));
    }
    CHECK(cudaFree(counters));
}

static void device_barriers(int devices) {
    std::vector<unsigned*> counters(devices);
    Flags flags{};
    for (int d = 0; d < devices; ++d) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&counters[d], 4096));
        CHECK(cudaMalloc(&flags.of[d], 4096));
    }
    for (int blocks : {1, 2})
        for (int count = 2; count <= devices; count *= 2)
            say("device_barrier", shape(blocks) + ", \"devices\": " + std::to_string(count),
                per_barrier(count, [&](int repeats, int) {
                    for (int d = 0; d < count; ++d) {
                        CHECK(cudaSetDevice(d));
                        CHECK(cudaMemset(counters[d], 0, 4096));
                        CHECK(cudaMemset(flags.of[d], 0, 4096));
                        CHECK(cudaDeviceSynchronize());
                    }
                    for (int d = 0; d < count; ++d) {
                        const int grid = multiprocessors() * blocks;
                        void* arguments[] = {&counters[d], &flags, &d, &count, &repeats};
                        CHECK(cudaSetDevice(d));
                        CHECK(cudaLaunchCooperativeKernel((void*)sync_devices, grid, 256, arguments, 0, 0));
                    }
                }));
}

struct Member {
    CUcontext context;
    CUfunction null;
    cudaStream_t stream;
};
using Crew = std::vector<Member>;

struct Driver {
    Use use = driver<Use>("cuCtxSetCurrent");
    Launch start = driver<Launch>("cuLaunchKernel");
    Wait finish = driver<Wait>("cuStreamSynchronize");
    Several together = driver<Several>("cuLaunchCooperativeKernelMultiDevice");
};
static const Driver& calls() {
    static const Driver found;
    return found;
}
static void fine(int worst) { CHECK(worst ? cudaErrorLaunchFailure : cudaGetLastError()); }
static int launch(const Member& m) {
    return calls().start(m.null, 1, 1, 1, 32, 1, 1, 0, m.stream, nullptr, nullptr);
}

// Seconds of one turn of fifty, on all GPUs of the crew: a null kernel on each, and all of them have ended.
static double by_one_thread(const Crew& crew, int) {
    int worst = 0;
    const double begin = now();
    for (int turn = 0; turn < 50; ++turn) {
        for (const Member& m : crew) worst |= calls().use(m.context) | launch(m);
        for (const Member& m : crew) worst |= calls().use(m.context) | calls().finish(m.stream);
    }
    const double seconds = now() - begin;
    fine(worst);
    return seconds / 50;
}

// One launch over all GPUs per turn: the driver starts no kernel before all of the turn before have ended.
static double by_one_launch(const Crew& crew, int) {
    std::vector<CUDA_LAUNCH_PARAMS> launches;
    for (const Member& m : crew) launches.push_back({m.null, 1, 1, 1, 32, 1, 1, 0, m.stream, nullptr});
    int worst = 0;
    const double begin = now();
    for (int turn = 0; turn < 50; ++turn) worst |= calls().together(launches.data(), launches.size(), 0);
    for (const Member& m : crew) worst |= calls().use(m.context) | calls().finish(m.stream);
    const double seconds = now() - begin;
    fine(worst);
    return seconds / 50;
}

// The same with a thread per GPU, each on a processor of its own; they meet after every turn, twenty are not timed.
static double by_threads(const Crew& crew, int place) {
    const int count = crew.size();
    std::atomic<int> arrived{0}, worst{0};
    double seconds = 0;
    auto body = [&](int d) {
        move(place, d, count);
        int mine = calls().use(crew[d].context);
        double begin = 0;
        for (int turn = 1; turn <= 70; ++turn) {
            if (turn == 21) begin = now();
            mine |= launch(crew[d]) | calls().finish(crew[d].stream);
            arrived.fetch_add(1);
            while (arrived.load() < turn * count) {}
        }
        if (d == 0) seconds = (now() - begin) / 50;
        worst |= mine;
    };
    std::vector<std::thread> threads;
    for (int d = 0; d < count; ++d) threads.emplace_back(body, d);
    for (auto& thread : threads) thread.join();
    fine(worst);
    return seconds;
}

static void host_side(int devices) {
    Crew all(devices);
    for (int d = 0; d < devices; ++d) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamCreateWithFlags(&all[d].stream, cudaStreamNonBlocking));
        all[d].null = function((const void*)nothing);
        driver<CUresult (*)(CUcontext*)>("cuCtxGetCurrent")(&all[d].context);
    }
    const std::pair<const char*, double (*)(const Crew&, int)> ways[] = {
        {"one thread", by_one_thread}, {"one launch", by_one_launch}, {"a thread per GPU", by_threads}};
    for (int count = 1; count <= devices; ++count)
        for (const auto& [by, way] : ways) {
            const Crew crew(all.begin(), all.begin() + count);
            std::vector<double> each;
            way(crew, 0);
            for (int place = 0; place < kPlaces; ++place) {
                move(place);
                each.push_back(way(crew, place));
            }
            move(kPlaces);
            const std::string at = "\"devices\": " + std::to_string(count) + ", \"by\": \"" + by + "\"";
            say("host_side_barrier", at, median(each));
        }
}

int main(int words, char** word) {
    auto wanted = [&](const char* name) {
        return words == 1 || std::any_of(word + 1, word + words, [&](std::string one) { return one == name; });
    };
    int devices;
    move(kPlaces);  // remembers which processors there are
    CHECK(cudaGetDeviceCount(&devices));
    devices = std::min(devices, 16);
    for (int i = 0; i < devices; ++i)
        for (int j = 0; j < devices; ++j) {
            int reachable = 0;
            if (i == j) continue;
            CHECK(cudaSetDevice(i));
            CHECK(cudaDeviceCanAccessPeer(&reachable, i, j));
            if (reachable) CHECK(cudaDeviceEnablePeerAccess(j, 0));
        }
    if (wanted("peer-copy")) bandwidths(devices);
    if (wanted("launch")) launches();
    if (wanted("grid-barrier")) grid_barriers();
    if (wanted("device-barrier")) device_barriers(devices);
    if (wanted("host-side-barrier")) host_side(devices);
    std::printf("%s\n]\n", first ? "[" : "");
}

// A second opinion on the GPU experiments: a minimal C++ program with its own code and the CUDA runtime.
// Prints one JSON list for `tools/gpu_probe --reference FILE`; the word `launch` measures launches alone.
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

__global__ void sync_devices(unsigned* counter, Flags flags, int me, int count, int repeats) {
    for (int r = 1; r <= repeats; ++r) {
        __syncthreads();
        if (threadIdx.x == 0 && Word(*counter).fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x * r - 1) {
            __threadfence_system();
            for (int g = 0; g < count; ++g) Wide(flags.of[g][me * 32]).store(r, cuda::memory_order_release);
        }
        if (threadIdx.x < count) {
            long long begin = clock64();
            while ((int)(Wide(flags.of[me][threadIdx.x * 32]).load(cuda::memory_order_acquire) - r) < 0 &&
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

// Moves this process to another of its processors; some are slower than others. The last place gives all back.
static void move(int place) {
    static cpu_set_t every;
    static const int once = sched_getaffinity(0, sizeof every, &every);
    const int wanted = place * CPU_COUNT(&every) / kPlaces;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &every) && seen++ == wanted) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, once || place == kPlaces ? &every : &one);
}

// Definitions, all by the host's clock from before the first launch to the return of the wait, pair by pair: medians
// over 25 or 9 pairs on one processor after the other, and the median of these:
//   null_kernel_latency: (five launches and a wait - one launch and a wait) / 4; empty kernel, one block of 32.
//   round_trip: one launch of it and a wait.
//   launch_overhead: (33 kernels that wait 40000 cycles - one that waits 33 * 40000) / 32, equation 6 of the study.
static void launches() {
    CHECK(cudaSetDevice(0));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const auto start = driver<Launch>("cuLaunchKernel");
    const auto together = driver<Cooperative>("cuLaunchCooperativeKernel");
    const CUfunction null = function((const void*)nothing), wait = function((const void*)linger);
    auto timed = [&](int kernels, auto&& launch) {
        double begin = now();
        for (int i = 0; i < kernels; ++i) launch();
        CHECK(cudaStreamSynchronize(stream));
        return now() - begin;
    };
    auto latency = [&](const char* at, auto&& launch) {
        std::vector<double> medians, rounds;
        for (int place = 0; place < kPlaces; ++place) {
            std::vector<double> each, alone;
            move(place);
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
    int units, cycles = 40000, worst = 0;
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
    CHECK(cudaStreamDestroy(stream));
}

static double per_barrier(int count, const std::function<void(int)>& launch) {
    std::vector<double> each;
    for (int i = 0; i < 16; ++i) {
        double seconds[2];
        for (int k = 0; k < 2; ++k) {
            double begin = now();
            launch(k ? 2050 : 50);
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

static void barriers(int devices) {
    int sms;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<unsigned*> counters(devices);
    Flags flags{};
    for (int d = 0; d < devices; ++d) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&counters[d], 4096));
        CHECK(cudaMalloc(&flags.of[d], 4096));
    }
    for (int blocks : {1, 2}) {
        const std::string at = "\"blocks_per_multiprocessor\": " + std::to_string(blocks) + ", \"threads\": 256";
        say("grid_sync_of_cooperative_groups", at, per_barrier(1, [&](int repeats) {
                void* arguments[] = {&repeats};
                CHECK(cudaSetDevice(0));
                CHECK(cudaLaunchCooperativeKernel((void*)sync_cg, sms * blocks, 256, arguments, 0, 0));
            }));
        say("grid_barrier", at, per_barrier(1, [&](int repeats) {
                void* arguments[] = {&counters[0], &repeats};
                CHECK(cudaSetDevice(0));
                CHECK(cudaMemset(counters[0], 0, 4096));
                CHECK(cudaLaunchCooperativeKernel((void*)sync_counter, sms * blocks, 256, arguments, 0, 0));
            }));
        for (int count = 2; count <= devices; count *= 2) {
            const std::string where = at + ", \"devices\": " + std::to_string(count);
            say("device_barrier", where, per_barrier(count, [&](int repeats) {
                    for (int d = 0; d < count; ++d) {
                        CHECK(cudaSetDevice(d));
                        CHECK(cudaMemset(counters[d], 0, 4096));
                        CHECK(cudaMemset(flags.of[d], 0, 4096));
                        CHECK(cudaDeviceSynchronize());
                    }
                    for (int d = 0; d < count; ++d) {
                        void* arguments[] = {&counters[d], &flags, &d, &count, &repeats};
                        CHECK(cudaSetDevice(d));
                        CHECK(cudaLaunchCooperativeKernel((void*)sync_devices, sms * blocks, 256, arguments, 0, 0));
                    }
                }));
        }
    }
}

// Seconds of one turn of fifty, on `count` GPUs: a null kernel on each, and all of them have ended.
static double by_one_thread(int count, const std::vector<cudaStream_t>& streams) {
    const double begin = now();
    for (int turn = 0; turn < 50; ++turn) {
        for (int d = 0; d < count; ++d) {
            CHECK(cudaSetDevice(d));
            nothing<<<1, 32, 0, streams[d]>>>();
        }
        for (int d = 0; d < count; ++d) CHECK(cudaStreamSynchronize(streams[d]));
    }
    return (now() - begin) / 50;
}

// One launch over all GPUs per turn: the driver starts no kernel before all of the turn before have ended.
static double by_one_launch(int count, const std::vector<cudaStream_t>& streams) {
    static const auto together = driver<Several>("cuLaunchCooperativeKernelMultiDevice");
    std::vector<CUDA_LAUNCH_PARAMS> launches(count);
    for (int d = 0; d < count; ++d) {
        CHECK(cudaSetDevice(d));
        launches[d] = {function((const void*)nothing), 1, 1, 1, 32, 1, 1, 0, streams[d], nullptr};
    }
    int worst = 0;
    const double begin = now();
    for (int turn = 0; turn < 50; ++turn) worst |= together(launches.data(), count, 0);
    for (int d = 0; d < count; ++d) CHECK(cudaStreamSynchronize(streams[d]));
    CHECK(worst ? cudaErrorLaunchFailure : cudaGetLastError());
    return (now() - begin) / 50;
}

// The same with a thread per GPU; the threads meet after every turn, ten of which are not timed.
static double by_threads(int count, const std::vector<cudaStream_t>& streams) {
    std::atomic<int> arrived{0};
    double seconds = 0;
    auto body = [&](int d) {
        CHECK(cudaSetDevice(d));
        double begin = 0;
        for (int turn = 1; turn <= 60; ++turn) {
            if (turn == 11) begin = now();
            nothing<<<1, 32, 0, streams[d]>>>();
            CHECK(cudaStreamSynchronize(streams[d]));
            arrived.fetch_add(1);
            while (arrived.load() < turn * count) {}
        }
        if (d == 0) seconds = (now() - begin) / 50;
    };
    std::vector<std::thread> crew;
    for (int d = 0; d < count; ++d) crew.emplace_back(body, d);
    for (auto& member : crew) member.join();
    return seconds;
}

static void host_side(int devices) {
    std::vector<cudaStream_t> streams(devices);
    for (int d = 0; d < devices; ++d) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamCreateWithFlags(&streams[d], cudaStreamNonBlocking));
    }
    const std::pair<const char*, double (*)(int, const std::vector<cudaStream_t>&)> ways[] = {
        {"one thread", by_one_thread}, {"one launch", by_one_launch}, {"a thread per GPU", by_threads}};
    for (int count = 1; count <= devices; ++count)
        for (const auto& [by, way] : ways) {
            std::vector<double> each;
            way(count, streams);
            for (int place = 0; place < kPlaces; ++place) {
                move(way == by_threads ? kPlaces : place);  // threads are to have processors of their own
                each.push_back(way(count, streams));
            }
            move(kPlaces);
            const std::string at = "\"devices\": " + std::to_string(count) + ", \"by\": \"" + by + "\"";
            say("host_side_barrier", at, median(each));
        }
}

int main(int words, char** word) {
    const std::string only = words > 1 ? word[1] : "";
    int devices;
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
    if (only != "launch") bandwidths(devices);
    launches();
    if (only != "launch") {
        barriers(devices);
        host_side(devices);
    }
    std::printf("\n]\n");
}

// Two GPUs, two processes: a kernel puts bytes and a signal into the other's memory, by NVSHMEM and by own stores.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -rdc=true -I$NVSHMEM/include benchmarks/cuda/nvshmem_put.cu \
//        -o nvshmem_put -L$NVSHMEM/lib -l:libnvshmem_host.so.3 -lnvshmem_device -lcuda
//   LD_LIBRARY_PATH=$NVSHMEM/lib NVSHMEM_DISABLE_NVLS=1 NVSHMEM_REMOTE_TRANSPORT=none ./nvshmem_put
//
// One block of each GPU in turns: microseconds one way, from the first store to the moment at which the other block
// goes on. One line of JSON for each size and way; 'right' says that all bytes of every turn had arrived.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvshmem.h>
#include <nvshmemx.h>

constexpr int TURNS = 2000, THREADS = 256;

#define CHECK(call)                                                                      \
    do {                                                                                 \
        const int code = static_cast<int>(call);                                         \
        if (code) {                                                                      \
            std::fprintf(stderr, "%s: code %d in line %d\n", #call, code, __LINE__);     \
            std::exit(1);                                                                \
        }                                                                                \
    } while (0)

enum class Way { put, stores };

template <Way WAY>
__device__ void send(uint4* theirs, const uint4* mine, int vectors, uint64_t* signal, uint64_t* theirSignal,
                     uint64_t turn, int peer) {
    if constexpr (WAY == Way::put) {
        nvshmemx_putmem_signal_nbi_block(const_cast<uint4*>(theirs), mine, vectors * sizeof(uint4), signal, turn,
                                         NVSHMEM_SIGNAL_SET, peer);
    } else {
        for (int i = threadIdx.x; i < vectors; i += THREADS) theirs[i] = mine[i];
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(theirSignal), "l"(turn) : "memory");
    }
}

template <Way WAY>
__device__ void await(uint64_t* signal, uint64_t turn) {
    if (threadIdx.x == 0) {
        if constexpr (WAY == Way::put) {
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, turn);
        } else {
            uint64_t seen;
            do asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(signal) : "memory");
            while (seen < turn);
        }
    }
    __syncthreads();
}

/** Turns between the two: what arrives is held against the turn's number, and sent back with the next one. */
template <Way WAY>
__global__ void __launch_bounds__(THREADS) turns(uint4* into, uint4* theirs, uint4* out, int vectors, uint64_t* signal,
                                                 uint64_t* theirSignal, uint64_t first, int rank, int* wrong) {
    for (int turn = 0; turn < TURNS; ++turn) {
        const uint64_t number = first + turn;
        const unsigned word = static_cast<unsigned>(number);
        for (int side = 0; side < 2; ++side) {
            if (side == rank) {
                for (int i = threadIdx.x; i < vectors; i += THREADS) out[i] = make_uint4(word, i, word ^ i, side);
                __syncthreads();
                send<WAY>(WAY == Way::put ? into : theirs, out, vectors, signal, theirSignal, number, 1 - rank);
            } else {
                await<WAY>(signal, number);
                for (int i = threadIdx.x; i < vectors; i += THREADS) {
                    const uint4 got = __ldcv(into + i);
                    if (got.x != word || got.y != i || got.z != (word ^ i) || got.w != side) atomicAdd(wrong, 1);
                }
                __syncthreads();
            }
        }
    }
}

int main() {
    auto* id = static_cast<nvshmemx_uniqueid_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    volatile int* made = reinterpret_cast<volatile int*>(id) + 1000;
    const pid_t child = fork();
    const int rank = child == 0 ? 1 : 0;
    if (rank == 0) {
        nvshmemx_uniqueid_t fresh = NVSHMEMX_UNIQUEID_INITIALIZER;
        CHECK(nvshmemx_get_uniqueid(&fresh));
        std::memcpy(id, &fresh, sizeof fresh);
        __sync_synchronize();
        *made = 1;
    }
    while (!*made) usleep(100);
    CHECK(cudaSetDevice(rank));
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t name = *id;
    CHECK(nvshmemx_set_attr_uniqueid_args(rank, 2, &name, &attributes));
    CHECK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes));
    constexpr size_t MOST = 1 << 20;
    auto* into = static_cast<uint4*>(nvshmem_malloc(MOST));
    auto* signal = static_cast<uint64_t*>(nvshmem_calloc(2, 128));
    uint4* out;
    int *wrong, found = 0;
    CHECK(cudaMalloc(&out, MOST));
    CHECK(cudaMalloc(&wrong, sizeof(int)));
    CHECK(cudaMemset(wrong, 0, sizeof(int)));
    auto* theirs = static_cast<uint4*>(nvshmem_ptr(into, 1 - rank));
    auto* theirSignal = static_cast<uint64_t*>(nvshmem_ptr(signal, 1 - rank));
    if (!theirs || !theirSignal) {
        std::fprintf(stderr, "rank %d: no address of the other's memory\n", rank);
        return 1;
    }
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    uint64_t first = 1;
    for (const size_t bytes : {16ul, 4096ul, 65536ul, MOST}) {
        const int vectors = static_cast<int>(bytes / sizeof(uint4));
        for (int sample = 0; sample < 6; ++sample) {  // the first two warm up
            const bool put = sample % 2;
            CHECK(cudaDeviceSynchronize());
            nvshmem_barrier_all();
            CHECK(cudaEventRecord(begin));
            if (put)
                turns<Way::put><<<1, THREADS>>>(into, theirs, out, vectors, signal, theirSignal, first, rank, wrong);
            else
                turns<Way::stores>
                    <<<1, THREADS>>>(into, theirs, out, vectors, signal + 16, theirSignal + 16, first, rank, wrong);
            CHECK(cudaEventRecord(end));
            CHECK(cudaDeviceSynchronize());
            float milliseconds;
            CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
            CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
            if (rank == 0 && sample > 1) {
                std::printf("{\"bytes\": %zu, \"way\": \"%s\", \"microseconds\": %.3f, \"right\": %s}\n", bytes,
                            put ? "nvshmem put with signal" : "own stores and a flag", milliseconds * 1e3 / TURNS / 2,
                            found ? "false" : "true");
                std::fflush(stdout);
            }
            first += TURNS;
        }
    }
    nvshmem_barrier_all();
    nvshmem_finalize();
    int status = 0;
    if (rank == 0) waitpid(child, &status, 0);
    return found || status;
}

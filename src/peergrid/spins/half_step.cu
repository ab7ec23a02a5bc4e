// One half step of the variables that a GPU owns: each drawn anew, given its four neighbours of the other colour.
//
// A warp makes 16 words. Four words share a counter: of the four numbers that lane l draws for a quad of words, each
// decides about bit l of one of them, and a ballot makes the word.

typedef unsigned int u32;
typedef unsigned long long u64;

#define MOST 16       // GPUs
#define GROUP 16      // words of a warp
#define LINE 16       // flags lie a line of 128 bytes apart

struct Relaxation {
  const uint4* neighbours[2];   // of red, of blue: of the variables that this GPU owns
  u32* words[2][MOST];          // all words of red and of blue in the memory of each GPU
  long long* flags[MOST];       // of each GPU: one for every sender, the half steps that it has made
  long long* arrived;           // blocks of this GPU that came to their end
  long long* fault;             // set where a wait was given up
  long long budget;             // nanoseconds of a wait
  u32 first, last, me, gpus;    // the words of this GPU, its number, how many there are
  u32 limits[5], seed[2];
};

__device__ __forceinline__ void philox(u32& a, u32& b, u32& c, u32& d, u32 k0, u32 k1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 one = (u64)0xD2511F53u * a, two = (u64)0xCD9E8D57u * c;
    a = (u32)(two >> 32) ^ b ^ k0;
    b = (u32)two;
    c = (u32)(one >> 32) ^ d ^ k1;
    d = (u32)one;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

__device__ __forceinline__ u32 bit(const u32* words, u32 variable) { return words[variable >> 5] >> (variable & 31) & 1; }

// The word that a lane has of those from `first` to `last`, of which a warp makes a group; neighbours: of the variables
// from word `origin` on; r: whatever has the limits and the seed.
template <class Rule>
__device__ __forceinline__ u32 drawn_word(const Rule& r, const uint4* neighbours, u32 origin, const u32* other, u32 first,
                                          u32 last, u32 group, u64 step) {
  const u32 lane = threadIdx.x % 32;
  const u32 l0 = r.limits[0], l1 = r.limits[1], l2 = r.limits[2], l3 = r.limits[3], l4 = r.limits[4];
  u32 mine = 0;
  for (u32 q = 0; q < GROUP / 4; ++q) {
    const u32 word = group * GROUP + 4 * q;
    if (word >= last) break;
    u32 drawn[4] = {(word / 4) * 32 + lane, (u32)step, (u32)(step >> 32), 0};
    philox(drawn[0], drawn[1], drawn[2], drawn[3], r.seed[0], r.seed[1]);
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      bool up = false;
      if (word + k >= first && word + k < last) {
        const uint4 n = __ldcs(neighbours + ((u64)(word + k - origin) * 32 + lane));
        const u32 sum = bit(other, n.x) + bit(other, n.y) + bit(other, n.z) + bit(other, n.w);
        up = drawn[k] >> 1 < (sum < 2 ? (sum ? l1 : l0) : sum == 2 ? l2 : sum == 3 ? l3 : l4);
      }
      const u32 made = __ballot_sync(~0u, up);
      if (lane == 4 * q + k) mine = made;
    }
  }
  return mine;
}

// The group of a warp.
__device__ __forceinline__ u32 group_of(u32 first) {
  return first / GROUP + blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
}

template <bool STORES> __device__ __forceinline__ void make(const Relaxation* r, u64 step) {
  const u32 target = 1 - (u32)(step & 1), lane = threadIdx.x % 32, first = r->first, last = r->last;
  const u32 group = group_of(first);
  const u32 mine = drawn_word(*r, r->neighbours[target], first, r->words[1 - target][r->me], first, last, group, step);
  const u32 word = group * GROUP + lane;
  if (lane < GROUP && word >= first && word < last)
    for (u32 gpu = 0; gpu < r->gpus; ++gpu)
      if (STORES || gpu == r->me) r->words[target][gpu][word] = mine;
}

// Copies bring the words to the other GPUs.
extern "C" __global__ void __launch_bounds__(256) half_step(const Relaxation* r, u64 step) { make<false>(r, step); }

// The words go straight into the memory of all GPUs. The half step begins when all have made the one before: then their
// words are here, and nobody reads the words that this one replaces.
extern "C" __global__ void __launch_bounds__(256) half_step_and_store(const Relaxation* r, u64 step) {
  if (threadIdx.x < r->gpus && threadIdx.x != r->me) {
    const long long* const flag = r->flags[r->me] + threadIdx.x * LINE;
    const long long begin = nanoseconds();
    while (acquire_system(flag) < (long long)step)
      if (nanoseconds() - begin > r->budget) {
        *r->fault = 1;
        break;
      }
  }
  __syncthreads();
  make<true>(r, step);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0 && (add_device(r->arrived) + 1) % gridDim.x == 0) {
    __threadfence_system();
    for (u32 gpu = 0; gpu < r->gpus; ++gpu) release_system(r->flags[gpu] + r->me * LINE, (long long)step + 1);
  }
}

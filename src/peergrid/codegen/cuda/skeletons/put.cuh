// The messages of an exchange between GPUs of several processes, put by NVSHMEM: a block for each part of a message.
//
// A part has three words on both sides, at the same place of the symmetric heap: the number of the message that may be
// put, which the receiver writes; that of the message that has arrived, which the sender's put writes; and that of the
// last message that this side has moved. Numbers are set, not added: puts may arrive in another order.

#include "nvshmem.cuh"
#include "system_memory.cuh"

struct Part {
  unsigned long long source, target;
  long long source_pitch[2], target_pitch[2], counts[2], run;
  unsigned long long words;
  int peer, sends;
};
struct Parts { const Part* parts; const long long* stop; };

// Runs before the last go without a signal, and are there before that of the last.
__device__ __forceinline__ void put_runs(const Part& part, unsigned long* arrived, unsigned long number) {
  for (long long i = 0; i < part.counts[0]; ++i)
    for (long long j = 0; j < part.counts[1]; ++j) {
      void* to = reinterpret_cast<void*>(part.target + i * part.target_pitch[0] + j * part.target_pitch[1]);
      const void* from = reinterpret_cast<const void*>(part.source + i * part.source_pitch[0] + j * part.source_pitch[1]);
      if (i + 1 < part.counts[0] || j + 1 < part.counts[1]) {
        nvshmemx_putmem_nbi_block(to, from, part.run, part.peer);
        continue;
      }
      if (i || j) nvshmem_fence();
      __syncthreads();
      nvshmemx_putmem_signal_block(to, from, part.run, arrived, number, NVSHMEM_SIGNAL_SET, part.peer);
    }
}

__device__ __forceinline__ void await_number(unsigned long* word, unsigned long number, const long long* stop) {
  for (unsigned look = 1; nvshmem_signal_fetch(word) < number; ++look)
    if (look % 256 == 0 && acquire_system(stop)) return;
  __threadfence_system();
}

// The blocks of all parts run at once, since each may wait for another process; `stop` ends the waiting.
extern "C" __global__ void __launch_bounds__(256) put_messages(const __grid_constant__ Parts p) {
  const Part part = p.parts[blockIdx.x];
  unsigned long *ready = reinterpret_cast<unsigned long*>(part.words), *arrived = ready + 1, *last = ready + 2;
  const unsigned long number = *last + 1;
  if (threadIdx.x == 0) {
    if (!part.sends) nvshmemx_signal_op(ready, number, NVSHMEM_SIGNAL_SET, part.peer);
    await_number(part.sends ? ready : arrived, number, p.stop);
  }
  __syncthreads();
  if (part.sends) put_runs(part, arrived, number);
  if (threadIdx.x == 0) *last = number;
}

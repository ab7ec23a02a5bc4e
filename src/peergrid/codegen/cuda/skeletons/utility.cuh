// The small kernels beside the computing ones: halos stored into a peer's memory, flags, searches, step counters.

#include "faults.cuh"

struct CopyBox { unsigned long long source, target; long long source_pitch[2], target_pitch[2]; int shape[3], first; };
struct Stores { const CopyBox* boxes; long long count; };
struct Signaled { long long* flag; long long value; long long timeout; long long* fault_log; long long op; long long record; };
struct Search { unsigned long long values; long long pitch[2]; int shape[3], spare; unsigned long long* found; };
struct Tick { long long* clock; long long steps; };

template <typename T> __device__ __forceinline__ void store_box(const Stores& s) {
  int n = 0;
  while (n + 1 < s.count && s.boxes[n + 1].first <= (int)blockIdx.x) ++n;
  const CopyBox box = s.boxes[n];
  long long at = (long long)((int)blockIdx.x - box.first) * blockDim.x + threadIdx.x;
  const int k = (int)(at % box.shape[2]);
  at /= box.shape[2];
  const int j = (int)(at % box.shape[1]);
  const int i = (int)(at / box.shape[1]);
  if (i >= box.shape[0]) return;
  const T* from = reinterpret_cast<const T*>(box.source) + i * box.source_pitch[0] + j * box.source_pitch[1];
  T* to = reinterpret_cast<T*>(box.target) + i * box.target_pitch[0] + j * box.target_pitch[1];
  to[k] = from[k];
}

// The smallest index, in C order, of a value that is NaN or infinite: one whose difference from itself is not zero.
template <typename T> __device__ __forceinline__ void search_box(const Search& s) {
  const long long row = s.shape[2], plane = row * s.shape[1], all = plane * s.shape[0];
  const T* values = reinterpret_cast<const T*>(s.values);
  const long long stride = (long long)gridDim.x * blockDim.x;
  for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < all; at += stride) {
    const T value = values[at / plane * s.pitch[0] + at % plane / row * s.pitch[1] + at % row];
    if (!(value - value == T(0))) {
      atomicMin(s.found, (unsigned long long)at);
      return;
    }
  }
}
extern "C" __global__ void __launch_bounds__(256) search_4(const __grid_constant__ Search s) { search_box<float>(s); }
extern "C" __global__ void __launch_bounds__(256) search_8(const __grid_constant__ Search s) { search_box<double>(s); }
extern "C" __global__ void __launch_bounds__(256) store_4(const __grid_constant__ Stores s) { store_box<unsigned>(s); }
extern "C" __global__ void __launch_bounds__(256) store_8(const __grid_constant__ Stores s) {
  store_box<unsigned long long>(s);
}

// What the queue did before is visible to whoever sees the new value.
extern "C" __global__ void raise_flag(const __grid_constant__ Signaled n) {
  __threadfence_system();
  release_system(n.flag, n.value);
}
// Stops after `timeout` nanoseconds, or as soon as anybody else did, and says in the fault log what it waited for.
extern "C" __global__ void await_flag(const __grid_constant__ Signaled n) {
  const long long start = nanoseconds();
  for (unsigned look = 1;; ++look) {
    const long long seen = acquire_system(n.flag);
    if (seen >= n.value) return;
    if (look % 256) continue;
    if (!acquire_system(n.fault_log) && nanoseconds() - start < n.timeout) continue;
    return put_fault(n.fault_log, n.record, n.op, n.value, seen);
  }
}
extern "C" __global__ void tick(const __grid_constant__ Tick t) { *t.clock += t.steps; }

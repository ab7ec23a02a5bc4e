// NVSHMEM's functions of threads on the host: the heaps of all processes lie side by side in memory that they share.
extern "C" { long long heap_rank; }
enum { NVSHMEM_SIGNAL_SET };
constexpr long long HEAP_BYTES = 1 << 24;

template <typename T> T* at_peer(T* p, int peer) { return (T*)((char*)p + (peer - heap_rank) * HEAP_BYTES); }
inline void nvshmemx_putmem_nbi_block(void* to, const void* from, unsigned long count, int peer) {
  if (threadIdx.x == 0) __builtin_memcpy(at_peer((char*)to, peer), from, count);
  host::meet_block();
}
inline void nvshmem_fence() {}
inline void nvshmemx_signal_op(unsigned long* word, unsigned long value, int, int peer) {
  __atomic_store_n(at_peer(word, peer), value, __ATOMIC_RELEASE);
}
inline unsigned long nvshmem_signal_fetch(unsigned long* word) {
  host::yield();
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
inline void nvshmemx_putmem_signal_block(
    void* to, const void* from, unsigned long count, unsigned long* word, unsigned long value, int op, int peer) {
  nvshmemx_putmem_nbi_block(to, from, count, peer);
  if (threadIdx.x == 0) nvshmemx_signal_op(word, value, op, peer);
}

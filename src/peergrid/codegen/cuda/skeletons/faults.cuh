// The fault log, in which whoever waited in vain says what for, and by whose first word everybody stops.
#include "system_memory.cuh"

// Everybody stops; the device's first record stays.
__device__ __forceinline__ void put_fault(long long* log, long long place, long long op, long long wanted, long long seen) {
  long long* const record = log + place;
  if (!record[0]) {
    record[1] = wanted;
    record[2] = seen;
    record[0] = op + 1;
  }
  __threadfence_system();
  release_system(log, 1);
}

"""A kernel of barriers of all devices, to measure their cost; flags lie 16 words apart."""

from __future__ import annotations

import numpy as np

from peergrid.codegen.cuda.skeletons import skeleton

BARRIER = (
    skeleton("system_memory.cuh")
    + """\
struct Barrier {
  long long* arrived;
  long long* mine;
  long long* theirs[16];
  long long devices, self, rounds, neighbours;
};

// Meetings of all blocks of all devices, one after another: the last block of a device tells the others, every block
// looks at what the others told its device. neighbours: only those one number away, on a ring.
extern "C" __global__ void barrier(const __grid_constant__ Barrier b) {
  const int lane = threadIdx.x;
  const bool near = lane == b.self || lane == (b.self + 1) % b.devices || lane == (b.self + b.devices - 1) % b.devices;
  const bool concerned = lane < b.devices && (near || !b.neighbours);
  int attempts = 1 << 23;  // about ten seconds
  for (long long round = 1; round <= b.rounds; ++round) {
    __syncthreads();
    if (threadIdx.x < 32) {
      long long before = 0;
      if (lane == 0) before = add_device(b.arrived);
      before = __shfl_sync(0xffffffffu, before, 0);
      if (before + 1 == round * gridDim.x && concerned) release_system(b.theirs[lane] + 16 * b.self, round);
      if (concerned)
        while (acquire_system(b.mine + 16 * lane) < round && attempts) --attempts;
    }
    __syncthreads();
  }
}
"""
)
BARRIER_DTYPE = np.dtype(
    [
        ("arrived", "<u8"),
        ("mine", "<u8"),
        ("theirs", "<u8", 16),
        ("devices", "<i8"),
        ("self", "<i8"),
        ("rounds", "<i8"),
        ("neighbours", "<i8"),
    ]
)

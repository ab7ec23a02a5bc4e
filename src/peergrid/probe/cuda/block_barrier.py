"""The block barrier against its size, and its throughput against the warps of a multiprocessor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.probe.cuda.devices import Gpus, u32, u64
from peergrid.probe.cuda.timing import Desk, per_repeat
from peergrid.probe.experiment import Bench, Measurement, Probe, result

SIZES = (32, 64, 128, 256, 512, 1024)
BLOCKS = (1, 2, 4, 8, 16, 32)
UNROLL, FEW, MANY = 16, 16, 144


def run(bench: Bench) -> Iterator[Measurement]:
    """Latency of one block per multiprocessor; the best rate for every number of active warps."""
    devices: Gpus = bench.devices
    kernel = devices.kernel(0, "warp", "block")
    best: dict[int, list[float]] = {}
    with devices.scope() as scope:
        desk = Desk.make(scope, BLOCKS[-1] * devices.multiprocessors)
        for threads in SIZES:
            for blocks in [count for count in BLOCKS if count <= kernel.fits(threads)]:
                cycles = [_per_barrier(desk, threads, blocks) for _ in range(bench.choose(3, 7))]
                if blocks == 1:
                    yield result("block_barrier", "cycles", cycles, {"threads": threads}, floor=0.02)
                warps = threads // 32 * blocks
                rates = [warps / value for value in cycles]
                if np.median(rates) > np.median(best.get(warps, [0.0])):
                    best[warps] = rates
    for warps, rates in sorted(best.items()):
        yield result("block_barrier_rate", "per cycle", rates, {"warps": warps}, floor=0.02)


def _per_barrier(desk: Desk, threads: int, blocks: int) -> float:
    """Cycles of one barrier with so many blocks on every multiprocessor, median over the blocks."""
    devices = desk.devices
    kernel, grid = devices.kernel(0, "warp", "block"), blocks * devices.multiprocessors

    def cycles(repeats: int) -> float:
        desk.run(kernel, grid, threads, u32(repeats), u64(desk.out))
        return float(np.median(desk.read(grid).astype(np.float64)))

    return per_repeat(cycles, FEW, MANY) / UNROLL


PROBE = Probe(
    name="block-barrier",
    group="synchronisation",
    title="Block barrier against its size and against the active warps",
    unit="cycles",
    method=(
        "2304 barriers less 256, by the clock register, median over the blocks, with 1 to 32 blocks on every "
        "multiprocessor. The rate counts a barrier once per warp, as in figure 4 of the study."
    ),
    run=run,
    gpus=1,
)

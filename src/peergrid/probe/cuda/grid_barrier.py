"""The grid barrier against blocks per multiprocessor and threads per block."""

from __future__ import annotations

import time
from collections.abc import Iterator

from peergrid.probe.cuda.devices import Gpus, u32, u64
from peergrid.probe.cuda.timing import Desk, sound
from peergrid.probe.experiment import At, Bench, Measurement, Probe, differences, result

THREADS = (32, 64, 128, 256, 512, 1024)
BLOCKS = (1, 2, 4, 8, 16, 32)
FEW, MANY = 50, 2050
APART = 4096  # bytes from one counter to the next; parts of the L2 lie at different distances


def run(bench: Bench) -> Iterator[Measurement]:
    """Every shape that the multiprocessors can hold at once."""
    devices: Gpus = bench.devices
    kernel = devices.kernel(0, "barrier", "grid")
    with devices.scope() as scope:
        desk = Desk.make(scope)
        for threads in THREADS if not bench.quick else (32, 256, 1024):
            for blocks in [count for count in BLOCKS if count <= kernel.fits(threads)]:
                counters = [desk.out + APART * at for at in range(bench.choose(5, 15))]
                _seconds(desk, desk.out, blocks, threads, FEW)
                shorter, longer = (
                    [_seconds(desk, counter, blocks, threads, repeats) for counter in counters]
                    for repeats in (FEW, MANY)
                )
                at: At = {"blocks_per_multiprocessor": blocks, "threads": threads}
                yield result("grid_barrier", "s", differences(longer, shorter, MANY, FEW), at, floor=0.03)


def _seconds(desk: Desk, counter: int, blocks: int, threads: int, repeats: int) -> float:
    """Host seconds of one cooperative launch with so many barriers."""
    devices = desk.devices
    kernel, grid = devices.kernel(0, "barrier", "grid"), blocks * devices.multiprocessors
    fault = counter + 256
    devices.fill(0, counter, 0, 128)
    begin = time.perf_counter()
    desk.run(kernel, grid, threads, u64(counter), u32(repeats), u64(fault), cooperative=True)
    seconds = time.perf_counter() - begin
    sound(devices, 0, fault, "a grid barrier")
    return seconds


PROBE = Probe(
    name="grid-barrier",
    group="synchronisation",
    title="Grid barrier against blocks per multiprocessor and threads per block",
    unit="s",
    method=(
        "A cooperative launch with 2050 barriers less one with 50, by the host's clock, over the difference "
        "(equation 7). The barrier is one counter: an acq_rel addition per block, then acquire "
        "loads; every sample has its own."
    ),
    run=run,
    gpus=1,
)

"""Barriers and shuffles inside a warp: tile and coalesced group of every size, latency and throughput."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.probe.cuda.devices import Gpus, u32, u64
from peergrid.probe.cuda.timing import Desk, per_repeat
from peergrid.probe.experiment import At, Bench, Measurement, Probe, result

TILES = (1, 2, 4, 8, 16, 32)
UNROLL, FEW, MANY = 16, 16, 144


def run(bench: Bench) -> Iterator[Measurement]:
    """Latency with one warp, throughput with the best number of warps of one block."""
    devices: Gpus = bench.devices
    groups = TILES if bench.quick else tuple(range(1, 33))
    with devices.scope() as scope:
        desk = Desk.make(scope)
        kinds = {"tile": TILES, "shuffle": TILES, "coalesced": groups, "coalesced shuffle": groups}
        for kind, sizes in kinds.items():
            for size in sizes:
                at: At = {"kind": kind, "size": size}
                latency = [_per_barrier(desk, kind, size, 32) for _ in range(bench.choose(3, 9))]
                yield result("warp_barrier", "cycles", latency, at, floor=0.02)
                rates = {
                    threads: [threads / 32 / _per_barrier(desk, kind, size, threads) for _ in range(3)]
                    for threads in (128, 256, 512, 1024)
                }
                best = max(rates.values(), key=np.median)
                yield result("warp_barrier_rate", "per cycle", best, at, floor=0.02)


def _per_barrier(desk: Desk, kind: str, size: int, threads: int) -> float:
    """Cycles of one barrier, from many less few."""
    kernel = desk.devices.kernel(0, "warp", kind.replace(" ", "_"))

    def cycles(repeats: int) -> float:
        desk.run(kernel, 1, threads, u32(size), u32(repeats), u64(desk.out))
        return float(desk.read()[0])

    return per_repeat(cycles, FEW, MANY) / UNROLL


PROBE = Probe(
    name="warp-barrier",
    group="synchronisation",
    rows=("M31",),
    title="Barrier and shuffle inside a warp by kind and group size: latency and throughput",
    unit="cycles",
    method=(
        "2304 barriers less 256, by the clock register, in one block of one multiprocessor: bar.warp.sync for tiles "
        "and coalesced groups with a mask that the compiler cannot know, so that each finds out anew whether its lanes "
        "are together (barriers between lanes that it knows to be together it drops: they cost nothing); shfl.sync in "
        "a dependent chain for shuffles; in a coalesced group the source is a rank, whose lane is found in the mask "
        "first, as cooperative groups do. Throughput is the best of 4 to 32 warps."
    ),
    run=run,
    gpus=1,
)

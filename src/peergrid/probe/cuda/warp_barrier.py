"""Barriers and shuffles inside a warp: tile and coalesced group of every size, latency and throughput."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from peergrid.probe.cuda.compile import headers
from peergrid.probe.cuda.devices import Gpus, LoadedKernel, u32, u64
from peergrid.probe.cuda.timing import Desk, per_repeat
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, result

TILES = (1, 2, 4, 8, 16, 32)
UNROLL, FEW, MANY = 16, 16, 144
NAMED = "cooperative groups, "
MISSING = "they need headers of CUDA: pip install nvidia-cuda-runtime nvidia-cuda-cccl"


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Latency with one warp, throughput with the best number of warps of one block; ours and by cooperative groups."""
    devices: Gpus = bench.devices
    groups = TILES if bench.quick else tuple(range(1, 33))
    with devices.scope() as scope:
        desk = Desk.make(scope)
        sizes = {"tile": TILES, "shuffle": TILES, "coalesced": groups, "coalesced shuffle": groups}
        yield from _kinds(bench, desk, "", sizes)
        if headers():
            yield from _kinds(bench, desk, NAMED, dict.fromkeys(sizes, TILES))
        else:
            yield Lack(f"cooperative groups by name: {MISSING}")


def _kinds(bench: Bench, desk: Desk, prefix: str, kinds: Mapping[str, Sequence[int]]) -> Iterator[Measurement]:
    for kind, sizes in kinds.items():
        for size in sizes:
            at: At = {"kind": prefix + kind, "size": size}
            kernel = _kernel(desk.devices, prefix + kind, size)
            latency = [_per_barrier(desk, kernel, size, 32) for _ in range(bench.choose(3, 9))]
            yield result("warp_barrier", "cycles", latency, at, floor=0.02)
            rates = {
                threads: [threads / 32 / _per_barrier(desk, kernel, size, threads) for _ in range(3)]
                for threads in (128, 256, 512, 1024)
            }
            best = max(rates.values(), key=np.median)
            yield result("warp_barrier_rate", "per cycle", best, at, floor=0.02)


def _kernel(devices: Gpus, kind: str, size: int) -> LoadedKernel:
    """The kernel of a kind; tiles of cooperative groups have one for each size."""
    name = kind.replace(" ", "_")
    if not kind.startswith(NAMED):
        return devices.kernel(0, "warp", name)
    tail = "" if "coalesced" in kind else f"_{size}"
    return devices.kernel(0, "groups", name.replace(NAMED.replace(" ", "_"), "groups_") + tail)


def _per_barrier(desk: Desk, kernel: LoadedKernel, size: int, threads: int) -> float:
    """Cycles of one barrier, from many less few."""

    def cycles(repeats: int) -> float:
        desk.run(kernel, 1, threads, u32(size), u32(repeats), u64(desk.out))
        return float(desk.read()[0])

    return per_repeat(cycles, FEW, MANY) / UNROLL


PROBE = Probe(
    name="warp-barrier",
    group="synchronisation",
    title="Barrier and shuffle inside a warp by kind and group size: latency and throughput",
    unit="cycles",
    method=(
        "2304 barriers less 256, by the clock register, in one block of one multiprocessor: bar.warp.sync for tiles "
        "and coalesced groups with a mask that the compiler cannot know, so that each finds out anew whether its lanes "
        "are together (barriers between lanes that it knows to be together it drops: they cost nothing); shfl.sync in "
        "a dependent chain for shuffles; in a coalesced group the source is a rank, whose lane is found in the mask "
        "first, as cooperative groups do. 'Cooperative groups': the same with tiled_partition and coalesced_threads "
        "of their header, tiles of a size that the compiler knows. Throughput is the best of 4 to 32 warps."
    ),
    run=run,
    gpus=1,
)

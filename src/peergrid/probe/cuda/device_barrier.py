"""The barrier over several GPUs by flags in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peergrid.probe.cuda.devices import Gpus, LoadedKernel, Scope, Stream, u32, u64
from peergrid.probe.cuda.timing import sound
from peergrid.probe.experiment import At, Bench, Measurement, Probe, differences, result

THREADS, BLOCKS = (32, 128, 256, 512, 1024), (1, 2, 4, 8)
FEW, MANY = 50, 1050
LINE, FAULT = 32, 256  # words per flag; bytes from the counter to the word of faults


def run(bench: Bench) -> Iterator[Measurement]:
    """1 to N GPUs: the map of shapes for the ends and powers of two, one shape for the others."""
    devices: Gpus = bench.devices
    most = reach(devices)
    full = {1, 2, 4, 8, 16, most}
    with devices.scope() as scope:
        crew = Participants.make(scope, most)
        for count in range(1, most + 1):
            for blocks, threads in _shapes(devices, bench.quick or count not in full):
                yield _shape(bench, crew, count, blocks, threads)


def reach(devices: Gpus) -> int:
    """The number of GPUs from the first on that all reach each other."""
    count = 1
    while count < len(devices) and all(
        (count, i) in devices.peers and (i, count) in devices.peers for i in range(count)
    ):
        count += 1
    return count


def _shapes(devices: Gpus, few: bool) -> list[tuple[int, int]]:
    kernel = devices.kernel(0, "barrier", "devices")
    wanted = [(1, 32), (1, 256), (2, 256)] if few else [(b, t) for t in THREADS for b in BLOCKS]
    return [(blocks, threads) for blocks, threads in wanted if blocks <= kernel.fits(threads)]


@dataclass(frozen=True, slots=True)
class Participants:
    """Resources of each GPU for the barrier: a stream, a counter, its flags, and where all flags are."""

    devices: Gpus
    kernels: list[LoadedKernel]
    streams: list[Stream]
    counters: list[int]
    flags: list[int]
    tables: list[int]

    @classmethod
    def make(cls, scope: Scope, count: int) -> Participants:
        """A crew of the first `count` GPUs. Word 64 of a counter's memory takes faults."""
        devices, everyone = scope.devices, range(count)
        flags = [scope.words(device, LINE * count) for device in everyone]
        tables = [scope.memory(device, 8 * count) for device in everyone]
        for device in everyone:
            devices.put(device, tables[device], np.array(flags, np.uint64))
        kernels = [devices.kernel(device, "barrier", "devices") for device in everyone]
        counters = [scope.words(device, 128) for device in everyone]
        return cls(devices, kernels, [scope.stream(device) for device in everyone], counters, flags, tables)

    def seconds(self, count: int, blocks: int, threads: int, repeats: int) -> float:
        """Host seconds of one cooperative launch on each of `count` GPUs, with `repeats` barriers of all."""
        devices, grid = self.devices, blocks * self.devices.multiprocessors
        for device in range(count):
            devices.fill(device, self.counters[device], 0, 128)
            devices.fill(device, self.flags[device], 0, LINE * count)
        begin = time.perf_counter()
        for device in range(count):
            place = (u64(self.counters[device]), u64(self.tables[device]), u32(device), u32(count), u32(repeats))
            fault = u64(self.counters[device] + FAULT)
            self.kernels[device](self.streams[device], grid, threads, *place, fault, cooperative=True)
        devices.wait_all(count)
        seconds = time.perf_counter() - begin
        for device in range(count):
            sound(devices, device, self.counters[device] + FAULT, "a barrier over several GPUs")
        return seconds


def _shape(bench: Bench, crew: Participants, count: int, blocks: int, threads: int) -> Measurement:
    crew.seconds(count, blocks, threads, FEW)
    samples = bench.choose(5, 9)
    shorter = [crew.seconds(count, blocks, threads, FEW) for _ in range(samples)]
    longer = [crew.seconds(count, blocks, threads, MANY) for _ in range(samples)]
    at: At = {"devices": count, "blocks_per_multiprocessor": blocks, "threads": threads}
    return result("device_barrier", "s", differences(longer, shorter, MANY, FEW), at, floor=0.05)


PROBE = Probe(
    name="device-barrier",
    group="synchronisation",
    title="Barrier over 1 to N GPUs by flags in memory",
    unit="s",
    method=(
        "A cooperative launch per GPU with 1050 barriers less one with 50, by the host's clock (equation 7). The last "
        "block of a GPU to arrive stores a flag to every GPU with release, a lane each; all "
        "blocks wait for all flags in own memory."
    ),
    run=run,
    gpus=1,
)

"""The cost of an allocation, against the number of GPUs that may see it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from peergrid.probe.cuda.devices import Gpus
from peergrid.probe.cuda.vmm import grant, granularity, mapped
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

SIZE = 2 << 20


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """2 MiB on GPU 0 with 0, 1, … peers: by cuMemAlloc with peer access, and by virtual memory management."""
    devices: Gpus = bench.devices
    watchers = [device for device in range(1, len(devices)) if (device, 0) in devices.peers]
    count, samples = bench.choose(100, 500), 3
    for watcher in watchers:
        devices.disable(watcher, 0)
    try:
        for peers in range(len(watchers) + 1):
            if peers:
                devices.enable(watchers[peers - 1], 0)
            plain(devices, 20)
            each = [plain(devices, count) for _ in range(samples)]
            yield result("allocation_time", "s", each, {"way": "cuMemAlloc", "peers": peers}, floor=0.35)
    finally:
        for watcher in watchers:
            devices.enable(watcher, 0)
    yield from _virtual(bench, watchers)


def plain(devices: Gpus, count: int) -> float:
    """Seconds per allocation of `count` in a row; freed after the clock has stopped."""
    devices.use(0)
    addresses: list[int] = []
    begin = time.perf_counter()
    try:
        for _ in range(count):
            addresses.append(int(devices.call("cuMemAlloc", SIZE)))
        return (time.perf_counter() - begin) / count
    finally:
        for address in addresses:
            devices.driver.cuMemFree(address)


def _virtual(bench: Bench, watchers: list[int]) -> Iterator[Measurement | Lack]:
    """The same by virtual memory management: all rights in one call, then one GPU's right after the other."""
    devices: Gpus = bench.devices
    if not devices.attribute("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"):
        yield Lack("virtual memory management: the driver has none on these GPUs")
        return
    devices.use(0)
    step = granularity(devices, 0)
    size = (SIZE + step - 1) // step * step
    for peers in range(len(watchers) + 1):
        each = []
        for _ in range(bench.choose(20, 60)):
            begin = time.perf_counter()
            with mapped(devices, [0], size, [0, *watchers[:peers]]):
                each.append(time.perf_counter() - begin)
        yield result("allocation_time", "s", each, {"way": "mapped", "peers": peers}, floor=0.35)
    yield from _granted(bench, [0, *watchers], size)


def _granted(bench: Bench, readers: list[int], size: int) -> Iterator[Measurement]:
    """Seconds of the call that opens a mapped range to one more GPU, by how many could see it before."""
    devices: Gpus = bench.devices
    seconds: dict[int, list[float]] = {}
    for _ in range(bench.choose(20, 60)):
        with mapped(devices, [0], size, []) as base:
            for before, reader in enumerate(readers):
                begin = time.perf_counter()
                grant(devices, base, size, [reader])
                seconds.setdefault(before, []).append(time.perf_counter() - begin)
    for before, each in seconds.items():
        yield result("grant_time", "s", each, {"before": before}, floor=0.35)


PROBE = Probe(
    name="allocation",
    group="memory",
    title="Time to allocate 2 MiB, against the number of peers that may see it",
    unit="s",
    method=(
        "500 allocations (quick: 100) of 2 MiB in a row by cuMemAlloc while 0, 1, … other GPUs have peer access to "
        "GPU 0; then reserve, create, map and grant access to as many GPUs by virtual memory management, in one call "
        "and GPU by GPU. Host clock, freeing not included."
    ),
    run=run,
    gpus=1,
)

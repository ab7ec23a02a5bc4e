"""Data, then a flag, from a peer's stores, a copy engine and the host: is the data there when the flag is seen?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.probe.cuda.devices import Gpus, Scope, u32, u64
from peergrid.probe.cuda.timing import sound
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

BLOCKS, WIDE, LINE = 64, 32, 32
BLOCK_BYTES = 16 << 10
FENCE = {"with": 1, "without": 0}
TIMEOUT = 5.0
FLUSH_BY_HOST, FLUSHES = 1, 100
GDRCOPY = "/dev/gdrdrv"
# What the driver promises about writes from outside: CUDA's flags and levels, as numbers.
PROMISES = {
    "flush_options": "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS",
    "write_ordering": "GPU_DIRECT_RDMA_WRITES_ORDERING",
}


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Stale words in so many tries, with and without fences."""
    devices: Gpus = bench.devices
    for quantity, name in PROMISES.items():
        yield result(quantity, "", [float(devices.attribute(name))], {"device": 0}, floor=0.0)
    yield from _flushes(bench)
    yield Lack(f"a writer from outside (an adapter, or the host through BAR1): {_no_mapping()}")
    for fence, fenced in FENCE.items():
        writer = 1 if (1, 0) in devices.peers and (0, 1) in devices.peers else 0
        with devices.scope() as scope:
            yield from _results("peer store" if writer else "own store", fence, *_stores(bench, scope, writer, fenced))
        with devices.scope() as scope:
            yield from _results("copy engine", fence, *_copies(bench, scope, writer, fenced))
        with devices.scope() as scope:
            yield from _results("host", fence, *_host(bench, scope, fenced))


def _flushes(bench: Bench) -> Iterator[Measurement | Lack]:
    """Seconds of the driver's call that makes writes from outside visible, for the owner's work and for all GPUs'."""
    devices: Gpus = bench.devices
    if not devices.attribute(PROMISES["flush_options"]) & FLUSH_BY_HOST:
        yield Lack("the driver's flush of writes from outside: it offers none to the host")
        return
    target = devices.driver.CUflushGPUDirectRDMAWritesTarget
    scopes = devices.driver.CUflushGPUDirectRDMAWritesScope
    of = target.CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX
    devices.use(0)
    for seen, name in (("its GPU", "OWNER"), ("all GPUs", "ALL_DEVICES")):
        scope = getattr(scopes, f"CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_{name}")
        each = [_flush(devices, of, scope) for _ in range(bench.choose(5, 15) + 1)]
        yield result("flush_time", "s", each[1:], {"seen by": seen}, floor=0.1)


def _flush(devices: Gpus, target: object, scope: object) -> float:
    begin = time.perf_counter()
    for _ in range(FLUSHES):
        devices.call("cuFlushGPUDirectRDMAWrites", target, scope)
    return (time.perf_counter() - begin) / FLUSHES


def _no_mapping() -> str:
    """The reason why no write through BAR1 is measured."""
    if not Path(GDRCOPY).exists():
        return f"only the kernel module of GDRCopy maps GPU memory for the host, and there is no {GDRCOPY}"
    return f"{GDRCOPY} is there, but no experiment uses it"


def _results(writer: str, fence: str, stale: int, tries: int) -> Iterator[Measurement]:
    at = {"writer": writer, "fence": fence}
    yield result("stale_reads", "", [float(stale)], at, floor=0.5)
    yield result("order_tries", "", [float(tries)], at, floor=0.0)


def _stores(bench: Bench, scope: Scope, writer: int, fenced: int) -> tuple[int, int]:
    """A kernel on another GPU stores data and flag; 64 blocks of both sides play by themselves.

    With one GPU both kernels run on it, side by side.
    """
    devices, reader = scope.devices, 0
    rounds = bench.choose(10000, 40000)
    data, flags = scope.words(reader, BLOCKS * WIDE * LINE), scope.words(reader, BLOCKS * LINE)
    acks, stale = scope.words(writer, BLOCKS * LINE), scope.words(reader, 1)
    faults = {reader: scope.words(reader, 1), writer: scope.words(writer, 1)}
    read = devices.kernel(reader, "order", "read_flags")
    write = devices.kernel(writer, "order", "write_flags")
    common = (u32(rounds), u32(fenced))
    read(scope.stream(reader), BLOCKS, WIDE, u64(data), u64(flags), u64(acks), *common, u64(stale), u64(faults[reader]))
    write(scope.stream(writer), BLOCKS, WIDE, u64(data), u64(flags), u64(acks), *common, u64(faults[writer]))
    for device, fault in faults.items():
        devices.wait(device)
        sound(devices, device, fault, "the exchange of data and flags")
    return int(devices.read(reader, stale, 1)[0]), rounds * BLOCKS * WIDE


def _copies(bench: Bench, scope: Scope, writer: int, fenced: int) -> tuple[int, int]:
    """A copy engine brings 16 KiB of data, then the flag, in one stream; nobody waits for an answer."""
    devices, reader = scope.devices, 0
    rounds, words = bench.choose(300, 3000), BLOCK_BYTES // 4
    newest = 64
    source = scope.memory(writer, newest * BLOCK_BYTES)
    data, flag = scope.words(reader, words), scope.words(reader, 1)
    tallies = scope.words(reader, 3)
    stream, watching = scope.stream(writer), scope.stream(reader)
    watch = devices.kernel(reader, "order", "watch")
    seen = 0
    tries = 0
    for first in range(0, rounds, newest):
        devices.put(writer, source, np.repeat(np.arange(first + 1, first + newest + 1, dtype=np.uint32), words))
        devices.wait(writer)
        goal = first + newest
        arguments = (u64(data), u32(words), u64(flag), u64(0), u32(goal), u32(fenced))
        watch(watching, 1, 256, *arguments, u64(tallies), u64(tallies + 4), u64(tallies + 8))
        devices.use(writer)
        for at in range(newest):
            devices.call("cuMemcpyAsync", data, source + at * BLOCK_BYTES, BLOCK_BYTES, stream.handle)
            devices.call("cuMemcpyAsync", flag, source + at * BLOCK_BYTES, 4, stream.handle)
        devices.wait(writer)
        devices.wait(reader)
        sound(devices, reader, tallies + 8, "the watcher of copies")
        seen = int(devices.read(reader, tallies, 1)[0])
        tries += int(devices.read(reader, tallies + 4, 1)[0]) * words
    return seen, tries


def _host(bench: Bench, scope: Scope, fenced: int) -> tuple[int, int]:
    """The host writes data and flag into pinned memory that the kernel polls, and waits for its answer."""
    devices = scope.devices
    rounds, words = bench.choose(2000, 20000), 1024
    shared = scope.pinned(4 * (words + 64))
    data, flag, ack = shared.words[:words], shared.words[words : words + 1], shared.words[words + 32 :]
    tallies = scope.words(0, 3)
    watch = devices.kernel(0, "order", "watch")
    at = u64(shared.address), u32(words), u64(shared.address + 4 * words), u64(shared.address + 4 * (words + 32))
    watch(
        scope.stream(0), 1, 256, *at, u32(rounds), u32(fenced),
        u64(tallies), u64(tallies + 4), u64(tallies + 8),
    )  # fmt: skip
    for number in range(1, rounds + 1):
        data[:] = number
        flag[0] = number
        _answered(ack, number)
    devices.wait(0)
    sound(devices, 0, tallies + 8, "the watcher of the host")
    return int(devices.read(0, tallies, 1)[0]), rounds * words


def _answered(ack: np.ndarray, number: int) -> None:
    """Wait for the kernel's answer, for some seconds at most."""
    begin = time.perf_counter()
    while int(ack[0]) < number:
        if time.perf_counter() - begin > TIMEOUT:
            raise DeviceFault(f"The kernel did not answer round {number} of the host in {TIMEOUT:g} s: try again.")


PROBE = Probe(
    name="ordering",
    group="atomics and order",
    title="Data, then a flag: stale words behind a flag that was seen",
    unit="",
    method=(
        "A writer raises a flag after 32 words on 32 lines (a peer's kernel, answered), 16 KiB (a copy engine, two "
        "copies in one stream) or 4 KiB in pinned memory (the host, answered). The reader polls, reads the data at "
        "once and counts words older than the flag. 'With' uses fence, st.release.sys and ld.acquire.sys, 'without' "
        "relaxed accesses only. Tries are words read. The flush is cuFlushGPUDirectRDMAWrites, over a hundred calls."
    ),
    run=run,
    gpus=1,
)

"""From GPU to GPU: the whole matrix by copy engine, by stores and by loads of a kernel, and through the host."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.probe.cuda.devices import Devices, Scope, Stream, u32, u64
from peergrid.probe.cuda.timing import Gate, Work, copies, host_seconds
from peergrid.probe.experiment import At, Bench, Impossible, Probe, Result, result

THREADS = 512


def run(bench: Bench) -> Iterator[Result]:
    """Inside each GPU, all ordered pairs, all pairs both ways, messages against size, and without peer access."""
    devices: Devices = bench.devices
    yield from _inside(bench)
    if not devices.pairs():
        raise Impossible("no two GPUs of this machine can reach each other's memory")
    size = bench.choose(128, 512) << 20
    yield from _matrix(bench, size)
    yield from _both_ways(bench, size)
    yield from _sizes(bench)
    yield from _through_host(bench)


def kernel_copy(devices: Devices, runner: int, to: int, source: int, size: int, repeats: int) -> Work:
    """Work of a kernel on GPU `runner`: stores if `to` is remote, loads if `source` is."""
    kernel = devices.kernel(runner, "copy", "copy")
    grid = devices.attribute("MULTIPROCESSOR_COUNT", runner) * 4

    def work(stream: Stream) -> None:
        kernel(stream, grid, THREADS, u64(to), u64(source), u64(size // 16), u32(repeats))

    return work


def _inside(bench: Bench) -> Iterator[Result]:
    """Read plus written bytes of a copy within one GPU."""
    devices: Devices = bench.devices
    size, repeats = 512 << 20, 8
    for device in range(len(devices)):
        with devices.scope() as scope:
            a, b = scope.memory(device, size), scope.memory(device, size)
            works = {
                "copy engine": copies(devices, b, a, size, repeats),
                "kernel": kernel_copy(devices, device, b, a, size, repeats),
            }
            gate, stream = Gate.make(scope, [device]), scope.stream(device)
            for route, work in works.items():
                seconds = [s for (s,) in gate.samples([(stream, work)], bench.choose(3, 9))]
                rates = [2 * size * repeats / s for s in seconds]
                yield result("device_copy_bandwidth", "B/s", rates, {"device": device, "route": route})


def _matrix(bench: Bench, size: int) -> Iterator[Result]:
    devices: Devices = bench.devices
    with devices.scope() as scope:
        blocks = [scope.memory(device, size) for device in range(len(devices))]
        gate = Gate.make(scope, range(len(devices)))
        streams = [scope.stream(device) for device in range(len(devices))]
        for source, target in devices.pairs():
            a, b = blocks[source], blocks[target]
            ways = {
                "copy engine": (source, copies(devices, b, a, size, 8)),
                "store": (source, kernel_copy(devices, source, b, a, size, 2)),
                "load": (target, kernel_copy(devices, target, b, a, size, 2)),
            }
            for route, (runner, work) in ways.items():
                repeats = 8 if route == "copy engine" else 2
                found = gate.samples([(streams[runner], work)], bench.choose(3, 7))
                at: At = {"route": route, "ways": 1, "source": source, "target": target}
                rates = [size * repeats / s for (s,) in found]
                yield result("peer_copy_bandwidth", "B/s", rates, at)


def _both_ways(bench: Bench, size: int) -> Iterator[Result]:
    """Both directions at once: the sum of the two rates, each by the events of its sender."""
    devices: Devices = bench.devices
    with devices.scope() as scope:
        out = [scope.memory(device, size) for device in range(len(devices))]
        into = [scope.memory(device, size) for device in range(len(devices))]
        gate = Gate.make(scope, range(len(devices)))
        streams = [scope.stream(device) for device in range(len(devices))]
        for i, j in [pair for pair in devices.pairs() if pair[0] < pair[1]]:
            for route, repeats in {"copy engine": 8, "store": 2}.items():
                make = copies if route == "copy engine" else None
                works = [
                    (
                        streams[a],
                        make(devices, into[b], out[a], size, repeats)
                        if make
                        else kernel_copy(devices, a, into[b], out[a], size, repeats),
                    )
                    for a, b in ((i, j), (j, i))
                ]
                found = gate.samples(works, bench.choose(3, 7))
                rates = [sum(size * repeats / s for s in pair) for pair in found]
                at: At = {"route": route, "ways": 2, "source": i, "target": j}
                yield result("peer_copy_bandwidth", "B/s", rates, at)


def _sizes(bench: Bench) -> Iterator[Result]:
    """Time of one message against its size, from many in a row in one stream."""
    devices: Devices = bench.devices
    source, target = devices.pairs()[0]
    largest = 256 << 20
    with devices.scope() as scope:
        a, b = scope.memory(source, largest), scope.memory(target, largest)
        gate, stream = Gate.make(scope, [source]), scope.stream(source)
        for power in range(10, 29, bench.choose(3, 2)):
            size = 1 << power
            repeats = max(4, min(100, (64 << 20) // size))
            for route in ("copy engine", "store"):
                work = (
                    copies(devices, b, a, size, repeats)
                    if route == "copy engine"
                    else _launches(devices, source, b, a, size, repeats)
                )
                each = [s / repeats for (s,) in gate.samples([(stream, work)], bench.choose(5, 11))]
                at: At = {"route": route, "source": source, "target": target, "bytes": size}
                yield result("peer_message_time", "s", each, at, floor=0.02)


def _launches(devices: Devices, runner: int, to: int, source: int, size: int, repeats: int) -> Work:
    """One kernel per message, with no more blocks than the message needs."""
    kernel = devices.kernel(runner, "copy", "copy")
    words = size // 16
    most = devices.attribute("MULTIPROCESSOR_COUNT", runner) * 4
    grid = max(1, min(most, words // THREADS))

    def work(stream: Stream) -> None:
        for _ in range(repeats):
            kernel(stream, grid, THREADS, u64(to), u64(source), u64(words), u32(1))

    return work


def _through_host(bench: Bench) -> Iterator[Result]:
    """The same copy with peer access taken away: the driver stages it through host memory."""
    devices: Devices = bench.devices
    size = 64 << 20
    for source, target in devices.pairs()[: bench.choose(1, 56)]:
        with devices.scope() as scope:
            yield _staged(bench, scope, source, target, size)


def _staged(bench: Bench, scope: Scope, source: int, target: int, size: int) -> Result:
    devices: Devices = bench.devices
    a, b, stream = scope.memory(source, size), scope.memory(target, size), scope.stream(source)
    contexts = devices.contexts

    def work() -> None:
        for _ in range(4):
            devices.call("cuMemcpyPeerAsync", b, contexts[target], a, contexts[source], size, stream.handle)

    devices.disable(source, target)
    devices.disable(target, source)
    try:
        devices.use(source)
        host_seconds(work, lambda: devices.wait(source))
        seconds = [host_seconds(work, lambda: devices.wait(source)) for _ in range(bench.choose(3, 5))]
    finally:
        devices.enable(source, target)
        devices.enable(target, source)
    at: At = {"route": "host", "ways": 1, "source": source, "target": target}
    return result("peer_copy_bandwidth", "B/s", [4 * size / s for s in seconds], at, floor=0.05)


PROBE = Probe(
    name="peer-copy",
    group="links",
    rows=("M5", "M6", "M8"),
    title="Bandwidth from GPU to GPU by each route, one way and both, and the time of one message against size",
    unit="B/s",
    method=(
        "Copies of 512 MiB (quick: 128 MiB) behind a gate kernel, timed by events: eight per sample by the copy "
        "engine, two by a kernel that stores to or loads from the peer with 16-byte words. Through the host: the "
        "driver's own staging with peer access disabled, by the host's clock."
    ),
    run=run,
    gpus=1,
)

"""From GPU to GPU: the whole matrix by copy engine, by stores and by loads of a kernel, and through the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from peergrid.probe.cuda.devices import Gpus, Stream, u32, u64
from peergrid.probe.cuda.timing import Gate, Work, copies, host_seconds
from peergrid.probe.cuda.traffic import Flow, Tally
from peergrid.probe.experiment import At, Bench, Impossible, Lack, Measurement, Probe, result

THREADS = 512
ROUTES = ("copy engine", "store", "load")
COPIES, PASSES = 8, 2
STAGED = 64 << 20

Pair = tuple[int, int]


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Inside each GPU, all ordered pairs, all pairs both ways, messages against size, and without peer access."""
    devices: Gpus = bench.devices
    yield from _inside(bench)
    if not devices.pairs():
        raise Impossible("no two GPUs of this machine can reach each other's memory")
    size = bench.choose(128, 512) << 20
    with Tally.open(devices, "peer-copy") as tally:
        yield from _matrix(bench, size, tally)
        yield from _both_ways(bench, size, tally)
        yield from _sizes(bench, tally)
        yield from _through_host(bench, tally)
        yield from tally.results()


def kernel_copy(devices: Gpus, runner: int, to: int, source: int, size: int, repeats: int) -> Work:
    """Work of a kernel on GPU `runner`: stores if `to` is remote, loads if `source` is."""
    kernel = devices.kernel(runner, "copy", "copy")
    grid = devices.attribute("MULTIPROCESSOR_COUNT", runner) * 4

    def work(stream: Stream) -> None:
        kernel(stream, grid, THREADS, u64(to), u64(source), u64(size // 16), u32(repeats))

    return work


def _inside(bench: Bench) -> Iterator[Measurement]:
    """Read plus written bytes of a copy within one GPU."""
    devices: Gpus = bench.devices
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


def _repeats(route: str) -> int:
    """Copies per sample: a kernel fills the link by itself, a copy engine is given some in a row."""
    return COPIES if route == "copy engine" else PASSES


def _work(devices: Gpus, route: str, pair: Pair, to: int, source: int, size: int) -> tuple[int, Work]:
    """The GPU that makes a copy from `pair[0]` to `pair[1]`, and the copy: by its engine, its stores, or loads."""
    runner = pair[1] if route == "load" else pair[0]
    if route == "copy engine":
        return runner, copies(devices, to, source, size, COPIES)
    return runner, kernel_copy(devices, runner, to, source, size, PASSES)


def _matrix(bench: Bench, size: int, tally: Tally) -> Iterator[Measurement]:
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        blocks = [scope.memory(device, size) for device in range(len(devices))]
        gate = Gate.make(scope, range(len(devices)))
        streams = [scope.stream(device) for device in range(len(devices))]
        samples = bench.choose(3, 7)
        for source, target in devices.pairs():
            for route in ROUTES:
                runner, work = _work(devices, route, (source, target), blocks[target], blocks[source], size)
                moved = size * _repeats(route)
                with tally.around({"route": route, "ways": 1}, [Flow(source, target, moved * (samples + 1))]):
                    found = gate.samples([(streams[runner], work)], samples)
                at: At = {"route": route, "ways": 1, "source": source, "target": target}
                yield result("peer_copy_bandwidth", "B/s", [moved / s for (s,) in found], at)


def _both_ways(bench: Bench, size: int, tally: Tally) -> Iterator[Measurement]:
    """Both directions at once: the sum of the two rates, each by the events of the GPU that carries it out."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        out = [scope.memory(device, size) for device in range(len(devices))]
        into = [scope.memory(device, size) for device in range(len(devices))]
        gate = Gate.make(scope, range(len(devices)))
        streams = [scope.stream(device) for device in range(len(devices))]
        samples = bench.choose(3, 7)
        for i, j in [pair for pair in devices.pairs() if pair[0] < pair[1]]:
            for route in ROUTES:
                pairs, moved = ((i, j), (j, i)), size * _repeats(route)
                carried = [_work(devices, route, (a, b), into[b], out[a], size) for a, b in pairs]
                flows = [Flow(a, b, moved * (samples + 1)) for a, b in pairs]
                with tally.around({"route": route, "ways": 2}, flows):
                    found = gate.samples([(streams[runner], work) for runner, work in carried], samples)
                at: At = {"route": route, "ways": 2, "source": i, "target": j}
                yield result("peer_copy_bandwidth", "B/s", [sum(moved / s for s in pair) for pair in found], at)


def _sizes(bench: Bench, tally: Tally) -> Iterator[Measurement]:
    """Time of one message against its size, from many in a row in one stream."""
    devices: Gpus = bench.devices
    source, target = devices.pairs()[0]
    powers, samples = range(10, 29, bench.choose(3, 2)), bench.choose(5, 11)
    with devices.scope() as scope:
        a, b = scope.memory(source, 1 << powers[-1]), scope.memory(target, 1 << powers[-1])
        gate, stream = Gate.make(scope, [source]), scope.stream(source)
        for route in ("copy engine", "store"):
            moved = sum((samples + 1) * _messages(1 << power) << power for power in powers)
            with tally.around({"route": route, "of": "messages"}, [Flow(source, target, moved)]):
                for size in (1 << power for power in powers):
                    repeats = _messages(size)
                    make = copies(devices, b, a, size, repeats)
                    work = make if route == "copy engine" else _launches(devices, source, b, a, size, repeats)
                    each = [s / repeats for (s,) in gate.samples([(stream, work)], samples)]
                    at: At = {"route": route, "source": source, "target": target, "bytes": size}
                    yield result("peer_message_time", "s", each, at, floor=0.06)


def _messages(size: int) -> int:
    """Messages in a row: 64 MiB of them, but 4 to 100."""
    return max(4, min(100, (64 << 20) // size))


def _launches(devices: Gpus, runner: int, to: int, source: int, size: int, repeats: int) -> Work:
    """One kernel per message, with no more blocks than the message needs."""
    kernel = devices.kernel(runner, "copy", "copy")
    words = size // 16
    most = devices.attribute("MULTIPROCESSOR_COUNT", runner) * 4
    grid = max(1, min(most, words // THREADS))

    def work(stream: Stream) -> None:
        for _ in range(repeats):
            kernel(stream, grid, THREADS, u64(to), u64(source), u64(words), u32(1))

    return work


def _through_host(bench: Bench, tally: Tally) -> Iterator[Measurement]:
    """The same copies with peer access taken away: the driver stages them through host memory."""
    devices: Gpus = bench.devices
    ordered = [pair for pair in devices.pairs() if pair[0] < pair[1]]
    for pair in devices.pairs()[: bench.choose(1, 56)]:
        yield _staged(bench, [pair], tally)
    for i, j in ordered[: bench.choose(1, 28)]:
        yield _staged(bench, [(i, j), (j, i)], tally)
    yield from _staged_sizes(bench)


def _staged_sizes(bench: Bench) -> Iterator[Measurement]:
    """Time of one message through the host against its size, from many in a row in one stream."""
    devices: Gpus = bench.devices
    source, target = devices.pairs()[0]
    powers = range(10, 29, bench.choose(3, 2))
    with devices.scope() as scope, devices.apart(source, target):
        a, b = scope.memory(source, 1 << powers[-1]), scope.memory(target, 1 << powers[-1])
        stream = scope.stream(source)
        for size in (1 << power for power in powers):
            repeats, lane = _messages(size), (b, devices.contexts[target], a, devices.contexts[source], size)

            def work(lane: tuple[Any, ...] = lane, repeats: int = repeats) -> None:
                for _ in range(repeats):
                    devices.call("cuMemcpyPeerAsync", *lane, stream.handle)

            each = [host_seconds(work, lambda: devices.wait(source)) / repeats for _ in range(bench.choose(3, 5) + 1)]
            at: At = {"route": "host", "source": source, "target": target, "bytes": size}
            yield result("peer_message_time", "s", each[1:], at, floor=0.1)


def _staged(bench: Bench, ways: Sequence[Pair], tally: Tally) -> Measurement:
    """Rate of one direction or the sum of both; the counters should see none of it."""
    devices: Gpus = bench.devices
    contexts, samples, (source, target) = devices.contexts, bench.choose(3, 5), ways[0]
    with devices.scope() as scope:
        lanes = [
            (scope.memory(b, STAGED), contexts[b], scope.memory(a, STAGED), contexts[a], STAGED, scope.stream(a).handle)
            for a, b in ways
        ]

        def work() -> None:
            for _ in range(4):
                for lane in lanes:
                    devices.call("cuMemcpyPeerAsync", *lane)

        def finish() -> None:
            for a, _ in ways:
                devices.wait(a)

        flows = [Flow(a, b, 4 * STAGED * (samples + 1)) for a, b in ways]
        with devices.apart(source, target), tally.around({"route": "host", "ways": len(ways)}, flows):
            seconds = [host_seconds(work, finish) for _ in range(samples + 1)][1:]
    at: At = {"route": "host", "ways": len(ways), "source": source, "target": target}
    return result("peer_copy_bandwidth", "B/s", [4 * STAGED * len(ways) / s for s in seconds], at, floor=0.05)


PROBE = Probe(
    name="peer-copy",
    group="links",
    title="Bandwidth from GPU to GPU by each route, one way and both, and the time of one message against size",
    unit="B/s",
    method=(
        "Copies of 512 MiB (quick: 128 MiB) behind a gate kernel, timed by events: eight per sample by the copy "
        "engine, two by a kernel that stores to or loads from the peer with 16-byte words. Through the host: the "
        "driver's own staging with peer access disabled, by the host's clock, large and against size. "
        "NVML's NVLink counters are read around each of them."
    ),
    run=run,
    gpus=1,
)

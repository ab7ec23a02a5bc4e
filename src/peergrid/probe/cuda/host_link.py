"""Between host and GPU: bandwidth against size, pinned and pageable, and many small messages against one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from peergrid.machine.counters import pcie_bytes
from peergrid.machine.host import nodes, usable_cpus
from peergrid.probe.cpu.threads import on_each_processor, pin
from peergrid.probe.cuda.devices import Gpus, Scope, Stream
from peergrid.probe.cuda.timing import Gate, copies, host_seconds
from peergrid.probe.cuda.traffic import LinkCounters
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, result

LARGEST, REPEATS = 64 << 20, 16
PLACES = 5  # of memory and streams: where a copy goes moves its rate
LONG = 64 << 10  # bytes from which bandwidth counts for more than latency
SMALL, MANY = 1 << 10, 512

Place = tuple[int, int, Stream]


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Every GPU at the largest size, the first one over all sizes and from every NUMA node."""
    devices: Gpus = bench.devices
    sizes = [1 << power for power in range(10, 27, bench.choose(4, 2))]
    for device in range(len(devices)):
        yield from _pinned(bench, device, sizes if device == 0 else [LARGEST], {})
    yield from _pageable(bench, sizes)
    yield from _both_ways(bench)
    yield from _messages(bench)
    yield from _counted(bench)
    yield from _by_node(bench)


def _pinned(bench: Bench, device: int, sizes: Sequence[int], extra: dict[str, int]) -> Iterator[Measurement]:
    devices: Gpus = bench.devices
    rates: dict[tuple[int, str], list[float]] = {}
    with devices.scope() as scope:
        gate = Gate.make(scope, [device])
        for there, here, stream in _places(scope, device):
            for size in sizes:
                repeats = max(4, min(64, LARGEST // size))
                for direction, (to, source) in {"to device": (there, here), "to host": (here, there)}.items():
                    work = copies(devices, to, source, size, repeats)
                    seconds = gate.samples([(stream, work)], bench.choose(1, 3))
                    rates.setdefault((size, direction), []).extend(size * repeats / s for (s,) in seconds)
    for (size, direction), each in rates.items():
        at: At = {"device": device, "direction": direction, "memory": "pinned", "bytes": size, **extra}
        yield result("host_link_bandwidth", "B/s", each, at, floor=0.12 if size < LONG else 0.04)


def _pageable(bench: Bench, sizes: Sequence[int]) -> Iterator[Measurement]:
    """Blocking copies of ordinary memory, by the host's clock: the driver stages them itself."""
    devices: Gpus = bench.devices
    rates: dict[tuple[int, str], list[float]] = {}
    with devices.scope() as scope:
        there = scope.memory(0, LARGEST)
        for _ in range(bench.choose(7, 15)):
            here = np.ones(LARGEST, np.uint8)  # each sample has its own pages, as their placement varies
            for size in sizes:
                for direction, name in {"to device": "cuMemcpyHtoD", "to host": "cuMemcpyDtoH"}.items():
                    pair = (there, here.ctypes.data) if direction == "to device" else (here.ctypes.data, there)
                    work = partial(devices.call, name, *pair, size)
                    work()
                    seconds = host_seconds(work, partial(devices.wait, 0))
                    rates.setdefault((size, direction), []).append(size / seconds)
    for (size, direction), each in rates.items():
        at: At = {"device": 0, "direction": direction, "memory": "pageable", "bytes": size}
        yield result("host_link_bandwidth", "B/s", each, at, floor=0.3)


def _places(scope: Scope, device: int) -> list[Place]:
    """Memory of a GPU and of the host, and a stream, several times."""
    return [(scope.memory(device, LARGEST), scope.pinned(LARGEST).address, scope.stream(device)) for _ in range(PLACES)]


def _both_ways(bench: Bench) -> Iterator[Measurement]:
    """Both directions at once from pinned memory: the sum of the rates."""
    devices: Gpus = bench.devices
    repeats, rates = 8, list[float]()
    with devices.scope() as scope:
        for sender, receiver in zip(_places(scope, 0), _places(scope, 0), strict=True):
            work = partial(_exchange, devices, sender, receiver, repeats)
            host_seconds(work, partial(devices.wait, 0))
            seconds = [host_seconds(work, partial(devices.wait, 0)) for _ in range(bench.choose(1, 3))]
            rates += [2 * repeats * LARGEST / s for s in seconds]
    at: At = {"device": 0, "direction": "both", "memory": "pinned", "bytes": LARGEST}
    yield result("host_link_bandwidth", "B/s", rates, at, floor=0.1)


def _exchange(devices: Gpus, sender: Place, receiver: Place, repeats: int) -> None:
    """Copies to a GPU and from it, each way in a stream of its own."""
    for _ in range(repeats):
        there, here, stream = sender
        devices.call("cuMemcpyAsync", there, here, LARGEST, stream.handle)
        there, here, stream = receiver
        devices.call("cuMemcpyAsync", here, there, LARGEST, stream.handle)


def _messages(bench: Bench) -> Iterator[Measurement]:
    """512 KiB as one message and as 512, blocking from pinned memory."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        there, here = scope.memory(0, SMALL * MANY), scope.pinned(SMALL * MANY).address

        def send(messages: int) -> float:
            size = SMALL * MANY // messages
            begin = time.perf_counter()
            for at in range(messages):
                devices.call("cuMemcpyHtoD", there + at * size, here + at * size, size)
            return time.perf_counter() - begin

        devices.use(0)
        send(MANY)
        samples = bench.choose(7, 21)
        times = {messages: on_each_processor(samples, partial(send, messages)) for messages in (MANY, 1)}
        for messages, seconds in times.items():
            yield result("message_time", "s", seconds, {"messages": messages}, floor=0.12)
        ratios = [many / one for many, one in zip(times[MANY], times[1], strict=True)]
        yield result("message_ratio", "× slower", ratios, {}, floor=0.12)


def _counted(bench: Bench) -> Iterator[Measurement | Lack]:
    """NVML's PCIe counters around 1 GiB of pinned copies, over the bytes copied; they count packet headers too."""
    devices: Gpus = bench.devices
    with LinkCounters.open(devices) as meter, devices.scope() as scope:
        if not meter.handles or pcie_bytes(meter.management, meter.handles[0]) is None:
            yield Lack(f"PCIe counters: {meter.why or 'NVML does not give them for this GPU (support or permission)'}")
            return
        there, here, stream = scope.memory(0, LARGEST), scope.pinned(LARGEST).address, scope.stream(0)
        for at, (direction, to, source) in enumerate((("to host", here, there), ("to device", there, here))):
            work, ratios = copies(devices, to, source, LARGEST, REPEATS), []
            for _ in range(bench.choose(3, 7)):
                before = pcie_bytes(meter.management, meter.handles[0])
                work(stream)
                devices.wait(0)
                after = pcie_bytes(meter.management, meter.handles[0])
                if before and after:
                    ratios.append((after[at] - before[at]) % 2**32 / (LARGEST * REPEATS))
            yield result("pcie_traffic_ratio", "", ratios, {"device": 0, "direction": direction})


def _by_node(bench: Bench) -> Iterator[Measurement | Lack]:
    """The largest copy from memory of each NUMA node: pinned memory is taken where its first toucher runs."""
    found = [node for node in nodes() if set(node.cpus) & set(usable_cpus())]
    if len(found) < 2:
        yield Lack("near and far memory: this process sees one NUMA node with processors")
        return
    before = usable_cpus()
    try:
        for node in found:
            pin(*sorted(set(node.cpus) & set(before)))
            for device in range(len(bench.devices)):
                yield from _pinned(bench, device, [LARGEST], {"node": node.index})
    finally:
        pin(*before)


PROBE = Probe(
    name="host-link",
    group="links",
    title="Bandwidth between host and GPU against size, and 512 messages of 1 KiB against one of 512 KiB",
    unit="B/s",
    method=(
        "Pinned: 4 to 64 copies of the same size behind a gate kernel, timed by events, the median of the samples "
        "(the copy-engine method of nvbandwidth), in five places of host memory with a stream each. Pageable and small "
        "messages: blocking copies by the host's clock, from Python, which adds about a microsecond per call, each "
        "sample of the messages from another processor. NVML's PCIe counters around 1 GiB count packets "
        "with their headers, so their share of the bytes copied is above one; NVML counts no payload of PCIe."
    ),
    run=run,
    gpus=1,
)

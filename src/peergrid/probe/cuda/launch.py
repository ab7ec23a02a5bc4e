"""What a launch costs: overhead by kernel fusion, and the total latency of a kernel that does nothing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.probe.cpu.threads import in_turn
from peergrid.probe.cuda.devices import Devices, Kernel, Scope, Stream, u32
from peergrid.probe.cuda.hostloop import Loop, entries, handle, launches
from peergrid.probe.cuda.timing import per_repeat
from peergrid.probe.experiment import Bench, Lack, Probe, Result, fusion_overhead, result

UNIT = 40_000  # cycles: twenty microseconds, well above what the host needs for a launch
MANY, ONE = 33, 1
FIVE = 5
NODES = 50
STREAMS = 5  # samples take them in turn: the first one of a process is faster than the others
FLOOR = 0.15  # processes on one machine differ so much, for no reason that they could see
PAIRS = {"overhead": 9, "null": 25}  # a sample is the median of so many pairs: the host's clock jumps

Launch = Callable[[Stream, int], None]
Timed = Callable[[Stream, int], float]


def run(bench: Bench) -> Iterator[Result | Lack]:
    """Launch overhead of every way to launch (equation 6), then null kernels."""
    devices: Devices = bench.devices
    with devices.scope() as scope:
        streams = [scope.stream(0) for _ in range(STREAMS)]
        yield from _overheads(bench, scope, streams)
        yield from _null_kernels(bench, scope, streams)


def _overheads(bench: Bench, scope: Scope, streams: Sequence[Stream]) -> Iterator[Result | Lack]:
    ways = {how: _fused(scope.devices, launch) for how, launch in _ways(scope.devices).items()}
    if "dependent" not in ways:
        yield Lack("programmatic dependent launch: it needs compute capability 9 or later")
    ways["graph"] = _fused_graph(scope, streams[0])
    for how, timed in ways.items():
        each = _samples(bench.choose(7, 21), streams, partial(_overhead, timed), PAIRS["overhead"])
        yield result("launch_overhead", "s", each, {"how": how}, floor=FLOOR)


def _samples(count: int, streams: Sequence[Stream], pair: Callable[[Stream], float], pairs: int) -> list[float]:
    """Medians of `pairs` measurements each, every one on another processor and another stream than the one before."""
    turn = cycle(streams)

    def measure() -> float:
        stream = next(turn)
        pair(stream)
        return statistics.median(pair(stream) for _ in range(pairs))

    return in_turn(count, measure)


def _overhead(timed: Timed, stream: Stream) -> float:
    """Equation 6: the same waiting in many kernels and in one, one after the other."""
    return fusion_overhead(timed(stream, MANY), timed(stream, ONE), MANY, ONE)


def _ways(devices: Devices) -> dict[str, Launch]:
    """Functions that launch a kernel of so many wait units."""
    wait = devices.kernel(0, "launch", "wait")
    found: dict[str, Launch] = {
        "plain": lambda stream, units: wait(stream, 1, 32, u32(units), u32(UNIT)),
        "cooperative": lambda stream, units: wait(stream, 1, 32, u32(units), u32(UNIT), cooperative=True),
    }
    if devices.attribute("COMPUTE_CAPABILITY_MAJOR") >= 9:
        found["dependent"] = _dependent(devices)
    return found


def _dependent(devices: Devices) -> Launch:
    """Programmatic dependent launch: the next kernel may start while the one before ends."""
    driver = devices.driver
    kernel = devices.kernel(0, "launch", "wait_dependent")
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 32, 1, 1
    config.attrs, config.numAttrs = [attribute], 1

    def launch(stream: Stream, units: int) -> None:
        config.hStream = stream.handle
        packed = ((units, UNIT), (type(u32(0)), type(u32(0))))
        devices.call("cuLaunchKernelEx", config, kernel.function, packed, 0)

    return launch


def _fused(devices: Devices, launch: Launch) -> Timed:
    """Host seconds of so many kernels that wait MANY units together."""

    def timed(stream: Stream, kernels: int) -> float:
        units = MANY // kernels
        devices.use(0)
        begin = time.perf_counter()
        for _ in range(kernels):
            launch(stream, units)
        devices.wait(0)
        return time.perf_counter() - begin

    return timed


def _fused_graph(scope: Scope, stream: Stream) -> Timed:
    """The same with the launches as nodes of one graph."""
    devices = scope.devices
    wait = devices.kernel(0, "launch", "wait")
    graphs = {
        kernels: _graph(scope, stream, kernels, partial(wait, stream, 1, 32, u32(MANY // kernels), u32(UNIT)))
        for kernels in (MANY, ONE)
    }
    return lambda stream, kernels: _launched(devices, graphs[kernels], stream)


def _graph(scope: Scope, stream: Stream, nodes: int, record: Callable[[], None]) -> Any:
    """A graph of `nodes` launches, captured from the stream and instantiated."""
    devices = scope.devices
    mode = devices.driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    devices.use(0)
    devices.call("cuStreamBeginCapture", stream.handle, mode)
    for _ in range(nodes):
        record()
    graph = devices.call("cuStreamEndCapture", stream.handle)
    scope.stack.callback(devices.driver.cuGraphDestroy, graph)
    ready = devices.call("cuGraphInstantiate", graph, 0)
    scope.stack.callback(devices.driver.cuGraphExecDestroy, ready)
    return ready


def _launched(devices: Devices, graph: Any, stream: Stream) -> float:
    """Host seconds of one launch of a graph, until its end."""
    begin = time.perf_counter()
    devices.call("cuGraphLaunch", graph, stream.handle)
    devices.wait(0)
    return time.perf_counter() - begin


def _null_kernels(bench: Bench, scope: Scope, streams: Sequence[Stream]) -> Iterator[Result | Lack]:
    """Null kernels as nodes of a graph, and launched one by one."""
    devices = scope.devices
    kernel = devices.kernel(0, "launch", "nothing")
    samples, pairs = bench.choose(9, 25), PAIRS["null"]
    graph = _graph(scope, streams[0], NODES, lambda: kernel(streams[0], 1, 32))
    nodes = _samples(samples, streams, lambda stream: _launched(devices, graph, stream) / NODES, pairs)
    yield result("null_kernel_latency", "s", nodes, {"how": "graph node"}, floor=0.05)
    try:
        driver = entries()
    except DeviceFault as error:
        yield Lack(f"null kernels from a compiled loop: {error}")
        return
    for how, launch in (("plain", driver.launch), ("cooperative", driver.cooperative)):
        timed = _compiled(launches(launch, driver.synchronize, how == "cooperative"), kernel)
        more = _samples(samples, streams, partial(_latency, timed), pairs)
        yield result("null_kernel_latency", "s", more, {"how": how}, floor=FLOOR)
        alone = _samples(samples, streams, partial(_round_trip, timed), pairs)
        yield result("round_trip", "s", alone, {"how": how}, floor=FLOOR)


def _latency(timed: Timed, stream: Stream) -> float:
    """Table I: five launches and a wait less one launch and a wait, over four."""
    return per_repeat(partial(timed, stream), ONE, FIVE)


def _round_trip(timed: Timed, stream: Stream) -> float:
    return timed(stream, ONE)


def _compiled(loop: Loop, kernel: Kernel) -> Timed:
    """Seconds of so many launches of a kernel and a wait, from a compiled loop."""
    clock, function = np.zeros(2, np.int64), handle(kernel.function)

    def timed(stream: Stream, count: int) -> float:
        seconds = float(loop(function, 1, 32, handle(stream.handle), count, clock))
        if seconds < 0:
            raise DeviceFault(f"A launch from the compiled loop failed with code {-seconds:.0f}: try again.")
        return seconds

    return timed


PROBE = Probe(
    name="launch",
    group="synchronisation",
    rows=("M30",),
    title="Launch overhead by kernel fusion, and the latency of a kernel that does nothing",
    unit="s",
    method=(
        "All from the host's clock, from before the first launch to the return of the wait; a sample is the median of "
        "several pairs measured one after the other, each sample on another processor and stream. Overhead: 33 kernels "
        "of one block that wait 40000 cycles each, less one that waits as long as all, over 32 (equation 6 of the "
        "study): the host's own calls hide behind the waiting. Null kernel: five cuLaunchKernel and a wait less one "
        "and a wait, over four, from a compiled loop that calls the driver; 'graph node': a graph of 50, launch and "
        "wait, over 50."
    ),
    run=run,
    gpus=1,
)

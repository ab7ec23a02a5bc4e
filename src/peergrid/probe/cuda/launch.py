"""The cost of a launch: overhead by kernel fusion, and the total latency of a kernel that does nothing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.probe.cpu.threads import on_each_processor
from peergrid.probe.cuda.devices import Gpus, LoadedKernel, Scope, Stream, u32
from peergrid.probe.cuda.hostloop import Loop, entries, handle, launches
from peergrid.probe.cuda.timing import per_repeat
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, fusion_overhead, result

UNIT = 40_000  # cycles: twenty microseconds, well above what the host needs for a launch
MANY, ONE = 33, 1
FIVE = 5
NODES = 50
STREAMS = 5  # samples take them one after another: the first one of a process is faster than the others
FLOOR, NULL_FLOOR = 0.15, 0.25  # processes on one machine differ by so much for no visible reason
PLACES = 25  # processors, each with the next stream
PAIRS = {"overhead": 9, "null": 25}  # a sample is the median of so many pairs: the host's clock jumps

Launch = Callable[[Stream, int], None]
Timed = Callable[[Stream, int], float]
Compiled = Callable[[Stream, int, int], float]


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Launch overhead of every way to launch (equation 6), then null kernels."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        streams = [scope.stream(0) for _ in range(STREAMS)]
        loops: dict[str, Loop] = {}
        try:
            loops = _loops()
        except DeviceFault as error:
            yield Lack(f"launches from a compiled loop: {error}")
        yield from _overheads(bench, scope, streams, loops)
        yield from _null_kernels(bench, scope, streams, loops)


def _overheads(
    bench: Bench, scope: Scope, streams: Sequence[Stream], loops: dict[str, Loop]
) -> Iterator[Measurement | Lack]:
    devices = scope.devices
    wait = devices.kernel(0, "launch", "wait")
    ways = {how: _units(_compiled(loop, wait)) for how, loop in loops.items()}
    if devices.attribute("COMPUTE_CAPABILITY_MAJOR") >= 9:
        ways["dependent"] = _fused(devices, _dependent(devices))
    else:
        yield Lack("programmatic dependent launch: it needs compute capability 9 or later")
    ways["graph"] = _fused_graph(scope, streams[0])
    for how, timed in ways.items():
        each = _samples(bench.choose(15, PLACES), streams, partial(_overhead, timed), PAIRS["overhead"])
        yield result("launch_overhead", "s", each, {"how": how}, floor=FLOOR)


def _samples(count: int, streams: Sequence[Stream], pair: Callable[[Stream], float], pairs: int) -> list[float]:
    """Medians of `pairs` measurements each, every one on another processor and another stream than the one before."""
    following = cycle(streams)

    def measure() -> float:
        stream = next(following)
        pair(stream)
        return statistics.median(pair(stream) for _ in range(pairs))

    return on_each_processor(count, measure)


def _overhead(timed: Timed, stream: Stream) -> float:
    """Equation 6: the same waiting in many kernels and in one, one after the other."""
    return fusion_overhead(timed(stream, MANY), timed(stream, ONE), MANY, ONE)


def _loops() -> dict[str, Loop]:
    """Compiled loops that launch in the plain way and cooperatively.

    Raises:
        DeviceFault: there is no driver library.
    """
    driver = entries()
    return {
        "plain": launches(driver.launch, driver.synchronize, False),
        "cooperative": launches(driver.cooperative, driver.synchronize, True),
    }


def _units(compiled: Compiled) -> Timed:
    """Seconds of so many kernels that wait MANY units together."""
    values = np.array([0, UNIT], np.uint32)
    addresses = np.array([values.ctypes.data, values.ctypes.data + values.itemsize], np.uint64)

    def timed(stream: Stream, kernels: int) -> float:
        values[0] = MANY // kernels
        return compiled(stream, kernels, addresses.ctypes.data)

    return timed


def _dependent(devices: Gpus) -> Launch:
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


def _fused(devices: Gpus, launch: Launch) -> Timed:
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


def _launched(devices: Gpus, graph: Any, stream: Stream) -> float:
    """Host seconds of one launch of a graph, until its end."""
    begin = time.perf_counter()
    devices.call("cuGraphLaunch", graph, stream.handle)
    devices.wait(0)
    return time.perf_counter() - begin


def _null_kernels(
    bench: Bench, scope: Scope, streams: Sequence[Stream], loops: dict[str, Loop]
) -> Iterator[Measurement]:
    """Null kernels as nodes of a graph, and launched one by one."""
    devices = scope.devices
    kernel = devices.kernel(0, "launch", "nothing")
    pairs = PAIRS["null"]
    graph = _graph(scope, streams[0], NODES, lambda: kernel(streams[0], 1, 32))
    nodes = _samples(bench.choose(9, PLACES), streams, lambda s: _launched(devices, graph, s) / NODES, pairs)
    yield result("null_kernel_latency", "s", nodes, {"how": "graph node"}, floor=0.05)
    for how, loop in loops.items():
        timed = _bare(_compiled(loop, kernel))
        more = _samples(PLACES, streams, partial(_latency, timed), pairs)
        yield result("null_kernel_latency", "s", more, {"how": how}, floor=NULL_FLOOR)
        alone = _samples(PLACES, streams, partial(_round_trip, timed), pairs)
        yield result("round_trip", "s", alone, {"how": how}, floor=FLOOR)


def _bare(compiled: Compiled) -> Timed:
    """Without arguments."""
    return lambda stream, count: compiled(stream, count, 0)


def _latency(timed: Timed, stream: Stream) -> float:
    """Table I: five launches and a wait less one launch and a wait, over four."""
    return per_repeat(partial(timed, stream), ONE, FIVE)


def _round_trip(timed: Timed, stream: Stream) -> float:
    return timed(stream, ONE)


def _compiled(loop: Loop, kernel: LoadedKernel) -> Compiled:
    """Seconds of so many launches of a kernel and a wait, from a compiled loop; the kernel's arguments as it says."""
    clock, function = np.zeros(2, np.int64), handle(kernel.function)

    def timed(stream: Stream, count: int, arguments: int) -> float:
        kernel.devices.use(0)
        seconds = float(loop(function, 1, 32, handle(stream.handle), arguments, count, clock))
        if seconds < 0:
            raise DeviceFault(f"A launch from the compiled loop failed with code {-seconds:.0f}: try again.")
        return seconds

    return timed


PROBE = Probe(
    name="launch",
    group="synchronisation",
    title="Launch overhead by kernel fusion, and the latency of a kernel that does nothing",
    unit="s",
    method=(
        "All from the host's clock, from before the first launch to the return of the wait; a sample is the median of "
        "several pairs measured one after the other, each sample on another processor and stream. Overhead: 33 kernels "
        "of one block that wait 40000 cycles each, less one that waits as long as all, over 32 (equation 6 of the "
        "study): the host's own calls hide behind the waiting. Null kernel: five launches and a wait less one "
        "and a wait, over four; 'graph node': a graph of 50, launch and wait, over 50. Plain and cooperative launches "
        "are calls of the driver from a compiled loop."
    ),
    run=run,
    gpus=1,
)

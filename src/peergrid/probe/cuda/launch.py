"""What a launch costs: overhead by kernel fusion, and the total latency of a kernel that does nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from peergrid.errors import DeviceFault
from peergrid.probe.cuda.devices import Devices, Scope, Stream, u32
from peergrid.probe.cuda.hostloop import entries, handle, launches
from peergrid.probe.experiment import Bench, Impossible, Probe, Result, differences, fusion_overhead, result

UNIT = 40_000  # cycles: twenty microseconds, well above what the host needs for a launch
MANY, ONE = 33, 1
NODES = 50


def run(bench: Bench) -> Iterator[Result]:
    """Launch overhead of every way to launch (equation 6), then null kernels."""
    devices: Devices = bench.devices
    with devices.scope() as scope:
        stream = scope.stream(0)
        for how, launch in _ways(devices, stream).items():
            each = [_fused(devices, launch) for _ in range(bench.choose(7, 21))]
            yield result("launch_overhead", "s", each, {"how": how}, floor=0.05)
        yield _graph_overhead(bench, scope, stream)
        yield from _null_kernels(bench, scope, stream)


Launch = Callable[[int], None]


def _ways(devices: Devices, stream: Stream) -> dict[str, Launch]:
    """Functions that launch a kernel of so many wait units."""
    wait = devices.kernel(0, "launch", "wait")
    found: dict[str, Launch] = {
        "plain": lambda units: wait(stream, 1, 32, u32(units), u32(UNIT)),
        "cooperative": lambda units: wait(stream, 1, 32, u32(units), u32(UNIT), cooperative=True),
    }
    if devices.attribute("COMPUTE_CAPABILITY_MAJOR") >= 9:
        found["dependent"] = _dependent(devices, stream)
    return found


def _dependent(devices: Devices, stream: Stream) -> Launch:
    """Programmatic dependent launch: the next kernel may start while the one before ends."""
    driver = devices.driver
    kernel = devices.kernel(0, "launch", "wait_dependent")
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 32, 1, 1
    config.hStream, config.attrs, config.numAttrs = stream.handle, [attribute], 1

    def launch(units: int) -> None:
        packed = ((units, UNIT), (type(u32(0)), type(u32(0))))
        devices.call("cuLaunchKernelEx", config, kernel.function, packed, 0)

    return launch


def _fused(devices: Devices, launch: Launch) -> float:
    """Equation 6: the same waiting in many kernels and in one."""
    times = {}
    for kernels, units in ((MANY, ONE), (ONE, MANY)):
        devices.use(0)
        launch(1)
        devices.wait(0)
        begin = time.perf_counter()
        for _ in range(kernels):
            launch(units)
        devices.wait(0)
        times[kernels] = time.perf_counter() - begin
    return fusion_overhead(times[MANY], times[ONE], MANY, ONE)


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


def _graph_overhead(bench: Bench, scope: Scope, stream: Stream) -> Result:
    """Equation 6 with the launches as nodes of one graph."""
    devices = scope.devices
    wait = devices.kernel(0, "launch", "wait")
    split = _graph(scope, stream, MANY, lambda: wait(stream, 1, 32, u32(ONE), u32(UNIT)))
    fused = _graph(scope, stream, ONE, lambda: wait(stream, 1, 32, u32(MANY), u32(UNIT)))
    seconds = {graph: [] for graph in ("split", "fused")}  # type: dict[str, list[float]]
    for _ in range(bench.choose(7, 21) + 1):
        for name, graph in (("split", split), ("fused", fused)):
            begin = time.perf_counter()
            devices.call("cuGraphLaunch", graph, stream.handle)
            devices.wait(0)
            seconds[name].append(time.perf_counter() - begin)
    each = [fusion_overhead(a, b, MANY, ONE) for a, b in zip(seconds["split"], seconds["fused"], strict=True)]
    return result("launch_overhead", "s", each[1:], {"how": "graph"}, floor=0.05)


def _null_kernels(bench: Bench, scope: Scope, stream: Stream) -> Iterator[Result]:
    """Table I: time of five launches and a wait less that of one, by the difference of four."""
    devices = scope.devices
    kernel = devices.kernel(0, "launch", "nothing")
    try:
        driver = entries()
    except DeviceFault as error:
        raise Impossible(f"null kernels need a compiled loop: {error}") from error
    kernel(stream, 1, 32)
    devices.wait(0)
    samples = bench.choose(51, 201)
    for how, launch, cooperative in (
        ("plain", driver.launch, False),
        ("cooperative", driver.cooperative, True),
    ):
        loop = launches(launch, driver.synchronize, cooperative)

        def timed(count: int, loop: Callable[..., int] = loop) -> float:
            begin = time.perf_counter()
            code = loop(handle(kernel.function), 1, 32, handle(stream.handle), count)
            seconds = time.perf_counter() - begin
            if code:
                raise DeviceFault(f"A launch from the compiled loop failed with code {code}: try again.")
            return seconds

        timed(5)
        one, five = [timed(1) for _ in range(samples)], [timed(5) for _ in range(samples)]
        yield result("null_kernel_latency", "s", differences(five, one, 5, 1), {"how": how}, floor=0.05)
        yield result("round_trip", "s", one, {"how": how}, floor=0.05)
    graph = _graph(scope, stream, NODES, lambda: kernel(stream, 1, 32))
    each = [_per_node(devices, graph, stream) for _ in range(samples + 1)]
    yield result("null_kernel_latency", "s", each[1:], {"how": "graph node"}, floor=0.05)


def _per_node(devices: Devices, graph: Any, stream: Stream) -> float:
    begin = time.perf_counter()
    devices.call("cuGraphLaunch", graph, stream.handle)
    devices.wait(0)
    return (time.perf_counter() - begin) / NODES


PROBE = Probe(
    name="launch",
    group="synchronisation",
    rows=("M30",),
    title="Launch overhead by kernel fusion, and the latency of a kernel that does nothing",
    unit="s",
    method=(
        "Overhead: 33 kernels that wait twenty microseconds each against one that waits as long as all (equation 6 of "
        "the study), so that the host's own calls hide behind the waiting. Null kernels: five launches and a wait "
        "less one launch and a wait, divided by four, from a compiled loop that calls the driver directly; "
        "'graph node' is a graph of 50, per node."
    ),
    run=run,
    gpus=1,
)

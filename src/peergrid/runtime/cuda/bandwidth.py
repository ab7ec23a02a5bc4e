"""The bandwidth of a GPU's memory: a plain copy within it, the measure that rates are compared with."""

from __future__ import annotations

from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices, borrowed
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.schedule.ops import Event, Queue

COUNT = 1 << 30
LEAST = 64 << 20  # bytes below which caches would be measured
COPIES = 8


def copy_bandwidth(ordinal: int = 0, samples: int = 5, driver: CudaDriver | None = None) -> float | None:
    """Bytes per second, read plus written, of copies within a GPU; the best of some samples.

    None where too little memory is free for a measurement.
    """
    with borrowed((ordinal,), driver) as devices:
        count = min(COUNT, devices.on(0).memory()[0] // 4)
        if count < LEAST:
            return None
        source, target = devices.allocate(0, count), devices.allocate(0, count)
        times = [_copy(devices, source, target, count) for _ in range(samples + 1)]  # the first one warms up
        return 2 * COPIES * count / min(times[1:])


def _copy(devices: Devices, source: int, target: int, count: int) -> float:
    """Seconds of several copies."""
    queue, before, after = Queue(0, "copy"), Event(0, "before"), Event(0, "after")
    commands = CommandWriter(devices)
    commands.record(-1, queue, before, timing=True)
    for _ in range(COPIES):
        commands.call(-1, queue, "cuMemcpyAsync", target, source, count, devices.stream(queue))
    commands.record(-1, queue, after, timing=True)
    issue(devices, commands.finish(), "A copy to measure the memory with")
    devices.synchronize()
    return devices.elapsed(before, after)

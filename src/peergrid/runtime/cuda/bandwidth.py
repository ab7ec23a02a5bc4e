"""The bandwidth of a GPU's memory: a plain copy within it, the measure that rates are compared with."""

from __future__ import annotations

from peergrid.runtime.cuda.commands.buffer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.driver import CudaDriver, Driver
from peergrid.runtime.cuda.issue import issue
from peergrid.schedule.ops import Event, Queue

COUNT = 1 << 30
LEAST = 64 << 20  # bytes below which caches would be measured
COPIES = 8


def copy_bandwidth(ordinal: int = 0, samples: int = 5, driver: Driver | None = None) -> float | None:
    """Bytes per second, read plus written, of copies within a GPU; the best of some samples.

    None where too little memory is free to tell.
    """
    devices = Devices(driver or CudaDriver(), (ordinal,))
    try:
        devices.enter(0)
        count = min(COUNT, devices.driver.memory()[0] // 4)
        if count < LEAST:
            return None
        source, target = devices.allocate(0, count), devices.allocate(0, count)
        times = [_copy(devices, source, target, count) for _ in range(samples + 1)]  # the first one warms up
        return 2 * COPIES * count / min(times[1:])
    finally:
        devices.close()


def _copy(devices: Devices, source: int, target: int, count: int) -> float:
    """Seconds of several copies."""
    queue, entry = Queue(0, "copy"), devices.driver.entry
    stream, context = devices.stream(queue), devices.context(0)
    before, after = (devices.event(Event(0, name), timing=True) for name in ("before", "after"))
    commands = CommandWriter()
    commands.call(-1, context, entry("cuEventRecord"), before, stream)
    for _ in range(COPIES):
        commands.call(-1, context, entry("cuMemcpyAsync"), target, source, count, stream)
    commands.call(-1, context, entry("cuEventRecord"), after, stream)
    issue(commands.finish(), entry("cuCtxSetCurrent"), "A copy to measure the memory with")
    devices.synchronize()
    return devices.driver.elapsed(before, after)

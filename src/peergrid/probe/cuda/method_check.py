"""The method itself: the latency of one addition by the clock register and by differences of launches."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator

import numpy as np

from peergrid.probe.cuda.devices import Devices, u32, u64
from peergrid.probe.cuda.timing import Desk
from peergrid.probe.experiment import Bench, Probe, Result, deviation_of_difference, differences, result

UNROLL, FEW, MANY = 64, 4_000, 24_000


def run(bench: Bench) -> Iterator[Result]:
    """Cycles of a dependent float addition, both ways, their ratio, and the deviation of equation 8."""
    devices: Devices = bench.devices
    with devices.scope() as scope:
        desk = Desk.make(scope)
        _launch(desk, FEW)
        samples = bench.choose(11, 31)
        longer = [_launch(desk, MANY) for _ in range(samples)]
        shorter = [_launch(desk, FEW) for _ in range(samples)]
    clock = differences([x[1] for x in longer], [x[1] for x in shorter], MANY * UNROLL, FEW * UNROLL)
    rate = float(np.median([cycles / seconds for _, cycles, seconds in longer]))
    host = [a[0] * rate for a in longer], [b[0] * rate for b in shorter]
    by_host = differences(*host, MANY * UNROLL, FEW * UNROLL)
    yield result("add_latency", "cycles", clock, {"way": "clock register"}, floor=0.002)
    yield result("add_latency", "cycles", by_host, {"way": "differences"}, floor=0.02)
    sigma = deviation_of_difference(*host, MANY * UNROLL, FEW * UNROLL)
    yield result("add_deviation", "cycles", [sigma], {"way": "equation 8"}, floor=1.0)
    yield result("clock_rate", "Hz", [rate], {"device": 0})


def _launch(desk: Desk, repeats: int) -> tuple[float, float, float]:
    """Host seconds of the launch, and cycles and seconds of the additions by the GPU's own clocks."""
    kernel = desk.devices.kernel(0, "arithmetic", "additions")
    begin = time.perf_counter()
    desk.run(kernel, 1, 1, u32(repeats), ctypes.c_float(1e-9), u64(desk.out), u64(desk.sink))
    seconds = time.perf_counter() - begin
    cycles, nanoseconds = desk.read(2)
    return seconds, float(cycles), max(float(nanoseconds), 1.0) * 1e-9


PROBE = Probe(
    name="method",
    group="synchronisation",
    rows=("M38",),
    title="One float addition by the clock register and by the method of differences",
    unit="cycles",
    method=(
        "1.5 million dependent additions less 0.26 million: cycles by the clock register, and host seconds times "
        "the clock rate (cycles over the GPU's own nanoseconds). Equal figures mean that the method of differences, "
        "on which all barriers rest, is sound; equation 8 gives its standard deviation."
    ),
    run=run,
    gpus=1,
)

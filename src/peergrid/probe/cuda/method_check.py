"""The method itself: the latency of one addition by the clock register and by differences of launches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from peergrid.probe.cpu.threads import on_each_processor
from peergrid.probe.cuda.devices import Gpus, f32, u32, u64
from peergrid.probe.cuda.timing import Desk
from peergrid.probe.experiment import Bench, Measurement, Probe, deviation_of_difference, differences, result

UNROLL, FEW, MANY = 64, 4_000, 24_000
PAIRS = 7  # launches of either length that give one standard deviation

Launches = list[tuple[float, float, float]]


def run(bench: Bench) -> Iterator[Measurement]:
    """Cycles of a dependent float addition, both ways, their ratio, and the deviation of equation 8."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        desk = Desk.make(scope)
        _launch(desk, FEW)
        sets = on_each_processor(bench.choose(7, 15), partial(_set, desk))
    longer, shorter = ([launch for each in sets for launch in each[at]] for at in (0, 1))
    clock = differences([x[1] for x in longer], [x[1] for x in shorter], MANY * UNROLL, FEW * UNROLL)
    rate = float(np.median([cycles / seconds for _, cycles, seconds in longer]))
    by_host = differences(*_on_host(longer, shorter, rate), MANY * UNROLL, FEW * UNROLL)
    yield result("add_latency", "cycles", clock, {"way": "clock register"}, floor=0.002)
    yield result("add_latency", "cycles", by_host, {"way": "differences"}, floor=0.02)
    sigmas = [deviation_of_difference(*_on_host(*each, rate), MANY * UNROLL, FEW * UNROLL) for each in sets]
    yield result("add_deviation", "cycles", sigmas, {"way": "equation 8"}, floor=0.5)
    yield result("clock_rate", "Hz", [rate], {"device": 0})


def _set(desk: Desk) -> tuple[Launches, Launches]:
    """Long launches and short ones."""
    return [_launch(desk, MANY) for _ in range(PAIRS)], [_launch(desk, FEW) for _ in range(PAIRS)]


def _on_host(longer: Launches, shorter: Launches, rate: float) -> tuple[list[float], list[float]]:
    """The host's seconds of launches, in cycles."""
    return [a[0] * rate for a in longer], [b[0] * rate for b in shorter]


def _launch(desk: Desk, repeats: int) -> tuple[float, float, float]:
    """Host seconds of the launch, and cycles and seconds of the additions by the GPU's own clocks."""
    kernel = desk.devices.kernel(0, "arithmetic", "additions")
    begin = time.perf_counter()
    desk.run(kernel, 1, 1, u32(repeats), f32(1e-9), u64(desk.out), u64(desk.sink))
    seconds = time.perf_counter() - begin
    cycles, nanoseconds = desk.read(2)
    return seconds, float(cycles), max(float(nanoseconds), 1.0) * 1e-9


PROBE = Probe(
    name="method",
    group="synchronisation",
    title="One float addition by the clock register and by the method of differences",
    unit="cycles",
    method=(
        "1.5 million dependent additions less 0.26 million: cycles by the clock register, and host seconds times "
        "the clock rate (cycles over the GPU's own nanoseconds). Equal figures mean that the method of differences, "
        "on which all barriers rest, is sound; equation 8 gives its standard deviation, once per "
        "seven launches of each length on one processor after the other."
    ),
    run=run,
    gpus=1,
)

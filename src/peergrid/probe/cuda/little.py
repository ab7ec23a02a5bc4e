"""Little's law in shared memory: concurrency, the switching points it predicts, and the ones that are measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from peergrid.probe.cuda.devices import Gpus, u32, u64
from peergrid.probe.cuda.timing import Desk, per_repeat
from peergrid.probe.experiment import Bench, Measurement, Probe, result

WORD = 8
SCENARIOS = {"1 → 32 threads": (1, 32), "32 → 1024 threads": (32, 1024)}
SIZES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
FEW, MANY, LOADS = 8, 72, 16  # repeats, and loads per repeat of the chain


def switch_point(latency: float, sync: float, basic: float, more: float) -> float:
    """Bytes from which more threads pay: equations 2 to 5 of the study.

    Args:
        latency: cycles until the first operand is there and added.
        sync: cycles of the synchronisation that more threads need.
        basic, more: bytes per cycle with few and with more threads.

    Equation 4 holds up to the concurrency of `more` (equation 1), equation 5 above it.
    """
    middle = (latency + sync) * basic
    if middle <= latency * more:
        return middle
    return sync * more * basic / (more - basic) if more > basic else math.inf


def run(bench: Bench) -> Iterator[Measurement]:
    """Bandwidth and latency of shared memory, concurrency by equation 1, and both switching points."""
    devices: Gpus = bench.devices
    samples = bench.choose(3, 9)
    with devices.scope() as scope:
        desk = Desk.make(scope)
        waits = [_latency(desk) for _ in range(samples)]
        yield result("shared_latency", "cycles", waits, {}, floor=0.02)
        latency = float(np.median(waits))
        rates: dict[int, float] = {}
        for threads in (1, 32, 1024):
            each = [_rate(desk, threads) for _ in range(samples)]
            rates[threads] = float(np.median(each))
            yield result("shared_bandwidth", "B/cycle", each, {"threads": threads}, floor=0.02)
            bytes_in_flight = [value * latency for value in each]
            yield result("concurrency", "B", bytes_in_flight, {"threads": threads}, floor=0.02)
        for scenario, (basic, more) in SCENARIOS.items():
            yield from _switch(desk, samples, scenario, (basic, more), rates, latency)


def _switch(
    desk: Desk, samples: int, scenario: str, pair: tuple[int, int], rates: Mapping[int, float], latency: float
) -> Iterator[Measurement]:
    basic, more = pair
    syncs = [max(1.0, _cycles(desk, more, more, 1) - _cycles(desk, more, more, 0)) for _ in range(samples)]
    yield result("sync_latency", "cycles", syncs, {"scenario": scenario}, floor=0.02)
    predicted = switch_point(latency, float(np.median(syncs)), rates[basic], rates[more])
    if math.isfinite(predicted):
        yield result("switch_point", "B", [predicted], {"scenario": scenario, "way": "predicted"}, floor=0.05)
    measured = [value for value in (_crossing(desk, basic, more) for _ in range(samples)) if value]
    if measured:
        yield result("switch_point", "B", measured, {"scenario": scenario, "way": "measured"}, floor=0.1)


def _crossing(desk: Desk, basic: int, more: int) -> float:
    """Bytes at which the sum by more threads becomes the faster one for good; 0 if it never does."""
    gains = [_cycles(desk, basic, n, 1) - _cycles(desk, more, n, 1) for n in SIZES]
    last = max((at for at, gain in enumerate(gains) if gain <= 0), default=-1)
    if last < 0:
        return float(SIZES[0] * WORD)
    if last == len(SIZES) - 1:
        return 0.0
    share = -gains[last] / (gains[last + 1] - gains[last])
    return (SIZES[last] + share * (SIZES[last + 1] - SIZES[last])) * WORD


def _rate(desk: Desk, threads: int) -> float:
    """Bytes per cycle, from 4096 values less 1024 (a single thread: 1024 less 256)."""
    large, small = (1024, 256) if threads == 1 else (4096, 1024)
    return (large - small) * WORD / (_cycles(desk, threads, large, 0) - _cycles(desk, threads, small, 0))


def _cycles(desk: Desk, threads: int, n: int, reduce: int) -> float:
    """Cycles of one sum of `n` doubles, from many sums less few."""
    kernel = desk.devices.kernel(0, "arithmetic", "sum_shared")

    def cycles(repeats: int) -> float:
        desk.run(kernel, 1, threads, u32(n), u32(repeats), u32(reduce), u64(desk.out), u64(desk.sink))
        return float(desk.read()[0])

    return per_repeat(cycles, FEW, MANY)


def _latency(desk: Desk) -> float:
    """Cycles of a load from shared memory and the addition that waits for it: one step of a sum."""
    kernel = desk.devices.kernel(0, "arithmetic", "chase_shared")

    def cycles(repeats: int) -> float:
        desk.run(kernel, 1, 1, u32(repeats), u64(desk.out), u64(desk.sink))
        return float(desk.read()[0])

    return per_repeat(cycles, FEW, MANY) / LOADS


PROBE = Probe(
    name="little",
    group="model",
    title="Little's law in shared memory, and where more threads begin to pay: predicted and measured",
    unit="B",
    method=(
        "Sums of doubles in shared memory by 1, 32 and 1024 threads, by the clock register, many less few. The loop "
        "is the study's (figure 10), as it is compiled today: a thread has at most one load in flight. Latency is a "
        "load and the addition that waits for it; concurrency is latency times rate (equation 1). The switching point "
        "follows from equations 2 to 5 with the measured cost of the reduction's synchronisation, and is measured by "
        "where the two sums cross."
    ),
    run=run,
    gpus=1,
)

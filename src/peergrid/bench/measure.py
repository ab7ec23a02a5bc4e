"""Measure cases: the median of several samples after a warm-up; samples of compared cases are interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil, prod
from statistics import median
from typing import Any, TypeVar

from peergrid.bench.power import PowerMeter
from peergrid.resolve import default_options
from peergrid.runtime.devices import Devices, cores
from peergrid.schedule import Options
from peergrid.schedule.strategies import StrategyName
from peergrid.simulate import Simulation
from peergrid.stencil import Problem
from peergrid.stencil.cost import minimal_bytes

SAMPLES = 7
SAMPLE_SECONDS = 0.1  # the shortest sample, unless `LONGEST` times the given steps take less
LONGEST = 32
# GPUs pause before a sample for this multiple of its length. An H200 at its power limit of 700 W for 0.2 s is
# clocked down, in some samples and not in others. At work for a quarter of the time, two are as fast as one.
REST = 3.0
SUSTAINED = 10  # sustained cases have samples longer by this factor, without pauses
SUSTAINED_WARM_UP = 2.0  # seconds before the first sample, after which clocks are down if they go down


@dataclass(frozen=True)
class Case:
    """A measurement to be made.

    series: its line in the chart; count: how many of the devices; depth: 0 to choose it for the problem; base: a group
    of series; efficiency is relative to its fastest case on one device; steps: of one sample, at least; norm: a field;
    the norm of its change is computed in every step;
    group: cases in a row with the same word are measured in interleaved samples and compared with the first of them;
    sustained: measured for seconds without pauses, at the clocks that the machine can sustain; block: steps of a pass,
    as in `Options`.
    """

    series: str
    make: Callable[[], Problem]
    count: int
    strategy: StrategyName
    depth: int
    steps: int
    base: str
    norm: str | None = None
    group: str = ""
    sustained: bool = False
    block: int | None = None


@dataclass(frozen=True)
class Measured:
    """The rates of a case, sample by sample.

    steps: of each sample; samples: seconds per step of each; seconds_per_step: their median; spread: their range over
    the median; host_seconds_per_step: of the host, to issue work (None: unknown); of_copy: the share of the copy
    bandwidth of all devices that this rate would need at one step per pass (None: not measured); efficiency: the rate
    over `count` times that of one device; against: the rate over that of the group's first case, the median over the
    rounds; watts: the mean power of each GPU in a sustained case (None: unknown, or not sustained);
    foretold_seconds_per_step: predicted for GPUs (None for virtual devices).
    """

    series: str
    base: str
    devices: str
    count: int
    shape: tuple[int, ...]
    options: Options
    steps: int
    samples: tuple[float, ...]
    seconds_per_step: float
    spread: float
    gcells_per_s: float
    host_seconds_per_step: float | None
    of_copy: float | None
    efficiency: float | None
    against: float | None
    watts: tuple[float, ...] | None
    notes: tuple[str, ...]
    foretold_seconds_per_step: float | None = None


Row = TypeVar("Row", bound=Any)


@dataclass(frozen=True)
class Clock:
    """The clock of the host, and a way to wait."""

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep


def first(devices: Devices, count: int) -> Devices:
    """The first `count` devices."""
    return Devices(devices.kind, devices.ordinals[:count])


def measure(
    cases: Sequence[Case], devices: Devices, bandwidth: float | None, clock: Clock | None = None
) -> tuple[Measured, ...]:
    """Run cases, sample by sample. bandwidth: of copies on one device, B/s; clock: the host's, or a fake one for tests.

    Raises DoesNotFit if they need more memory than there is.
    """
    with ExitStack() as stack:
        runs = [_Run(case, first(devices, case.count), stack, clock or Clock()) for case in cases]
        for _ in range(SAMPLES):
            for run in runs:
                run.sample()
        found = [run.measured(bandwidth) for run in runs]
    return tuple(replace(row, against=_against(row, found[0])) for row in found)


def _against(row: Measured, other: Measured) -> float:
    """The median of rate ratios in each round, so that temporary slowdowns of the machine affect both cases."""
    shares = (theirs / mine for mine, theirs in zip(row.samples, other.samples, strict=True))
    return median(shares) * prod(row.shape) / prod(other.shape)


def with_efficiency(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows, measured or predicted, with their efficiency relative to the group's fastest single device."""
    every = tuple(rows)
    single: dict[str, float] = {}
    for row in every:
        if row.count == 1:
            single[row.base] = max(row.gcells_per_s, single.get(row.base, 0.0))
    return tuple(
        replace(row, efficiency=row.gcells_per_s / single[row.base] / row.count) if row.base in single else row
        for row in every
    )


class _Run:
    """A case on its devices after warm-up, with the number of steps of its samples."""

    def __init__(self, case: Case, devices: Devices, stack: ExitStack, clock: Clock) -> None:
        self._case, self._devices, self._clock, problem = case, devices, clock, case.make()
        depth = case.depth or default_options(devices, problem, case.norm).depth
        options = Options(case.strategy, depth=depth, block=case.block)
        self._period = 2 * options.depth
        longer, warm_ups = (SUSTAINED, SAMPLES) if case.sustained else (1, 1)
        most = self._whole(longer * LONGEST * case.steps)
        self._simulation = stack.enter_context(
            Simulation(problem, (SAMPLES + warm_ups + 2) * most, devices=devices, options=options, norm=case.norm)
        )
        self._meter = stack.enter_context(PowerMeter.open(devices, clock.now)) if case.sustained else None
        self._advance(self._period)
        short = self._whole(case.steps)
        times = ceil(longer * SAMPLE_SECONDS / (short * self._advance(short)[0]))
        self.steps = min(most, short * max(1, times))
        self._seconds = self._warm_up(warm_ups)
        self._samples: list[tuple[float, float | None]] = []
        if self._meter:
            self._meter.begin()

    def sample(self) -> None:
        if self._devices.kind == "cuda" and not self._case.sustained:
            self._clock.sleep(REST * self._seconds)
        self._samples.append(self._advance(self.steps))
        self._seconds = self.steps * self._samples[-1][0]

    def _warm_up(self, most: int) -> float:
        """The seconds of the last warm-up sample; graphs, which are made once for a number of steps, are made now.

        Of a case that is sustained several are carried out, until clocks have come down.
        """
        warm = seconds = 0.0
        for _ in range(most):
            seconds = self.steps * self._advance(self.steps)[0]
            warm += seconds
            if warm >= SUSTAINED_WARM_UP:
                break
        return seconds

    def measured(self, bandwidth: float | None) -> Measured:
        watts = self._meter.watts() if self._meter else None
        limited = self._meter.notes(watts) if self._meter else ()
        case, problem, devices = self._case, self._simulation.problem, self._devices
        samples = tuple(seconds for seconds, _ in self._samples)
        hosts = [host for _, host in self._samples if host is not None]
        middle = median(samples)
        copies = None if bandwidth is None else bandwidth * len(set(devices.ordinals))
        return Measured(
            series=case.series,
            base=case.base,
            devices=str(devices),
            count=case.count,
            shape=problem.grid.shape,
            options=self._simulation.options,
            steps=self.steps,
            samples=samples,
            seconds_per_step=middle,
            spread=(max(samples) - min(samples)) / middle,
            gcells_per_s=problem.grid.box.size / middle / 1e9,
            host_seconds_per_step=median(hosts) if hosts else None,
            of_copy=None if copies is None else minimal_bytes(problem) / middle / copies,
            efficiency=None,
            against=None,
            watts=watts,
            notes=(*self._simulation.notes, *limited),
            foretold_seconds_per_step=self._predicted(),
        )

    def _predicted(self) -> float | None:
        """Seconds of a step as predicted for GPUs."""
        if self._devices.kind == "cpu":
            return None
        from peergrid.predict.here import seconds_per_step  # imports compilers, which is slow

        case = self._case
        return seconds_per_step(self._simulation.problem, self._devices, self._simulation.options, norm=case.norm)

    def _advance(self, steps: int) -> tuple[float, float | None]:
        """Make some steps; the seconds of a step, and those of the host per step."""
        host = self._simulation.host_seconds
        started = self._clock.now()
        self._simulation.run(steps)
        seconds = (self._clock.now() - started) / steps
        spent = self._simulation.host_seconds
        return seconds, None if host is None or spent is None else (spent - host) / steps

    def _whole(self, steps: int) -> int:
        return -(-steps // self._period) * self._period


def copy_bandwidth(devices: Devices) -> float | None:
    """Bytes per second, read plus written, of copies on one device: a GPU, or one thread's share of all of them."""
    if devices.kind == "cuda":
        from peergrid.runtime.cuda.bandwidth import copy_bandwidth as of_gpu

        return of_gpu(devices.ordinals[0])
    from peergrid.runtime.cpu.bandwidth import copy_bandwidth as of_threads

    threads = min(devices.count, cores())
    return of_threads(threads) / threads

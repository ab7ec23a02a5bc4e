"""One case: a problem on the first devices of a run, its rate in some samples after a warm-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peergrid.runtime.devices import Devices, cores
from peergrid.schedule import Options
from peergrid.simulate import Simulation, default_options
from peergrid.stencil import Problem
from peergrid.stencil.cost import minimal_bytes

SAMPLES = 3
WARM_PERIODS = 3


@dataclass(frozen=True)
class Case:
    """What to measure.

    series: the line of the chart it belongs to; count: how many of the devices; depth: 0 for what suits the problem;
    base: the series whose rate on one device the efficiency is counted from; steps: of one sample, at least;
    norm: a field the norm of whose change is computed in every step.
    """

    series: str
    make: Callable[[], Problem]
    count: int
    strategy: str
    depth: int
    steps: int
    base: str
    norm: str | None = None


@dataclass(frozen=True)
class Measured:
    """What came of it. seconds_per_step: of the best sample; spread: of the worst over the best, less one;
    of_copy: the share of the copy bandwidth of all devices that one step per pass would take at this rate
    (None where that was not measured); efficiency: the rate over that of as many single devices (None without one).
    """

    series: str
    devices: str
    count: int
    shape: tuple[int, ...]
    strategy: str
    depth: int
    block: int
    steps: int
    seconds_per_step: float
    gcells_per_s: float
    spread: float
    of_copy: float | None
    efficiency: float | None
    notes: tuple[str, ...]


def first(devices: Devices, count: int) -> Devices:
    """The first so many devices."""
    return Devices(devices.kind, devices.ordinals[:count])


def measure(case: Case, devices: Devices, bandwidth: float | None, single: float | None) -> Measured:
    """Carry out a case. bandwidth: of copies on one device, B/s; single: cells per second of the base on one device."""
    chosen, problem = first(devices, case.count), case.make()
    usual = default_options(chosen, problem)
    options = Options(case.strategy, depth=case.depth or usual.depth)  # type: ignore[arg-type]
    period = 2 * options.depth
    steps = -(-case.steps // period) * period
    with Simulation(
        problem, WARM_PERIODS * period + SAMPLES * steps, devices=chosen, options=options, norm=case.norm
    ) as simulation:
        simulation.run(WARM_PERIODS * period)
        seconds = []
        for _ in range(SAMPLES):
            before = simulation.seconds
            simulation.run(steps)
            seconds.append(simulation.seconds - before)
        notes, block = simulation.notes, simulation.options.steps_per_pass
    cells, best = problem.grid.box.size, min(seconds) / steps
    rate = cells / best
    copies = None if bandwidth is None else bandwidth * len(set(chosen.ordinals))
    alone = rate if case.count == 1 and single is None and case.base == case.series else single
    return Measured(
        series=case.series,
        devices=str(chosen),
        count=case.count,
        shape=problem.grid.shape,
        strategy=case.strategy,
        depth=options.depth,
        block=block,
        steps=steps,
        seconds_per_step=best,
        gcells_per_s=rate / 1e9,
        spread=max(seconds) / min(seconds) - 1,
        of_copy=None if copies is None else minimal_bytes(problem) / best / copies,
        efficiency=None if alone is None else rate / alone / case.count,
        notes=notes,
    )


def copy_bandwidth(devices: Devices) -> float | None:
    """Bytes per second, read plus written, of copies on one device: a GPU, or one thread's share of all of them."""
    if devices.kind == "cuda":
        from peergrid.runtime.cuda.bandwidth import copy_bandwidth as of_gpu

        return of_gpu(devices.ordinals[0])
    from peergrid.runtime.cpu.bandwidth import copy_bandwidth as of_threads

    threads = min(devices.count, cores())
    return of_threads(threads) / threads

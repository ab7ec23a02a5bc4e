"""The cost of a barrier between threads: the synchronisation of the virtual devices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from peergrid.probe.cpu.spin import WARM, WORDS_PER_LINE, lines, timed_barrier
from peergrid.probe.cpu.threads import Others, cores, counts, inside, rotated, rounds_in
from peergrid.probe.experiment import Bench, Impossible, Lack, Measurement, Probe, result

FEW = 50
MOST_PYTHON = 16  # threads at Python's barrier


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """A spinning barrier without the interpreter lock, and Python's own, for 2 to n threads."""
    others = Others.now()
    yield from others.warnings()
    cpus = cores()
    if len(cpus) < 2:
        raise Impossible("a barrier needs two threads on two cores, and this process has one")
    kinds: dict[str, Callable[[int, tuple[int, ...]], float]] = {"spin": spinning, "python": pythonic}
    for threads in counts(min(len(cpus), 64))[1:]:
        for kind, barrier in kinds.items():
            if kind == "python" and threads > MOST_PYTHON:
                continue  # with the interpreter lock it takes milliseconds, and fewer threads show that already
            samples = bench.choose(9, 25)
            crews = [rotated(cpus, at, samples)[:threads] for at in range(samples)]
            rounds = rounds_in(bench.choose(2, 4) / 100, FEW, barrier(FEW, crews[0]), 500_000)
            each = [barrier(rounds, used) / rounds for used in crews]
            yield result("host_barrier", "s", each, {"kind": kind, "threads": threads}, floor=others.floor(0.3))


def spinning(rounds: int, cpus: tuple[int, ...]) -> float:
    """Seconds of `rounds` barriers over a shared counter."""
    words, clocks = lines(2), np.zeros((len(cpus), WORDS_PER_LINE), np.int64)
    return inside(lambda index: float(timed_barrier(words, clocks[index], rounds, len(cpus))), cpus)


def pythonic(rounds: int, cpus: tuple[int, ...]) -> float:
    """Seconds of `rounds` barriers of `threading.Barrier`."""
    barrier = threading.Barrier(len(cpus))

    def body(index: int) -> float:
        for _ in range(WARM):
            barrier.wait()
        begin = time.perf_counter()
        for _ in range(rounds):
            barrier.wait()
        return time.perf_counter() - begin

    return inside(body, cpus)


PROBE = Probe(
    name="host-barrier",
    group="host",
    title="Cost of a barrier between 2 to n threads",
    unit="s",
    method=(
        "Pinned threads pass a spinning barrier many times (one counter, one generation word, no interpreter "
        "lock), then Python's; by the clock of the first thread around many barriers, after twenty that warm up. "
        "Each sample begins with another processor."
    ),
    run=run,
)

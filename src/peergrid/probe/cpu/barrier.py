"""What a barrier between threads costs: the synchronisation of the virtual devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from peergrid.probe.cpu.spin import lines, meet
from peergrid.probe.cpu.threads import cores, counts, rounds_in, together
from peergrid.probe.experiment import Bench, Impossible, Probe, Result, differences, result

FEW = 50
MOST_PYTHON = 16  # threads at Python's barrier


def run(bench: Bench) -> Iterator[Result]:
    """A spinning barrier without the interpreter lock, and Python's own, for 2 to n threads."""
    cpus = cores()
    if len(cpus) < 2:
        raise Impossible("a barrier needs two threads on two cores, and this process has one")
    kinds: dict[str, Callable[[int, tuple[int, ...]], float]] = {"spin": spinning, "python": pythonic}
    for threads in counts(min(len(cpus), 64))[1:]:
        for kind, barrier in kinds.items():
            if kind == "python" and threads > MOST_PYTHON:
                continue  # the interpreter lock makes it milliseconds, and the point is clear before
            used, samples = cpus[:threads], bench.choose(9, 25)
            many = rounds_in(bench.choose(2, 4) / 100, FEW, barrier(FEW, used), 500_000)
            shorter = [barrier(FEW, used) for _ in range(samples)]
            longer = [barrier(many, used) for _ in range(samples)]
            each = differences(longer, shorter, many, FEW)
            yield result("host_barrier", "s", each, {"kind": kind, "threads": threads}, floor=0.25)


def spinning(rounds: int, cpus: tuple[int, ...]) -> float:
    """Seconds of `rounds` barriers over a shared counter."""
    words = lines(2)
    return together(lambda index: bool(meet(words, rounds, len(cpus))), cpus)


def pythonic(rounds: int, cpus: tuple[int, ...]) -> float:
    """Seconds of `rounds` barriers of `threading.Barrier`."""
    barrier = threading.Barrier(len(cpus))

    def body(index: int) -> bool:
        for _ in range(rounds):
            barrier.wait()
        return True

    return together(body, cpus)


PROBE = Probe(
    name="host-barrier",
    group="host",
    rows=("M34",),
    title="Cost of a barrier between 2 to n threads",
    unit="s",
    method=(
        "Pinned threads meet many times at a spinning barrier (one counter, one generation word, no interpreter "
        "lock) and at Python's; time of many meetings less that of few, by the difference of the counts."
    ),
    run=run,
)

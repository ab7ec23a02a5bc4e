"""The time that a flag takes from one thread to another: the signal of the virtual devices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.probe.cpu.spin import WORDS_PER_LINE, lines, timed_ping
from peergrid.probe.cpu.threads import Others, cores, inside, rotated, rounds_in
from peergrid.probe.experiment import Bench, Impossible, Lack, Measurement, Probe, result


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Two threads answer each other's flag; the cost of a round trip, halved."""
    others = Others.now()
    yield from others.warnings()
    cpus = cores()
    if len(cpus) < 2:
        raise Impossible("two threads that wait for each other need two cores, and this process has one")
    few, samples = 200, bench.choose(11, 31)
    for place, apart in {"next": 1, "far": len(cpus) // 2}.items():
        if place == "far" and apart == 1:
            continue
        pairs = [(used[0], used[apart]) for used in (rotated(cpus, at, samples) for at in range(samples))]
        rounds = rounds_in(bench.choose(2, 4) / 100, few, game(few, pairs[0]), 50_000)
        one_way = [game(rounds, pair) / rounds / 2 for pair in pairs]
        yield result("host_flag_latency", "s", one_way, {"place": place}, floor=others.floor(0.3))


def game(rounds: int, pair: tuple[int, int]) -> float:
    """Seconds of `rounds` round trips between two pinned threads."""
    words, clocks = lines(2), np.zeros((2, WORDS_PER_LINE), np.int64)

    def side(index: int) -> float:
        mine, other = index * WORDS_PER_LINE, (1 - index) * WORDS_PER_LINE
        return float(timed_ping(words, clocks[index], rounds, mine, other, index == 0))

    return inside(side, pair)


PROBE = Probe(
    name="host-flag",
    group="host",
    title="Latency of a flag from one thread to another, one way",
    unit="s",
    method=(
        "Two pinned threads without the interpreter lock set and await each other's flag, each on its own "
        "cache line. Half of a round trip, by the clock of the first thread around many of them, after twenty that "
        "warm up. Each sample is on another pair of processors: next to each other in their numbers, or half of all "
        "apart."
    ),
    run=run,
)

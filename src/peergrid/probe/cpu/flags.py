"""How long a flag takes from one thread to another: the signal of the virtual devices."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.probe.cpu.spin import WORDS_PER_LINE, lines, ping
from peergrid.probe.cpu.threads import cores, rounds_in, together
from peergrid.probe.experiment import Bench, Impossible, Probe, Result, differences, result


def run(bench: Bench) -> Iterator[Result]:
    """Two threads answer each other's flag; the cost of a round trip, halved."""
    cpus = cores()
    if len(cpus) < 2:
        raise Impossible("two threads that wait for each other need two cores, and this process has one")
    few = bench.choose(200, 1000)
    for place, pair in {"next": (cpus[0], cpus[1]), "far": (cpus[0], cpus[-1])}.items():
        if place == "far" and len(cpus) == 2:
            continue
        samples = bench.choose(11, 31)
        many = rounds_in(bench.choose(2, 4) / 100, few, game(few, pair), 50_000)
        shorter = [game(few, pair) for _ in range(samples)]
        longer = [game(many, pair) for _ in range(samples)]
        one_way = [value / 2 for value in differences(longer, shorter, many, few)]
        yield result("host_flag_latency", "s", one_way, {"place": place}, floor=0.25)


def game(rounds: int, pair: tuple[int, int]) -> float:
    """Seconds of `rounds` round trips between two pinned threads."""
    words = lines(2)

    def side(index: int) -> bool:
        mine, other = index * WORDS_PER_LINE, (1 - index) * WORDS_PER_LINE
        return bool(ping(words, rounds, mine, other, index == 0))

    return together(side, pair)


PROBE = Probe(
    name="host-flag",
    group="host",
    rows=("M25", "M34"),
    title="Latency of a flag from one thread to another, one way",
    unit="s",
    method=(
        "Two pinned threads without the interpreter lock raise and await each other's word, each on its own "
        "cache line. Time of many round trips less that of few, by the difference of the counts, halved."
    ),
    run=run,
)

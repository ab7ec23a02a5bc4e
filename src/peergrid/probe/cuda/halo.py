"""All GPUs at once, as in a halo exchange along one axis: left-right, pairwise, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from peergrid.probe.cuda.devices import Gpus, Stream
from peergrid.probe.cuda.timing import host_seconds
from peergrid.probe.cuda.traffic import Flow, Tally
from peergrid.probe.experiment import At, Bench, Impossible, Lack, Measurement, Probe, result

SIZE = 64 << 20
ROUNDS = 8

Pair = tuple[int, int]


def left_right(count: int) -> list[list[Pair]]:
    """Everybody sends to the right, then everybody to the left."""
    return [[(i, i + 1) for i in range(count - 1)], [(i + 1, i) for i in range(count - 1)]]


def pairwise(count: int) -> list[list[Pair]]:
    """Even GPUs exchange with the odd ones to their right, then with those to their left."""
    return [[pair for i in range(first, count - 1, 2) for pair in ((i, i + 1), (i + 1, i))] for first in (0, 1)]


def at_once(count: int) -> list[list[Pair]]:
    """All messages without any order."""
    return [[pair for stage in left_right(count) for pair in stage]]


PATTERNS: dict[str, Callable[[int], list[list[Pair]]]] = {
    "left-right": left_right,
    "pairwise": pairwise,
    "all at once": at_once,
}


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Sum of all traffic for each pattern and number of GPUs, with and without waiting between the stages."""
    devices: Gpus = bench.devices
    counts = [count for count in (2, 4, 8, 16) if count <= len(devices)]
    with Tally.open(devices, "halo") as tally:
        for count in sorted({*counts, len(devices)}):
            if any((i, i + 1) not in devices.peers for i in range(count - 1)):
                raise Impossible("neighbours along the row of GPUs cannot reach each other's memory")
            for pattern, stages in PATTERNS.items():
                for separated in ("yes", "no") if len(stages(count)) > 1 else ("no",):
                    yield _exchange(bench, pattern, stages(count), separated, count, tally)
        yield from tally.results()


def _exchange(
    bench: Bench, pattern: str, stages: Sequence[Sequence[Pair]], separated: str, count: int, tally: Tally
) -> Measurement:
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        out = [scope.memory(device, 2 * SIZE) for device in range(count)]
        into = [scope.memory(device, 2 * SIZE) for device in range(count)]
        streams = {pair: scope.stream(pair[0]) for stage in stages for pair in stage}

        def work() -> None:
            for _ in range(ROUNDS):
                for stage in stages:
                    _send(devices, stage, streams, out, into)
                    if separated == "yes":
                        devices.wait_all(count)

        samples = bench.choose(3, 9)
        flows = [Flow(a, b, SIZE * ROUNDS * (samples + 1)) for stage in stages for a, b in stage]
        with tally.around({"pattern": pattern}, flows):
            seconds = [host_seconds(work, lambda: devices.wait_all(count)) for _ in range(samples + 1)][1:]
    moved = SIZE * ROUNDS * sum(len(stage) for stage in stages)
    at: At = {"pattern": pattern, "separated": separated, "devices": count}
    return result("halo_exchange_bandwidth", "B/s", [moved / s for s in seconds], at, floor=0.06)


def _send(
    devices: Gpus,
    stage: Sequence[Pair],
    streams: dict[Pair, Stream],
    out: Sequence[int],
    into: Sequence[int],
) -> None:
    """The half towards the right neighbour is the first, the half towards the left one the second."""
    for source, target in stage:
        half = 0 if target > source else SIZE
        devices.use(source)
        stream = streams[source, target]
        devices.call("cuMemcpyAsync", into[target] + half, out[source] + half, SIZE, stream.handle)


PROBE = Probe(
    name="halo",
    group="links",
    title="All GPUs exchange halos with their neighbours at once: aggregate throughput of each order",
    unit="B/s",
    method=(
        "Messages of 64 MiB by copy engines along a row of GPUs, eight rounds per sample, every message on its own "
        "stream; 'separated' waits on the host for all GPUs between the stages. Host clock, all bytes summed."
    ),
    run=run,
    gpus=2,
)

"""Through a GPU in the middle: its kernel loads from one GPU and stores to another, without a buffer on it."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.probe.cuda.devices import Gpus
from peergrid.probe.cuda.peer_copy import kernel_copy
from peergrid.probe.cuda.timing import Gate
from peergrid.probe.cuda.traffic import Flow, Tally
from peergrid.probe.experiment import Bench, Impossible, Lack, Measurement, Probe, result


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """A few triples, and there and back; the middle needs access to both ends, the ends need none to each other."""
    devices: Gpus = bench.devices
    size, repeats = 256 << 20, 2
    triples = [way for way in _ways(len(devices)) if {(way[1], way[0]), (way[1], way[2])} <= devices.peers]
    if not triples:
        raise Impossible("no two GPUs of this machine can reach each other's memory")
    if all(source == target for source, _, target in triples):
        yield Lack("three GPUs in a row: no GPU of this machine reaches two others, so the bytes go there and back")
    samples, moved = bench.choose(3, 9), size * repeats
    with Tally.open(devices, "relay") as tally:
        for source, middle, target in triples:
            with devices.scope() as scope:
                a, b = scope.memory(source, size), scope.memory(target, size)
                work = kernel_copy(devices, middle, b, a, size, repeats)
                gate, stream = Gate.make(scope, [middle]), scope.stream(middle)
                hops = [Flow(i, j, moved * (samples + 1)) for i, j in ((source, middle), (middle, target))]
                with tally.around({"route": "load and store"}, hops):
                    seconds = [s for (s,) in gate.samples([(stream, work)], samples)]
                at = {"source": source, "middle": middle, "target": target}
                yield result("relay_bandwidth", "B/s", [moved / s for s in seconds], at, floor=0.02)
        yield from tally.results()


def _ways(count: int) -> list[tuple[int, int, int]]:
    """Source, middle and target: there and back through GPU 1, which two GPUs can give; then three in a row."""
    rows = ((0, 1, 0), (0, 1, 2), (count - 1, 0, 1), (0, count - 1, count // 2))
    return [way for way in dict.fromkeys(rows) if way == rows[0] or (max(way) < count and len(set(way)) == 3)]


PROBE = Probe(
    name="relay",
    group="links",
    title="Bandwidth through a GPU in the middle, without a buffer on it",
    unit="B/s",
    method=(
        "A kernel on the middle GPU loads 16-byte words from one GPU and stores them to another, 256 MiB twice, "
        "behind a gate kernel, timed by events. There and back (source and target are one GPU) loads every link of "
        "the middle as three in a row do, each way once."
    ),
    run=run,
    gpus=2,
)

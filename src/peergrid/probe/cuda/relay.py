"""Through a GPU in the middle: its kernel loads from one GPU and stores to another, without a buffer on it."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.probe.cuda.devices import Devices
from peergrid.probe.cuda.peer_copy import kernel_copy
from peergrid.probe.cuda.timing import Gate
from peergrid.probe.cuda.traffic import Flow, Tally
from peergrid.probe.experiment import Bench, Impossible, Lack, Probe, Result, result


def run(bench: Bench) -> Iterator[Result | Lack]:
    """A few triples; the middle needs access to both ends, the ends need none to each other."""
    devices: Devices = bench.devices
    count, size, repeats = len(devices), 256 << 20, 2
    triples = [
        (a, m, b)
        for a, m, b in ((0, 1, 2), (count - 1, 0, 1), (0, count - 1, count // 2))
        if len({a, m, b}) == 3 and {(m, a), (m, b)} <= devices.peers
    ]
    if not triples:
        raise Impossible("no GPU reaches two others")
    samples, moved = bench.choose(3, 9), size * repeats
    with Tally.open(devices, "relay") as tally:
        for source, middle, target in dict.fromkeys(triples):
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


PROBE = Probe(
    name="relay",
    group="links",
    rows=("M12",),
    title="Bandwidth through a GPU in the middle, without a buffer on it",
    unit="B/s",
    method=(
        "A kernel on the middle GPU loads 16-byte words from one GPU and stores them to another, 256 MiB twice, "
        "behind a gate kernel, timed by events."
    ),
    run=run,
    gpus=3,
)

"""Atomic additions to own and remote memory: are they all there at the end, and how many per second?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peergrid.probe.cuda.devices import Gpus, Stream, u32, u64
from peergrid.probe.cuda.timing import Gate, Work
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

BLOCKS, THREADS = 128, 256
FLOORS = {"one word": 0.05, "own words": 0.1}
APART = 2 << 20  # bytes, a page: where words lie in the L2 decides how fast many of them are served


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """One word and a word per thread; own, remote, and all GPUs on the words of GPU 0 at once."""
    devices: Gpus = bench.devices
    everyone = [0, *(device for device in range(1, len(devices)) if (device, 0) in devices.peers)]
    crews: dict[str, Sequence[int]] = {"own": [0]}
    if len(everyone) > 1:
        crews |= {"remote": everyone[1:2], "all at once": everyone}
    else:
        yield Lack("remote atomics: no other GPU can reach the memory of GPU 0")
    for place, crew in crews.items():
        for words in ("one word", "own words"):
            yield from _crew(bench, place, crew, words)


def _crew(bench: Bench, place: str, crew: Sequence[int], words: str) -> Iterator[Measurement]:
    devices: Gpus = bench.devices
    threads, count = BLOCKS * THREADS, 1 if words == "one word" else BLOCKS * THREADS
    # About a millisecond: what serves one word is a hundred times slower than what serves many.
    repeats = bench.choose(50, 200) * (1 if count == 1 else 100)
    with devices.scope() as scope:
        targets = [scope.words(0, APART // 4) for _ in range(bench.choose(9, 15))]
        gate = Gate.make(scope, crew)
        streams = [scope.stream(device) for device in crew]
        seconds, total = [], 0
        for target in targets:
            works = [(stream, adding(devices, stream.device, target, count, repeats)) for stream in streams]
            seconds += [max(times) for times in gate.samples(works, 1)]
            total += int(devices.read(0, target, count).sum(dtype="uint64"))
    done = threads * repeats * len(crew)
    at = {"place": place, "words": words}
    yield result("remote_atomic_rate", "atomics/s", [done / s for s in seconds], at, floor=FLOORS[words])
    # The runs outside the gate count too; a word wraps at 2^32.
    lost = (2 * done * len(targets) - total) % 2**32
    yield result("remote_atomics_lost", "", [float(lost)], at, floor=0.0)


def adding(devices: Gpus, device: int, target: int, count: int, repeats: int) -> Work:
    """Work of a kernel whose every thread adds 1 `repeats` times."""
    kernel = devices.kernel(device, "atomics", "add")

    def work(stream: Stream) -> None:
        kernel(stream, BLOCKS, THREADS, u64(target), u32(int(count > 1)), u32(repeats))

    return work


PROBE = Probe(
    name="atomics",
    group="atomics and order",
    rows=("M9",),
    title="Remote atomic additions: lost ones and rate",
    unit="atomics/s",
    method=(
        "32768 threads add 1 by red.relaxed.sys to one word or to a word each, on the own GPU, on another, and from "
        "all GPUs to the same words at once; behind a gate kernel, timed by events, each sample in memory of its "
        "own. The sums are read back: a difference from what was added is a lost addition."
    ),
    run=run,
    gpus=1,
)

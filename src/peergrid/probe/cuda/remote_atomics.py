"""Atomic additions to own and remote memory: are they all there at the end, and how many per second?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peergrid.probe.cuda.devices import Gpus, Stream, u32, u64
from peergrid.probe.cuda.timing import Gate, Work
from peergrid.probe.cuda.traffic import LinkCounters
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

BLOCKS, THREADS = 128, 256
FLOORS = {"one word": 0.05, "own words": 0.1}
BY = {"atomicAdd": "language", "red": "instruction", "one lane for all": "together"}
LANES = (1, 32)
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
    if len(everyone) > 1:
        with LinkCounters.open(devices) as counters:
            if counters.why:
                yield Lack(f"bytes that a warp sends for its additions: {counters.why}")
                return
            yield from _by_lanes(bench, everyone[1], counters)


def _by_lanes(bench: Bench, adder: int, counters: LinkCounters) -> Iterator[Measurement]:
    """Payload bytes on the links for each addition of a warp to memory of GPU 0, by one lane and by all."""
    devices: Gpus = bench.devices
    cases = [(by, lanes, words) for by in BY for lanes in LANES for words in ("one word", "own words")]
    for by, lanes, words in cases:
        spread = int(words == "own words")
        repeats = bench.choose(50, 200) * (10 if spread or lanes == 1 else 1)
        warps = BLOCKS * THREADS // 32 * repeats
        with devices.scope() as scope:
            target, stream = scope.words(0, BLOCKS * THREADS), scope.stream(adder)
            kernel = devices.kernel(adder, "atomics", f"lanes_{BY[by]}")
            sent = []
            for _ in range(bench.choose(3, 5)):
                before = counters.counted(adder)[0]
                kernel(stream, BLOCKS, THREADS, u64(target), u32(lanes), u32(spread), u32(repeats))
                devices.wait(adder)
                sent.append((counters.counted(adder)[0] - before) / warps)
        yield result("warp_atomic_bytes", "B", sent, {"by": by, "lanes": lanes, "words": words}, floor=0.02)


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
    title="Remote atomic additions: lost ones, rate, and the bytes that a warp sends",
    unit="atomics/s",
    method=(
        "32768 threads add 1 by red.relaxed.sys to one word or to a word each, on the own GPU, on another, and from "
        "all GPUs to the same words at once; behind a gate kernel, timed by events, each sample in memory of its "
        "own. The sums are read back: a difference from what was added is a lost addition. Bytes: NVML's NVLink "
        "counter of the adding GPU around a kernel in which one lane of each warp adds, or all 32, by the instruction "
        "red, by atomicAdd_system as the compiler translates it, or by one lane for all with one "
        "word, over the warps and their additions."
    ),
    run=run,
    gpus=1,
)

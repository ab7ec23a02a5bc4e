"""Copy bandwidth of main memory with 1 to n threads: the memory of the virtual devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from peergrid.probe.cpu.threads import Others, cores, counts, rotated, together
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

Block = np.ndarray[Any, np.dtype[np.float64]]
EACH = 16 << 20
PASSES = 4


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Every thread copies its own 16 MiB block several times; all of them at once."""
    others = Others.now()
    yield from others.warnings()
    cpus = cores()
    for threads in counts(min(len(cpus), 64)):
        samples, moved = bench.choose(9, 25), 2 * EACH * PASSES * threads
        rates = [moved / copying(rotated(cpus, at, samples)[:threads]) for at in range(samples)]
        yield result("host_copy_bandwidth", "B/s", rates, {"threads": threads, "bytes": EACH}, floor=others.floor(0.2))


def copying(cpus: Sequence[int]) -> float:
    """Seconds in which a thread on each CPU copies its own block so many times; the blocks lie near their threads."""
    pairs: dict[int, tuple[Block, Block]] = {}

    def touch(index: int) -> bool:
        pairs[index] = np.ones(EACH // 8), np.ones(EACH // 8)
        return True

    def copy(index: int) -> bool:
        source, target = pairs[index]
        for _ in range(PASSES):
            np.copyto(target, source)
        return True

    together(touch, cpus)
    return together(copy, cpus)


PROBE = Probe(
    name="host-copy",
    group="host",
    title="Copy bandwidth of main memory with 1 to n threads, bytes read plus bytes written",
    unit="B/s",
    method=(
        "Each thread, pinned to its core, copies its own 16 MiB block, which it touched first, four times; time from "
        "the common start to the last end. Each sample begins with another processor. NumPy's copy runs without the "
        "interpreter lock."
    ),
    run=run,
)

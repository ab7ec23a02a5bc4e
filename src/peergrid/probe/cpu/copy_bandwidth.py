"""Copy bandwidth of main memory with 1 to n threads: the memory of the virtual devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from peergrid.probe.cpu.threads import Others, cores, counts, together
from peergrid.probe.experiment import Bench, Lack, Probe, Result, result

Block = np.ndarray[Any, np.dtype[np.float64]]
EACH = 16 << 20
PASSES = 4


def run(bench: Bench) -> Iterator[Result | Lack]:
    """Every thread copies its own 16 MiB block several times; all of them at once."""
    others = Others.now()
    yield from others.told()
    cpus = cores()
    for threads in counts(min(len(cpus), 64)):
        used = cpus[:threads]
        pairs = [(np.ones(EACH // 8), np.zeros(EACH // 8)) for _ in used]

        def copy(index: int, pairs: list[tuple[Block, Block]] = pairs) -> bool:
            source, target = pairs[index]
            for _ in range(PASSES):
                np.copyto(target, source)
            return True

        together(copy, used)
        seconds = [together(copy, used) for _ in range(bench.choose(9, 25))]
        moved = 2 * EACH * PASSES * threads
        rates = [moved / value for value in seconds]
        yield result("host_copy_bandwidth", "B/s", rates, {"threads": threads, "bytes": EACH}, floor=others.floor(0.1))


PROBE = Probe(
    name="host-copy",
    group="host",
    rows=("M6", "B2"),
    title="Copy bandwidth of main memory with 1 to n threads, bytes read plus bytes written",
    unit="B/s",
    method=(
        "Each thread, pinned to its core, copies its own 16 MiB block four times; time from the common start to "
        "the last end, after one warm-up. NumPy's copy runs without the interpreter lock."
    ),
    run=run,
)

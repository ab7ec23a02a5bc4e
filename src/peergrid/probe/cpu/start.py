"""The cost of starting a kernel on a virtual device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from peergrid.probe.cpu.spin import lines, nothing
from peergrid.probe.cpu.threads import Others, on_each_processor
from peergrid.probe.experiment import Bench, Lack, Measurement, Probe, result

PER_SAMPLE = 200


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Call a compiled kernel that does nothing, from this thread and through a waiting one."""
    others = Others.now()
    yield from others.warnings()
    words = lines(1)
    samples = bench.choose(25, 100)
    with ThreadPoolExecutor(1) as pool:
        ways: dict[str, Callable[[], object]] = {
            "call": lambda: nothing(words),
            "thread": lambda: pool.submit(nothing, words).result(),
        }
        for how, start in ways.items():
            timed(start)
            each = on_each_processor(samples, partial(timed, start))
            yield result("host_start", "s", each, {"how": how}, floor=others.floor(0.25))


def timed(start: Callable[[], object]) -> float:
    """Seconds of one start, averaged over some hundred."""
    begin = time.perf_counter()
    for _ in range(PER_SAMPLE):
        start()
    return (time.perf_counter() - begin) / PER_SAMPLE


PROBE = Probe(
    name="host-start",
    group="host",
    title="Cost of starting a kernel on a virtual device, from the same thread and from another",
    unit="s",
    method=(
        "A compiled kernel that does nothing is called 200 times per sample, directly and through a thread that "
        "waits for work, each sample from another processor; the mean of a sample is one start."
    ),
    run=run,
)

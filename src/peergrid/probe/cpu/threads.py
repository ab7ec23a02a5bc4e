"""Run one function on several threads at once, each on its own core where the system allows it."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import psutil

from peergrid.errors import DeviceFault
from peergrid.machine.host import usable_cpus
from peergrid.probe.experiment import Lack

Measured = TypeVar("Measured")


def inside(work: Callable[[int], float], cpus: Sequence[int]) -> float:
    """Seconds that `work` of the first thread measured, while all of them ran; negative seconds say that it hung.

    The start of the threads is not in it: some may come late by more than all the work takes.
    """
    seconds = [0.0] * len(cpus)

    def body(index: int) -> bool:
        seconds[index] = work(index)
        return seconds[index] >= 0.0

    together(body, cpus)
    return seconds[0]


def together(work: Callable[[int], bool], cpus: Sequence[int]) -> float:
    """Seconds from the common start of `work(0) … work(n-1)`, thread i on CPU `cpus[i]`, to the last end.

    Raises:
        DeviceFault: a wait of a thread timed out, or a thread raised an error.
    """
    gate = threading.Barrier(len(cpus))
    ends = [0.0] * len(cpus)
    starts = [0.0] * len(cpus)
    fine = [False] * len(cpus)

    def body(index: int) -> None:
        pin(cpus[index])
        gate.wait()
        starts[index] = time.perf_counter()
        fine[index] = bool(work(index))
        ends[index] = time.perf_counter()

    crew = [threading.Thread(target=body, args=(index,)) for index in range(len(cpus))]
    for member in crew:
        member.start()
    for member in crew:
        member.join()
    if not all(fine):
        raise DeviceFault(f"Of {len(cpus)} threads {fine.count(False)} waited in vain: free some cores.")
    return max(ends) - min(starts)


@dataclass(frozen=True, slots=True)
class Others:
    """The load of the machine by other programs: `share` of all its processors, measured before an experiment."""

    share: float

    @classmethod
    def now(cls) -> Others:
        """Measure for half a second."""
        return cls(float(psutil.cpu_percent(interval=0.5)) / 100)

    def floor(self, quiet: float) -> float:
        """The floor of a number that varies by `quiet` between runs on an idle machine.

        Other work may end or double, which changes our part of the machine by share / (1 - share).
        """
        return math.hypot(quiet, self.share / max(1.0 - self.share, 0.2))

    def warnings(self) -> Iterator[Lack]:
        """A warning if the machine was not idle."""
        if self.share > 0.1:
            yield Lack(f"narrow intervals: other work took {100 * self.share:.0f} % of the processors")


def pin(*cpus: int) -> None:
    """Bind the calling thread to logical CPUs, where the system knows how."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(threading.get_native_id(), set(cpus))


def on_each_processor(count: int, measure: Callable[[], Measured]) -> list[Measured]:
    """`count` measurements, each with the calling thread on another processor, as some are a third slower than
    others.
    """
    before = usable_cpus()
    try:
        return [_on(before[at * len(before) // count], measure) for at in range(count)]
    finally:
        pin(*before)


def rotated(cpus: tuple[int, ...], number: int, count: int) -> tuple[int, ...]:
    """The same processors, beginning with another one for each number of so many."""
    first = number * len(cpus) // count
    return cpus[first:] + cpus[:first]


def _on(cpu: int, measure: Callable[[], Measured]) -> Measured:
    pin(cpu)
    return measure()


def rounds_in(seconds: float, few: int, took: float, most: int) -> int:
    """The number of rounds in `seconds` when `few` of them took `took`: at least 4 × few, at most `most`."""
    return max(4 * few, min(most, round(few * seconds / max(took, 1e-9))))


def counts(limit: int) -> tuple[int, ...]:
    """1, 2, 4, … and `limit` itself."""
    powers = [2**at for at in range(limit.bit_length()) if 2**at < limit]
    return (*powers, limit)


def cores() -> tuple[int, ...]:
    """The logical CPUs that threads may be pinned to."""
    return usable_cpus()

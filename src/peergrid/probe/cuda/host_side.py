"""Barriers over several GPUs without code of their own in the kernels: the host waits, or streams wait for events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.machine.host import usable_cpus
from peergrid.probe.cpu.spin import WORDS_PER_LINE, lines
from peergrid.probe.cpu.threads import cores, inside, on_each_processor
from peergrid.probe.cuda.devices import Gpus, Scope
from peergrid.probe.cuda.hostloop import chains, entries, members, parameters, rounds_by_waits, together, words
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, fusion_overhead, result

ROUNDS = 50
PLACES = 25  # processors
LONG = 10  # kernels of 250 microseconds against one of 2500
LONG_PLACES = 9

Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
Timed = Callable[[int, int], float]
"""Seconds of some rounds of a kernel on so many GPUs."""


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """One round of kernels on 1 to N GPUs that all have to end before the next: null kernels, then long ones."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        nothing, short, long = (Launchers.make(scope, name) for name in ("nothing", "busy_250", "busy_2500"))
        if entries().several is None:
            yield Lack("one launch over several GPUs: this driver has none any more")
        if len(cores()) < len(devices):
            yield Lack(f"a thread per GPU: {len(devices)} threads need as many processors, here are {len(cores())}")
        longer, shorter = short.ways(), long.ways()
        for by, timed in nothing.ways().items():
            for count in range(1, len(devices) + 1):
                timed(count, ROUNDS)
                at: At = {"devices": count, "by": by}
                each = on_each_processor(PLACES, partial(_per_round, timed, count))
                yield result("host_side_barrier", "s", each, at, floor=0.12)
                _overhead(longer[by], shorter[by], count)
                added = on_each_processor(LONG_PLACES, partial(_overhead, longer[by], shorter[by], count))
                yield result("host_side_overhead", "s", added, at, floor=0.15)


def _per_round(timed: Timed, count: int) -> float:
    return timed(count, ROUNDS) / ROUNDS


def _overhead(many_short: Timed, few_long: Timed, count: int) -> float:
    """Equation 6 of the study with rounds of all GPUs for launches: the same waiting in ten rounds and in one."""
    return fusion_overhead(many_short(count, LONG), few_long(count, 1), LONG, 1)


@dataclass(frozen=True, slots=True)
class Launchers:
    """Handles of every GPU as arrays of words: its context, a kernel, a stream and an event."""

    contexts: Words
    kernels: Words
    streams: Words
    events: Words

    @classmethod
    def make(cls, scope: Scope, kernel_name: str) -> Launchers:
        """A crew of all GPUs for a kernel of launch.cu without arguments, which is loaded."""
        devices = scope.devices
        everyone = range(len(devices))
        kernels = [devices.kernel(device, "launch", kernel_name) for device in everyone]
        streams = [scope.stream(device) for device in everyone]
        events = [scope.event(device) for device in everyone]
        for kernel, stream in zip(kernels, streams, strict=True):
            kernel(stream, 1, 32)
        devices.wait_all(len(devices))
        functions, queues = [kernel.function for kernel in kernels], [stream.handle for stream in streams]
        return cls(words(devices.contexts), words(functions), words(queues), words(events))

    def ways(self) -> dict[str, Timed]:
        """The ways to wait that this machine has."""
        found = {"one thread": self._waiting(), "events": self._chained()}
        if entries().several is not None:
            found["one launch"] = self._joined()
        if len(cores()) >= len(self.contexts):
            found["a thread per GPU"] = self._threaded()
        return found

    def _waiting(self) -> Timed:
        """One thread launches on all GPUs, then waits for one after the other."""
        loop, handles = rounds_by_waits(entries()), (self.contexts, self.kernels, self.streams)
        return lambda n, rounds: _seconds(lambda: loop(*(part[:n] for part in handles), rounds))

    def _chained(self) -> Timed:
        """One thread launches on all GPUs; their streams wait for each other, the host only at the end."""
        loop = chains(entries())
        handles = self.contexts, self.kernels, self.streams, self.events
        return lambda n, rounds: _seconds(lambda: loop(*(part[:n] for part in handles), rounds))

    def _joined(self) -> Timed:
        """One thread launches on all GPUs with one call; the driver lets no kernel start before all have ended."""
        loop, launches = together(entries()), parameters(self.kernels, self.streams)
        return lambda n, rounds: _seconds(lambda: loop(launches[:n], self.contexts[:n], self.streams[:n], rounds))

    def _threaded(self) -> Timed:
        """A thread for each GPU launches and waits; then the threads wait at a barrier. The first is on the caller's
        processor.
        """
        loop, cpus = members(entries()), cores()

        def timed(count: int, rounds: int) -> float:
            barrier, clocks = lines(2), np.zeros((count, WORDS_PER_LINE), np.int64)
            handles = list(zip(self.contexts, self.kernels, self.streams, strict=True))[:count]
            first = cpus.index(usable_cpus()[0])
            chosen = [cpus[(first + at * len(cpus) // count) % len(cpus)] for at in range(count)]
            work = [(*handles[at], barrier, count, rounds, clocks[at]) for at in range(count)]
            return inside(lambda at: float(loop(*work[at])), chosen)

        return timed


def _seconds(loop: Callable[[], int]) -> float:
    """Seconds of a compiled loop."""
    begin = time.perf_counter()
    code = loop()
    if code:
        raise DeviceFault(f"A call of the driver from the compiled loop failed with code {code}: try again.")
    return time.perf_counter() - begin


PROBE = Probe(
    name="host-side-barrier",
    group="synchronisation",
    title="Barrier over 1 to N GPUs by the host and by events",
    unit="s",
    method=(
        "Fifty rounds of a null kernel on every GPU, from compiled loops, over fifty. 'One thread' launches on all and "
        "waits for one after the other; 'a thread per GPU' launches, waits, and meets the other threads at a spinning "
        "barrier (figure 6 of the study); 'events': the first stream waits for the events of all others, the others "
        "for its own, the host waits once, at the end; 'one launch': cuLaunchCooperativeKernelMultiDevice, the study's "
        "implicit barrier, which is gone from the runtime of CUDA 13 and still in the driver. Each sample from another "
        "processor. Null kernels end sooner than the host can launch the next, so the overhead is measured apart: ten "
        "rounds of a kernel of 250 microseconds less one of 2500, over nine (equation 6)."
    ),
    run=run,
    gpus=1,
)

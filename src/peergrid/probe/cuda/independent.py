"""Independent kernels on 1 to N GPUs: by one thread of the host or by a thread per GPU, with and without copies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.machine.host import usable_cpus
from peergrid.probe.cpu.spin import WORDS_PER_LINE, lines
from peergrid.probe.cpu.threads import cores, on_each_processor, together
from peergrid.probe.cuda.devices import Array, Gpus, LoadedKernel, Pinned, Scope, Stream
from peergrid.probe.cuda.hostloop import Loop, entries, starts, words
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, result

LENGTHS = (25, 250, 2500)  # microseconds, about: a kernel of launch.cu for each
COPIED = 1 << 20  # bytes into a GPU and out of it, around a kernel
PLACES = 9  # processors
PAIRS = 5  # a sample is the median of so many

Starts = Callable[[int], Array]
"""Seconds on the host's clock of so many GPUs: before each launch, after it, and after each wait; shape (n, 3)."""


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """The gap between the first and the last launch; then the time on one GPU over that on several."""
    devices: Gpus = bench.devices
    with devices.scope() as scope:
        loop = starts(entries())
        for length in LENGTHS:
            yield from _kernels(Launched.make(scope, loop, length), len(devices))
        if len(cores()) < len(devices):
            yield Lack(f"a thread per GPU: {len(devices)} threads need as many processors, here are {len(cores())}")
        yield from _with_copies(bench, scope)


def _kernels(crew: Launched, gpus: int) -> Iterator[Measurement]:
    for by, starts_of in crew.ways(gpus).items():
        alone = statistics.median(_seconds(starts_of(1)) for _ in range(PLACES))
        for count in range(2, gpus + 1):
            at: At = {"by": by, "devices": count}
            found = on_each_processor(PLACES, partial(_sample, starts_of, count))
            if crew.length == LENGTHS[-1]:
                yield result("launch_gap", "s", [gap for gap, _ in found], at, floor=0.15)
            shares = [alone / seconds for _, seconds in found]
            at = {"how": f"kernels alone, {by}", "kernel": crew.length, "devices": count}
            yield result("independent_efficiency", "", shares, at, floor=0.03)


def _sample(starts_of: Starts, count: int) -> tuple[float, float]:
    """Medians of the gap between launches and of the time until all have ended."""
    found = [starts_of(count) for _ in range(PAIRS)]
    gaps = [float(one[:, 1].max() - one[:, 1].min()) for one in found]
    return statistics.median(gaps), statistics.median(_seconds(one) for one in found)


def _seconds(times: Array) -> float:
    """From before the first launch to after the last wait."""
    return float(times[:, 2].max() - times[:, 0].min())


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel of some length on every GPU, as handles for a compiled loop."""

    loop: Loop
    length: int
    contexts: Array
    functions: Array
    streams: Array

    @classmethod
    def make(cls, scope: Scope, loop: Loop, length: int) -> Launched:
        """The kernels of all GPUs, loaded."""
        devices = scope.devices
        everyone = range(len(devices))
        kernels = [devices.kernel(device, "launch", f"busy_{length}") for device in everyone]
        streams = [scope.stream(device) for device in everyone]
        for kernel, stream in zip(kernels, streams, strict=True):
            kernel(stream, 1, 32)
        devices.wait_all(len(devices))
        functions, queues = [kernel.function for kernel in kernels], [stream.handle for stream in streams]
        return cls(loop, length, words(devices.contexts), words(functions), words(queues))

    def ways(self, gpus: int) -> dict[str, Starts]:
        """One thread for all GPUs, and one for each where there are processors for them."""
        found: dict[str, Starts] = {"one thread": self._by_one}
        return found | ({"a thread per GPU": self._by_many} if len(cores()) >= gpus else {})

    def _by_one(self, count: int) -> Array:
        times, clock = np.zeros((count, 3)), np.zeros(2, np.int64)
        handles = (part[:count] for part in (self.contexts, self.functions, self.streams))
        _checked(self.loop(*handles, lines(2), 1, times, clock))
        return times

    def _by_many(self, count: int) -> Array:
        """The first thread is on the caller's processor; all wait at a barrier before they launch."""
        cpus, barrier = cores(), lines(2)
        times, clocks = np.zeros((count, 3)), np.zeros((count, WORDS_PER_LINE), np.int64)
        first = cpus.index(usable_cpus()[0])
        chosen = [cpus[(first + at * len(cpus) // count) % len(cpus)] for at in range(count)]

        def body(at: int) -> bool:
            handles = (part[at : at + 1] for part in (self.contexts, self.functions, self.streams))
            return int(self.loop(*handles, barrier, count, times[at : at + 1], clocks[at])) == 0

        together(body, chosen)
        return times


def _checked(code: int) -> None:
    if code:
        raise DeviceFault(f"A launch from the compiled loop failed with code {code}: try again.")


@dataclass(frozen=True, slots=True)
class Job:
    """A copy into one GPU, a kernel of 2.5 ms and a copy out of it."""

    devices: Gpus
    stream: Stream
    kernel: LoadedKernel
    memory: int
    pinned: Pinned
    pageable: Array

    @classmethod
    def make(cls, scope: Scope, device: int) -> Job:
        """Its memory on the GPU and of both kinds on the host."""
        kernel = scope.devices.kernel(device, "launch", f"busy_{LENGTHS[-1]}")
        memory, pinned = scope.memory(device, COPIED), scope.pinned(COPIED)
        return cls(scope.devices, scope.stream(device), kernel, memory, pinned, np.ones(COPIED, np.uint8))

    def put(self, how: str) -> None:
        """Copies and kernel, waiting where that way of copying waits."""
        host = self.pinned.address if how == "asynchronous, pinned" else self.pageable.ctypes.data
        call = self.devices.call
        self.devices.use(self.stream.device)
        if how == "blocking copies":
            call("cuMemcpyHtoD", self.memory, host, COPIED)
            self.kernel(self.stream, 1, 32)
            call("cuStreamSynchronize", self.stream.handle)
            call("cuMemcpyDtoH", host, self.memory, COPIED)
        else:
            call("cuMemcpyHtoDAsync", self.memory, host, COPIED, self.stream.handle)
            self.kernel(self.stream, 1, 32)
            call("cuMemcpyDtoHAsync", host, self.memory, COPIED, self.stream.handle)


def _with_copies(bench: Bench, scope: Scope) -> Iterator[Measurement]:
    """The article's program: a thread that copies, launches and copies for one GPU after the other, four ways."""
    devices: Gpus = bench.devices
    jobs = [Job.make(scope, device) for device in range(len(devices))]

    def one_by_one(how: str, count: int) -> float:
        begin = time.perf_counter()
        for job in jobs[:count]:
            job.put(how)
        devices.wait_all(count)
        return time.perf_counter() - begin

    def at_once(how: str, count: int) -> float:
        def body(at: int) -> bool:
            jobs[at].put("blocking copies")
            return True

        return together(body, [cores()[at % len(cores())] for at in range(count)])

    ways = dict.fromkeys(("blocking copies", "asynchronous, pageable", "asynchronous, pinned"), one_by_one)
    for how, seconds in (ways | {"blocking copies, a thread per GPU": at_once}).items():
        seconds(how, len(devices))
        alone = statistics.median(seconds(how, 1) for _ in range(PLACES))
        for count in range(2, len(devices) + 1):
            shares = [alone / seconds(how, count) for _ in range(bench.choose(5, PLACES))]
            at: At = {"how": how, "kernel": LENGTHS[-1], "devices": count}
            yield result("independent_efficiency", "", shares, at, floor=0.03)


PROBE = Probe(
    name="independent",
    group="synchronisation",
    title="Independent kernels on several GPUs by one thread or by a thread per GPU: launch gap and efficiency",
    unit="s",
    method=(
        "A kernel of one block on every GPU that waits 25, 250 or 2500 microseconds, launched from a compiled loop by "
        "one thread or by a thread per GPU that met the others before. The gap is the host's time from the first "
        "launch to the last; efficiency is the time of one GPU over that of so many, from before the first launch to "
        "after the last wait. With copies: 1 MiB to each GPU, the longest kernel, 1 MiB back, by blocking calls or "
        "asynchronous ones from pageable or pinned memory, for one GPU after the other or by a thread per GPU."
    ),
    run=run,
    gpus=2,
)

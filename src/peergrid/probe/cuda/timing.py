"""Time on a GPU: events behind a gate, so that the host's calls are not measured with the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.probe.cuda.devices import Array, Gpus, LoadedKernel, Pinned, Scope, Stream, u64

Work = Callable[[Stream], None]


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds streams back until everything is enqueued: a small kernel waits for a word in host memory.

    The same idea as in NVIDIA's nvbandwidth, whose method the link experiments repeat: gate, event, work,
    event. The kernel gives up after some seconds, so a lost host cannot hang a GPU.
    """

    devices: Gpus
    word: Pinned
    kernels: dict[int, LoadedKernel]
    events: dict[int, tuple[Any, Any]]

    @classmethod
    def make(cls, scope: Scope, used: Sequence[int]) -> Gate:
        """A gate for these GPUs."""
        kernels = {device: scope.devices.kernel(device, "launch", "gate") for device in used}
        events = {device: (scope.event(device), scope.event(device)) for device in used}
        return cls(scope.devices, scope.pinned(64), kernels, events)

    def seconds(self, works: Sequence[tuple[Stream, Work]]) -> tuple[float, ...]:
        """Run one piece of work per GPU, all released at the same moment; seconds of each by its events."""
        self.word.words[0] = 0
        for stream, work in works:
            first, last = self.events[stream.device]
            self.kernels[stream.device](stream, 1, 1, u64(self.word.address))
            self.devices.call("cuEventRecord", first, stream.handle)
            work(stream)
            self.devices.use(stream.device)
            self.devices.call("cuEventRecord", last, stream.handle)
        self.word.words[0] = 1
        return tuple(self._elapsed(stream) for stream, _ in works)

    def one(self, stream: Stream, work: Work) -> float:
        """Seconds of one piece of work."""
        return self.seconds([(stream, work)])[0]

    def samples(self, works: Sequence[tuple[Stream, Work]], count: int) -> list[tuple[float, ...]]:
        """`count` times `seconds`, after one run outside the gate.

        That run matters: the first launch of a kernel may load code, which waits for kernels that run, and
        behind a closed gate that would wait for the gate's own budget.
        """
        for stream, work in works:
            work(stream)
        for stream, _ in works:
            self.devices.wait(stream.device)
        return [self.seconds(works) for _ in range(count)]

    def _elapsed(self, stream: Stream) -> float:
        first, last = self.events[stream.device]
        self.devices.use(stream.device)
        self.devices.call("cuEventSynchronize", last)
        return float(self.devices.call("cuEventElapsedTime", first, last)) * 1e-3


@dataclass(frozen=True, slots=True)
class Desk:
    """A stream and a little scratch memory of one GPU, taken once for many small launches.

    Taking memory costs more than the launches do, and giving it back makes the GPU wait.
    """

    devices: Gpus
    stream: Stream
    out: int
    sink: int

    @classmethod
    def make(cls, scope: Scope, words: int = 8192, device: int = 0) -> Desk:
        """A desk with `words` 64-bit words of results."""
        return cls(scope.devices, scope.stream(device), scope.memory(device, 8 * words), scope.memory(device, 8192))

    def run(self, kernel: LoadedKernel, grid: int, block: int, *arguments: Any, cooperative: bool = False) -> None:
        """Launch and wait."""
        kernel(self.stream, grid, block, *arguments, cooperative=cooperative)
        self.devices.wait(self.stream.device)

    def read(self, count: int = 1) -> Array:
        """The first 64-bit words of the results."""
        return self.devices.read(self.stream.device, self.out, count, np.uint64)


def per_repeat(run: Callable[[int], float], few: int, many: int) -> float:
    """The cost of one repeat: a run with `many` of them less one with `few`, over the difference (equation 7)."""
    shorter, longer = run(few), run(many)
    return (longer - shorter) / (many - few)


def copies(devices: Gpus, to: int, source: int, size: int, repeats: int) -> Work:
    """Work that copies `size` bytes `repeats` times, between any two memories the driver knows."""

    def work(stream: Stream) -> None:
        devices.use(stream.device)
        for _ in range(repeats):
            devices.call("cuMemcpyAsync", to, source, size, stream.handle)

    return work


def host_seconds(work: Callable[[], None], finish: Callable[[], None]) -> float:
    """Seconds on the host's clock from before `work` to after `finish`."""
    begin = time.perf_counter()
    work()
    finish()
    return time.perf_counter() - begin


def sound(devices: Gpus, device: int, fault: int, what: str) -> None:
    """Check the word that kernels set when a wait outlasted its budget.

    Raises:
        DeviceFault: it is set.
    """
    if int(devices.read(device, fault, 1)[0]):
        raise DeviceFault(f"On GPU {device} {what} waited in vain and gave up: check its links and neighbours.")

"""Sums of doubles: on one GPU by one block, by two kernels, a grid barrier or the last block; on several by flags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.probe.cuda.devices import Gpus, Scope, Stream, u32, u64
from peergrid.probe.cuda.timing import Gate, Work, sound
from peergrid.probe.experiment import At, Bench, Measurement, Probe, result

THREADS, PAIR = 256, 16
FEWEST, MOST, CHUNKS = 512, 8192, 2048  # pairs of a chunk, and how many chunks there are to be between
ALONE = 4 * FEWEST * PAIR  # bytes that one block sums up
LINE = 128
SIZES = tuple(1 << bits for bits in range(10, 31, 2))
SINGLE = ("two kernels", "grid barrier", "last block")
SEVERAL = ("events", "flags")


def single(size: int) -> tuple[str, ...]:
    """The ways to sum so many bytes on one GPU."""
    return (*SINGLE, "one block") if size <= ALONE else SINGLE


def chunk_of(pairs: int) -> int:
    """Pairs of doubles in a chunk, a power of two: it depends on the number of pairs alone, and with it the bits."""
    wanted = 1 << max(0, -(-pairs // CHUNKS) - 1).bit_length()
    return min(max(wanted, FEWEST), MOST)


def shares(pairs: int, gpus: int) -> tuple[tuple[int, int], ...]:
    """The pairs of each GPU, from and to: whole chunks, as evenly as can be; the last may be short."""
    chunk = chunk_of(pairs)
    chunks = -(-pairs // chunk)
    ends = [min(pairs, gpu * chunks // gpus * chunk) for gpu in range(gpus)] + [pairs]
    return tuple(pairwise(ends))


def run(bench: Bench) -> Iterator[Measurement]:
    """Bytes per second for every size and way, on one GPU and on all; sums must be the same to the bit."""
    devices: Gpus = bench.devices
    counts = sorted({1, len(devices)})
    sizes = SIZES[::5] if bench.quick else SIZES
    with devices.scope() as scope:
        sums = Sums.make(scope, sizes[-1], counts[-1])
        for size in sizes:
            found = {}
            for count in counts:
                for way in single(size) if count == 1 else SEVERAL:
                    seconds = sums.seconds(way, size, count, bench.choose(3, 9))
                    found[count, way] = sums.result()
                    at: At = {"by": way, "devices": count, "bytes": size}
                    yield result("reduction_bandwidth", "B/s", [size / s for s in seconds], at, floor=0.03)
            if len({value.tobytes() for value in found.values()}) != 1:
                raise DeviceFault(f"A sum should have the same bits every way, but has {found}.")
            reading = [size / s for s in sums.reading(size, bench.choose(3, 9))]
            at = {"by": "reading alone", "devices": 1, "bytes": size}
            yield result("reduction_bandwidth", "B/s", reading, at, floor=0.03)


@dataclass(frozen=True, slots=True)
class Sums:
    """The memory and streams of all GPUs; numbers that begin with one array, whole in the memory of each."""

    devices: Gpus
    gate: Gate
    streams: tuple[Stream, ...]
    values: tuple[int, ...]
    mine: tuple[int, ...]
    out: int
    counters: tuple[int, ...]
    flags: int
    goals: list[int]
    events: tuple[Any, ...]

    @classmethod
    def make(cls, scope: Scope, size: int, gpus: int) -> Sums:
        """Room for `size` bytes on each GPU, filled with the same random doubles."""
        devices = scope.devices
        values = tuple(scope.memory(gpu, size) for gpu in range(gpus))
        drawn = np.random.default_rng(1).random(min(size, 1 << 20) // 8)
        for gpu, address in enumerate(values):
            devices.put(gpu, address, drawn)
            done = drawn.nbytes
            while done < size:  # doubling
                more = min(done, size - done)
                devices.call("cuMemcpyAsync", address + done, address, more, 0)
                done += more
            devices.wait(gpu)
        chunks = 8 * (size // PAIR // FEWEST + 1)
        return cls(
            devices,
            Gate.make(scope, range(gpus)),
            tuple(scope.stream(gpu) for gpu in range(gpus)),
            values,
            tuple(scope.memory(gpu, chunks) for gpu in range(gpus)),
            scope.memory(0, LINE),
            tuple(scope.words(gpu, 64) for gpu in range(gpus)),
            scope.words(0, 32 * gpus),
            [0],
            tuple(scope.event(gpu) for gpu in range(gpus)),
        )

    def seconds(self, way: str, size: int, gpus: int, samples: int) -> list[float]:
        """Seconds of a sum behind the gate: of GPU 0, which has it in the end. One launch of many on one GPU."""
        if way == "grid barrier":
            self._clear()
        works = getattr(self, f"_by_{way.replace(' ', '_')}")(size // PAIR, gpus)
        repeats = self._repeats(size) if gpus == 1 else 1
        pairs = [(self.streams[gpu], _repeated(works[gpu], repeats)) for gpu in reversed(range(gpus))]
        found = [times[-1] / repeats for times in self.gate.samples(pairs, samples)]
        for gpu in range(gpus):
            sound(self.devices, gpu, self.counters[gpu] + LINE, "a reduction")
        return found

    def reading(self, size: int, samples: int) -> list[float]:
        """Seconds of a kernel that only reads."""
        kernel, repeats = self.devices.kernel(0, "copy", "read_all"), self._repeats(size)
        grid = self.devices.multiprocessors * 8

        def work(stream: Stream) -> None:
            kernel(stream, grid, THREADS, u64(self.values[0]), u64(size // PAIR), u64(self.counters[0] + LINE))

        return [s / repeats for (s,) in self.gate.samples([(self.streams[0], _repeated(work, repeats))], samples)]

    def result(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The last sum."""
        found: np.ndarray[Any, np.dtype[np.float64]] = self.devices.read(0, self.out, 1, np.float64)
        return found

    @property
    def partials(self) -> int:
        """The address at which the sums of all chunks come together."""
        return self.mine[0]

    def _repeats(self, size: int) -> int:
        return max(1, min(20, (64 << 20) // size))

    def _clear(self) -> None:
        self.devices.fill(0, self.counters[0], 0, 1)
        self.goals[0] = 0

    def _by_one_block(self, pairs: int, gpus: int) -> list[Work]:
        kernel = self.devices.kernel(0, "reduction", "by_one_block")

        def work(stream: Stream) -> None:
            kernel(stream, 1, THREADS, u64(self.values[0]), u32(pairs), u64(self.out))

        return [work]

    def _by_two_kernels(self, pairs: int, gpus: int) -> list[Work]:
        return [self._chunks(pairs, 1, 0, then=self._of_chunks(pairs))]

    def _by_events(self, pairs: int, gpus: int) -> list[Work]:
        """Every GPU's chunks to GPU 0, which waits for the others' events."""
        last = self._of_chunks(pairs)

        def others(stream: Stream) -> None:
            for gpu in range(1, gpus):
                self.devices.call("cuStreamWaitEvent", stream.handle, self.events[gpu], 0)
            last(stream)

        def note(stream: Stream) -> None:
            self.devices.use(stream.device)
            self.devices.call("cuEventRecord", self.events[stream.device], stream.handle)

        return [self._chunks(pairs, gpus, gpu, then=note if gpu else others) for gpu in range(gpus)]

    def _chunks(self, pairs: int, gpus: int, gpu: int, then: Work) -> Work:
        kernel, chunk = self.devices.kernel(gpu, "reduction", "chunks"), chunk_of(pairs)
        first, last = shares(pairs, gpus)[gpu]
        blocks = max(1, -(-(last - first) // chunk))
        places = u64(self.values[gpu] + PAIR * first), u64(last - first), u32(chunk)

        def work(stream: Stream) -> None:
            kernel(stream, blocks, THREADS, *places, u64(self.partials + 8 * (first // chunk)))
            then(stream)

        return work

    def _of_chunks(self, pairs: int) -> Work:
        kernel, count = self.devices.kernel(0, "reduction", "of_chunks"), -(-pairs // chunk_of(pairs))

        def work(stream: Stream) -> None:
            kernel(stream, 1, THREADS, u64(self.partials), u32(count), u64(self.out))

        return work

    def _by_grid_barrier(self, pairs: int, gpus: int) -> list[Work]:
        kernel, chunk = self.devices.kernel(0, "reduction", "by_grid_barrier"), chunk_of(pairs)
        count = -(-pairs // chunk)
        blocks = min(count, kernel.fits(THREADS) * self.devices.multiprocessors)
        places = u64(self.values[0]), u64(pairs), u32(chunk), u64(self.partials), u32(count), u64(self.out)
        fault = u64(self.counters[0] + LINE)

        def work(stream: Stream) -> None:
            self.goals[0] += blocks
            goal = u32(self.goals[0] & 0xFFFFFFFF)
            kernel(stream, blocks, THREADS, *places, u64(self.counters[0]), goal, fault, cooperative=True)

        return [work]

    def _by_last_block(self, pairs: int, gpus: int) -> list[Work]:
        return self._by_flags(pairs, 1)

    def _by_flags(self, pairs: int, gpus: int) -> list[Work]:
        self.devices.fill(0, self.counters[0], 0, 1)
        goals = [int(self.devices.read(0, self.flags + LINE * gpu, 1)[0]) if gpu else 0 for gpu in range(gpus)]
        goals[0] = max(goals[1:], default=0)
        return [self._last_block(pairs, gpus, gpu, goals) for gpu in range(gpus)]

    def _last_block(self, pairs: int, gpus: int, gpu: int, goals: list[int]) -> Work:
        kernel, chunk = self.devices.kernel(gpu, "reduction", "by_last_block"), chunk_of(pairs)
        begin, end = shares(pairs, gpus)[gpu]
        first, count = begin // chunk, -(-pairs // chunk)
        blocks = max(1, -(-(end - begin) // chunk))
        places = u64(self.values[gpu] + PAIR * begin), u64(end - begin), u32(chunk), u64(self.mine[gpu])
        partials, rest = (
            u64(self.partials),
            (u64(self.out), u64(self.counters[gpu]), u64(self.flags), u32(gpu), u32(gpus)),
        )

        def work(stream: Stream) -> None:
            goals[gpu] += 1
            fault = u64(self.counters[gpu] + LINE)
            kernel(stream, blocks, THREADS, *places, partials, u32(first), u32(count), *rest, u32(goals[gpu]), fault)

        return work


def _repeated(work: Work, times: int) -> Work:
    def together(stream: Stream) -> None:
        for _ in range(times):
            work(stream)

    return together


PROBE = Probe(
    name="reduction",
    group="model",
    title="Sums of doubles on one GPU and on all, by the barrier between chunks and total",
    unit="B/s",
    method=(
        "Chunks of 8 to 128 KiB, by the number of values alone, are summed by a block each, their sums by one block. "
        "Between: the end of a kernel, a grid barrier in a cooperative kernel, or the block that comes last in one "
        "launch; up to 32 KiB one block may do all of it. On several GPUs the chunks' sums go to GPU 0, and events or "
        "flags say that they are there. Behind a gate kernel, timed by events of GPU 0, on one GPU up to 20 sums in a "
        "row. What fits the L2 stays in it. All sums must be the same to the bit. 'Reading alone' is a kernel that "
        "only reads."
    ),
    run=run,
    gpus=1,
)

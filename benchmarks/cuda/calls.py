"""What calls of the driver cost the thread that makes them: alone, over all GPUs in turn, and beside other threads.

    python benchmarks/cuda/calls.py [--gpus 4] [--out calls.json]

A thread repeats some calls without the interpreter, as a run does; the GPUs are idle before, and what they do is next
to nothing. Figures are microseconds per repetition, the best and the median of some batches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.runtime.cuda.commands.native import call  # noqa: E402
from peergrid.runtime.cuda.device.driver import CudaDriver  # noqa: E402
from peergrid.runtime.cuda.lowering.signals import WAIT, WRITE  # noqa: E402

REPEATS, BATCHES = 100, 9
HALO = 17408 * 4
WORD = 1 << 19  # where in its memory a GPU has a word for others
SOURCE = """
struct Args { unsigned long long words[40]; };
extern "C" __global__ void nothing(const __grid_constant__ Args a) { if (threadIdx.x == 9999) *(int*)a.words[0] = 1; }
"""
Row = tuple[int, ...]
"""A function's address and its words."""


@njit(nogil=True)
def repeat(rows: Any, times: int) -> int:
    """Make all calls so many times; the first result that is not zero."""
    for _ in range(times):
        for n in range(rows.shape[0]):
            r = rows[n]
            code = call(r[0], (r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11]))
            if code:
                return code
    return 0


@dataclass
class Gpu:
    """One GPU with two streams, three events, a kernel, memory, and a small graph."""

    driver: CudaDriver
    number: int

    def __post_init__(self) -> None:
        d = self.driver
        self.context = d.retain(self.number)
        d.make_current(self.context)
        self.streams = [d.create_stream(-1), d.create_stream(0)]
        self.events = [d.create_event(False) for _ in range(3)]
        self.kernel = d.function(d.load(d.compile(SOURCE, d.architecture(self.number), None)), "nothing")
        self.memory = d.allocate(1 << 20)
        d.fill(self.memory, 0, 1 << 18)
        self.values = np.zeros(40, np.uint64)
        self.pointers = np.array([self.values.ctypes.data], np.uint64)
        self.keep: list[np.ndarray] = []
        self.executable = self._graph()
        for event in self.events:
            self.issue([self.record(event)])

    def issue(self, rows: list[Row]) -> None:
        self.driver.make_current(self.context)
        code = repeat(table(rows), 1)
        assert not code, code

    def launch(self, stream: int = 0, blocks: int = 1) -> Row:
        entry, words = self.driver.entry("cuLaunchKernel"), (blocks, 1, 1, 32, 1, 1, 0)
        return (entry, self.kernel, *words, self.streams[stream], int(self.pointers.ctypes.data), 0)

    def record(self, event: int, stream: int = 0) -> Row:
        return (self.driver.entry("cuEventRecord"), event, self.streams[stream])

    def wait(self, event: int, stream: int = 0) -> Row:
        return (self.driver.entry("cuStreamWaitEvent"), self.streams[stream], event, 0)

    def copy(self, target: int, count: int = HALO) -> Row:
        return (self.driver.entry("cuMemcpyAsync"), target, self.memory, count, self.streams[0])

    def peer_copy(self, target: Gpu) -> Row:
        ends = target.memory, target.context, self.memory, self.context
        return (self.driver.entry("cuMemcpyPeerAsync"), *ends, HALO, self.streams[0])

    def tie(self, left: Gpu, right: Gpu) -> list[Row]:
        """Held back until both neighbours are as far, by events."""
        return [self.record(self.events[2]), self.wait(left.events[2]), self.wait(right.events[2])]

    def words(self, left: Gpu, right: Gpu) -> Row:
        """The same by words of memory, which are always as far: two written, two awaited."""
        places = (WRITE, left.memory), (WRITE, right.memory), (WAIT, self.memory), (WAIT, self.memory)
        words = self.kept(np.array([[kind, place + WORD, 0, 0, 0, 0] for kind, place in places], np.uint64))
        return (self.driver.entry("cuStreamBatchMemOp"), self.streams[0], len(places), words, 0)

    def copies(self, *targets: int) -> Row:
        """Halos to several peers by one call."""
        count = len(targets)
        ends = [self.kept(np.array(part, np.uint64)) for part in (targets, [self.memory] * count, [HALO] * count)]
        usual, whose = self.kept(np.array([1, 0, 0, 0, 0, 0], np.int32)), self.kept(np.zeros(count, np.uint64))
        return (self.driver.entry("cuMemcpyBatchAsync"), *ends, count, usual, whose, 1, self.streams[0])

    def replay(self) -> Row:
        return (self.driver.entry("cuGraphLaunch"), self.executable, self.streams[0])

    def kept(self, values: np.ndarray) -> int:
        """The address of values that stay there."""
        self.keep.append(values)
        return int(values.ctypes.data)

    def enter(self) -> Row:
        return (self.driver.entry("cuCtxSetCurrent"), self.context)

    def join(self, number: int, before: int, after: int) -> list[Row]:
        return [self.record(self.events[number], before), self.wait(self.events[number], after)]

    def _graph(self) -> int:
        self.driver.begin_capture(self.streams[0])
        self.issue([*self.join(0, 0, 1), self.launch(), self.launch(1), *self.join(1, 1, 0)])
        return self.driver.instantiate(self.driver.end_capture(self.streams[0]))


def table(rows: list[Row]) -> np.ndarray:
    found = np.zeros((len(rows), 12), np.int64)
    for n, row in enumerate(rows):
        found[n, : len(row)] = np.array(row, np.uint64).astype(np.int64)
    return found


def works() -> dict[str, Callable[[Gpu, Gpu, Gpu], list[Row]]]:
    """What is repeated on a GPU that has a neighbour on either side."""

    def step(me: Gpu, left: Gpu, right: Gpu) -> list[Row]:
        return [
            me.launch(), me.launch(1), *me.join(0, 0, 1), me.copy(left.memory), me.copy(right.memory),
            *me.join(1, 1, 0), *me.tie(left, right),
        ]  # fmt: skip

    def stored(me: Gpu, left: Gpu, right: Gpu) -> list[Row]:
        return [
            me.launch(), me.launch(1), *me.join(0, 0, 1), me.launch(blocks=136),
            *me.join(1, 1, 0), *me.tie(left, right),
        ]  # fmt: skip

    entry = CudaDriver().entry
    return {
        "launch": lambda me, left, right: [me.launch()],
        "record": lambda me, left, right: [me.record(me.events[0])],
        "wait, own event": lambda me, left, right: [me.wait(me.events[0], 1)],
        "wait, other's event": lambda me, left, right: [me.wait(left.events[0])],
        "record and wait, own": lambda me, left, right: me.join(0, 0, 1),
        "copy to a peer": lambda me, left, right: [me.copy(left.memory)],
        "copy to a peer, contexts named": lambda me, left, right: [me.peer_copy(left)],
        "copy to a peer, as on a device": lambda me, left, right: [
            (entry("cuMemcpyDtoDAsync"), left.memory, me.memory, HALO, me.streams[0])
        ],
        "copy at home": lambda me, left, right: [me.copy(me.memory + HALO)],
        "store 64 KiB": lambda me, left, right: [me.launch(blocks=136)],
        "write value": lambda me, left, right: [
            (entry("cuStreamWriteValue64"), me.streams[0], left.memory + WORD, 0, 0)
        ],
        "wait value": lambda me, left, right: [(entry("cuStreamWaitValue64"), me.streams[0], me.memory + WORD, 0, 0)],
        "query a stream": lambda me, left, right: [(entry("cuStreamQuery"), me.streams[1])],
        "query an event": lambda me, left, right: [(entry("cuEventQuery"), me.events[1])],
        "switch there and back": lambda me, left, right: [left.enter(), me.enter()],
        "graph of two kernels": lambda me, left, right: [me.replay()],
        "record, 2 waits": lambda me, left, right: me.tie(left, right),
        "batch of 4 words": lambda me, left, right: [me.words(left, right)],
        "batch of 2 copies": lambda me, left, right: [me.copies(left.memory, right.memory)],
        "graph, record, 2 waits": lambda me, left, right: [me.replay(), *me.tie(left, right)],
        "graph, words": lambda me, left, right: [me.replay(), me.words(left, right)],
        "step, copies": step,
        "step, stores": stored,
        "step, words": lambda me, left, right: [*step(me, left, right)[:-3], me.words(left, right)],
        "step, stores, words": lambda me, left, right: [*stored(me, left, right)[:-3], me.words(left, right)],
    }


def neighbours(gpus: list[Gpu], n: int) -> tuple[Gpu, Gpu, Gpu]:
    return gpus[n], gpus[n - 1], gpus[(n + 1) % len(gpus)]


def batch(gpus: list[Gpu], tables: list[np.ndarray]) -> float:
    """Microseconds per repetition, of the slowest of the threads that work on a table each."""
    barrier, times, codes = threading.Barrier(len(tables)), [0.0] * len(tables), [0] * len(tables)

    def work(n: int) -> None:
        gpus[n].driver.make_current(gpus[n].context)
        barrier.wait()
        began = time.perf_counter()
        codes[n] = int(repeat(tables[n], REPEATS))
        times[n] = time.perf_counter() - began

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(tables))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for gpu in gpus:
        gpu.driver.make_current(gpu.context)
        gpu.driver.synchronize()
    assert not any(codes), codes
    return max(times) / REPEATS * 1e6


def measured(gpus: list[Gpu], tables: list[np.ndarray]) -> dict[str, float]:
    found = [batch(gpus, tables) for _ in range(BATCHES)][1:]
    return {"best": round(min(found), 2), "median": round(statistics.median(found), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    driver = CudaDriver()
    count = asked.gpus or driver.device_count()
    gpus = [Gpu(driver, n) for n in range(count)]
    for one in gpus:
        for other in gpus:
            if one is not other:
                driver.enable_peer(one.context, other.context)
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name, rows in works().items():
        each = [rows(*neighbours(gpus, n)) for n in range(count)]
        results[name] = {"1 thread, 1 GPU": measured(gpus, [table(each[0])])}
        turns = [row for n in range(count) for row in (gpus[n].enter(), *each[n])]
        results[name][f"1 thread, {count} GPUs"] = measured(gpus, [table(turns)])
        for threads in sorted({2, count}):
            key = f"{threads} threads, a GPU each"
            results[name][key] = measured(gpus, [table(each[n]) for n in range(threads)])
        print(f"{name:24s}", "  ".join(f"{k}: {v['best']:.2f} ({v['median']:.2f})" for k, v in results[name].items()))
    if asked.out:
        asked.out.write_text(json.dumps({"about": about(), "microseconds": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()

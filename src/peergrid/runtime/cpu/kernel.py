"""The fast CPU kernel: generated row functions, streamed over a box by one compiled driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.common import driver
from peergrid.codegen.cpu.entries import filled
from peergrid.codegen.cpu.lanes import LONGEST
from peergrid.codegen.cpu.native import compile_function
from peergrid.codegen.cpu.plan import Storage, StreamPlan
from peergrid.codegen.cpu.tables import AXES, LINE, Buffer, DriverTables, program
from peergrid.codegen.cpu.tiles import tiled_plan
from peergrid.grid import Array, Box, Signal
from peergrid.runtime.collection import collection_paused
from peergrid.runtime.cpu.caches import second_level, tile_cache
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import Block, DeviceMemory
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

Table = NDArray[np.int64]
TilePlanner = Callable[[Box, int], tuple[StreamPlan, tuple[Box, ...]]]
Programs = dict[tuple[Box, int, bytes], DriverTables]
"""Tables by box, steps and recorded receivers."""
Row = tuple[int, int, int, int, int, int, int]  # base, bytes between rows, lines, cells; rows kept; in scratch; moves
BESIDE = 8 * LINE  # bytes of scratch memory more than asked for: it begins with a cache line
KEPT = 4096  # bound calls; a run has a few for each box of each device


def compile_kernel(
    problem: Problem,
    cache: Path | None,
    cache_bytes: int | None = None,
    *,
    rotate: bool = False,
    left: frozenset[str] = frozenset(),
) -> CpuKernel:
    """The `Kernel` of a problem.

    cache: folder for compiled code, kept between runs (None: nowhere; a folder that cannot be written does no harm);
    cache_bytes: of a core's caches to plan for, by default as `caches` finds; rotate: fields rotate in memory (see
    `rotating_fields`); left: fields whose values need not be stored by a pass.
    """
    usable = tile_cache if problem.grid.ndim == 3 else second_level
    planner = partial(tiled_plan, problem, cache_bytes or usable(), rotate=rotate, second=cache_bytes or second_level())
    programs = _programs_of(problem, cache_bytes, rotate, left)
    return CpuKernel(problem, cache, planner, left, programs)


@remembered()
def _programs_of(problem: Problem, cache_bytes: int | None, rotate: bool, left: frozenset[str]) -> Programs:
    """The programs of all kernels of a problem with the same options: thousands of updates take long to plan."""
    return {}


@dataclass(frozen=True)
class _Bound:
    """A program with the addresses of one memory, ready to be called.

    windows: bytes of scratch memory before those of the driver itself; keep: what the addresses belong to.
    """

    memory: DeviceMemory
    traces: Array
    recorded: tuple[int, ...]
    last: int
    arguments: tuple[int, ...]
    windows: int
    scratch: int
    keep: tuple[object, ...]

    def of(self, memory: DeviceMemory, traces: Array, recorded: tuple[int, ...]) -> bool:
        return self.memory is memory and self.traces is traces and self.recorded is recorded


class CpuKernel:
    """A `Kernel` from generated code. Row functions are compiled when first needed: see `prepare`.

    planner: the plan for a box and a number of steps, and tiles: disjoint, together the box, whole along axis 0 (in 1D
    any parts); left: fields whose values need not be stored by a pass; programs: those that are planned already.
    """

    def __init__(
        self,
        problem: Problem,
        cache: Path | None,
        planner: TilePlanner,
        left: frozenset[str] = frozenset(),
        programs: Programs | None = None,
    ) -> None:
        self.problem = problem
        self.left = left
        self._cache = cache
        self._planner = planner
        self._lock = threading.RLock()
        self._threads = threading.local()
        self._functions: dict[str, Any] = {}
        self._programs: Programs = {} if programs is None else programs
        self._bound: dict[tuple[object, ...], _Bound] = {}
        self._driver: Callable[..., None] | None = None

    def __call__(self, memory: DeviceMemory, part: Pass) -> None:
        box, source, target, step, steps, traces, recorded = part
        if box.empty or steps < 1:
            return
        key = (id(memory), box, source, target, steps, id(recorded))  # a million receivers take long to hash
        bound = self._bound.get(key)
        if bound is None or not bound.of(memory, traces, recorded) or step + steps > bound.last:
            bound = self._bind(key, memory, part)
        assert self._driver is not None
        scratch = self._scratch(bound.scratch)
        self._driver(*bound.arguments, step * self.problem.itemsize, scratch, scratch + bound.windows)

    def prepare(self, box: Box, steps: int, recorded: tuple[int, ...] = ()) -> None:
        """Plan and compile the code for passes over `box` with `steps` steps, so that the first one is not slow."""
        self._ready(self._program(box, steps, recorded))

    def _bind(self, key: tuple[object, ...], memory: DeviceMemory, part: Pass) -> _Bound:
        box, source, target, step, steps, traces, recorded = part
        chosen = self._program(box, steps, recorded)
        functions = self._ready(chosen)
        last = traces.shape[1] if recorded else max(traces.shape[1], step + steps)
        if step + steps > last:
            raise IndexError(f"The traces have room for {last} steps, got steps {step} to {step + steps}.")
        places = _Places(self.problem, chosen, memory, source, target, traces, last)
        storages = np.array([places.row(s) for s in chosen.storages], dtype=np.int64).reshape(-1, 7)
        arguments = (
            *(functions.ctypes.data, chosen.tiles.ctypes.data, len(chosen.tiles)),
            *(chosen.nodes.ctypes.data, len(chosen.nodes), chosen.bands.ctypes.data, chosen.works.ctypes.data),
            *(chosen.operands.ctypes.data, len(chosen.operands), storages.ctypes.data, chosen.at_once),
        )
        windows = -(-chosen.scratch // LINE) * LINE
        scratch = windows + chosen.driver_bytes
        keep = (functions, places, storages, chosen)
        bound = _Bound(memory, traces, recorded, last, arguments, windows, scratch, keep)
        with self._lock:
            if len(self._bound) >= KEPT:
                self._bound.clear()
            self._bound[key] = bound
        return bound

    @collection_paused()
    def _program(self, box: Box, steps: int, recorded: tuple[int, ...]) -> DriverTables:
        with self._lock:
            numbers = np.array(recorded, dtype=np.int64)
            inside = numbers[box.holds(self.problem.receiver_cells[numbers])]
            key = (box, steps, inside.tobytes())
            if key not in self._programs:
                plan, parts = self._planner(box, steps)
                self._programs[key] = program(self.problem, plan, parts, inside, self.left)
            return self._programs[key]

    def _ready(self, chosen: DriverTables) -> Table:
        """The addresses of a program's functions, compiled if new."""
        with self._lock:
            if self._driver is None:
                self._driver = driver(self._cache)
            for text in chosen.functions:
                if text not in self._functions:
                    self._functions[text] = compile_function(text, "rows", self._cache)
            return np.array([self._functions[text].address for text in chosen.functions], dtype=np.int64)

    def _scratch(self, size: int) -> int:
        """The address of this thread's scratch memory of at least `size` bytes."""
        kept: tuple[Array, int] | None = getattr(self._threads, "kept", None)
        if kept is None or kept[0].nbytes < size + BESIDE:
            fresh = np.zeros((size + BESIDE) // 8 + 1, dtype=np.float64)
            kept = self._threads.kept = (fresh, -(-fresh.ctypes.data // LINE) * LINE)
        return kept[1]


class _Places:
    """The rows of the driver's storage table; keeps the arrays of the table alive."""

    def __init__(
        self,
        problem: Problem,
        chosen: DriverTables,
        memory: DeviceMemory,
        source: int,
        target: int,
        traces: Array,
        last: int,
    ) -> None:
        self.problem = problem
        self.buffers = chosen.buffers
        self.memory = memory
        self.slots = {"source": source, "target": target, "coefficient": source}
        self.traces = traces
        self.last = last
        self.made: list[Array] = []

    def row(self, storage: Storage) -> Row:
        match storage.kind:
            case "window" | "border":
                return _buffer_row(self.buffers[storage], self.problem.itemsize)
            case "sink":
                return self.buffers[storage].offset, 0, 0, 0, 0, 1, 0
            case "parameter":
                return self._series([self.problem.params[storage.name]], moves=0)
            case "table":
                return self._series(filled(self.problem.tables[storage.name].values), moves=0)
            case "signal" if self.problem.signals[storage.name].slopes:
                return self._sloped_samples(self.problem.signals[storage.name], storage.number)
            case "signal":
                samples = self.problem.signals[storage.name].samples[: self.last]
                return self._series([*samples, *[0.0] * (self.last - len(samples))], moves=1)
            case "traces":
                return self.traces.ctypes.data, 0, self.traces.strides[0], self.traces.strides[1], 0, 0, 1
        return _block_row(self.memory.block(storage.name, self.slots[storage.kind]))

    def _sloped_samples(self, signal: Signal, step: int) -> Row:
        """Of a signal with slopes, from a step of the pass on: samples of all steps, with room for vectors beside."""
        places, itemsize, steps = signal.samples.shape[1], self.problem.itemsize, [0, 0, 0]
        alike = next(one.name for one in self.problem.signals.values() if one.samples is signal.samples)
        samples, room = _with_room(self.problem, alike, max(self.last, len(signal.samples)))
        self.made.append(samples)
        for axis, slope in zip(AXES[len(signal.slopes)], signal.slopes, strict=True):
            steps[axis] = slope * itemsize
        base = samples.ctypes.data + (room + step * places + signal.first) * itemsize
        return base, steps[0], steps[1], steps[2], 0, 0, places

    def _series(self, values: Iterable[float], moves: int) -> Row:
        self.made.append(np.array(values, dtype=self.problem.grid.dtype))
        return self.made[-1].ctypes.data, 0, 0, self.problem.itemsize, 0, 0, moves


@remembered(16)
def _with_room(problem: Problem, name: str, last: int) -> tuple[Array, int]:
    """The samples of a signal with slopes, zeros to the last step, and the values before them: as many as vectors at
    the end of a line reach beyond it, as there are behind.
    """
    samples, slope = problem.signals[name].samples, problem.signals[name].slopes[-1]
    room = LONGEST // problem.itemsize * (1 + abs(slope))
    found = np.zeros(2 * room + last * samples.shape[1], samples.dtype)
    found[room : room + samples.size] = samples.reshape(-1)
    return found, room


def _buffer_row(buffer: Buffer, itemsize: int) -> Row:
    return buffer.offset, buffer.row, buffer.line, itemsize, buffer.depth, 1, 0


def _block_row(block: Block) -> Row:
    """A block of a device's memory: its base is where the cell of index 0 would be."""
    steps = [0, 0, 0]
    axes = AXES[block.box.ndim]
    for axis, stride in zip(block.field.axes, block.array.strides, strict=True):
        steps[axes[axis]] = stride
    base = block.array.ctypes.data - sum(o * s for o, s in zip(block.origin, block.array.strides, strict=True))
    return base, steps[0], steps[1], steps[2], 0, 0, 0

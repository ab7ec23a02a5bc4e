"""A row of GPUs in one process: slabs with ghost rows, counters, a board, and runs of linked kernels over them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from cuda.bindings import driver
from gpu import Device, Module, check, start

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.norm import NORMS
from peergrid.codegen.cuda.common.program import Launch, Program
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PASSES, PersistentKernel
from peergrid.codegen.norm import NORM_COLUMNS, NORM_ROWS
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.grid import Box
from peergrid.grid.partition import Partition, balanced_cuts
from peergrid.stencil import Problem, boundary_depth, footprint

PAD, BUDGET = 32, 2_000_000_000
SCALES = {"ca": (0.1, 0.9), "cb": (0.5, 0.0)}  # the others: noise around zero
APART = 16  # words between counters


class Slab:
    """The rows of a problem's fields that a device owns, with `reach` ghost rows where the grid goes on."""

    def __init__(self, device: Device, problem: Problem, box: Box, reach: int) -> None:
        self.device, self.problem, self.box = device, problem, box
        rows, columns = problem.grid.shape
        self.first, self.last = max(0, box.lo[0] - reach), min(rows, box.hi[0] + reach)
        width = -(-columns // PAD) * PAD
        self.pitch = dict.fromkeys(problem.fields, width)
        self.values = (self.last - self.first) * width
        device.use()
        self.bases: dict[str, tuple[int, ...]] = {
            name: tuple(device.allocate(self.values * 4) for _ in range(2 if name in problem.state else 1))
            for name in problem.fields
        }

    def fill(self) -> None:
        """The first values, the same on any number of devices; what is to be written is NaN."""
        self.device.use()
        for seed, (name, bases) in enumerate(self.bases.items()):
            first = self.first * self.pitch[name]
            self.device.noise(bases[0], self.values, seed, *SCALES.get(name, (1.0, -0.5)), first)
            for base in bases[1:]:
                check(driver.cuMemsetD8Async(base, 0xFF, self.values * 4, self.device.main))

    def origin(self, name: str, slot: int) -> int:
        """The address of cell (0, 0)."""
        return self.bases[name][slot] - self.first * self.pitch[name] * 4

    def fields(self, table: np.ndarray) -> None:
        """Fill in the addresses of the fields."""
        for number, name in enumerate(self.problem.fields):
            slots = len(self.bases[name])
            table[number]["slot"][:slots] = [self.origin(name, slot) for slot in range(slots)]
            table[number]["pitch"][0] = self.pitch[name]
            table[number]["into"][0] = self.pitch[name]

    def arguments(self, source: int, step: int) -> np.ndarray:
        """`Arguments` without tiles."""
        given = np.zeros((), Arguments(self.problem).dtype)
        self.fields(given["fields"])
        given["step"], given["source"], given["target"] = step, source, 1 - source
        given["lo"][:2], given["hi"][:2] = self.box.lo, self.box.hi
        return given


class Expected:
    """The state after some plain steps on one device."""

    def __init__(self, device: Device, problem: Problem, steps: int, sweep: Callable[..., None]) -> None:
        self.slab = Slab(device, problem, problem.grid.box, 0)
        self.slab.fill()
        sides = [{name: self.slab.bases[name][slot] for name in problem.state} for slot in (0, 1)]
        for _ in range(steps):
            sweep(self.slab, *sides)
            sides.reverse()
        device.sync()
        self.state = sides[0]


class Row:
    """A problem cut into slabs over some devices, at multiples of `align` rows, for passes of so many steps."""

    def __init__(self, devices: Sequence[Device], problem: Problem, steps: int, align: int = 1) -> None:
        self.devices, self.problem, self.steps = devices, problem, steps
        partition = Partition.slabs(problem.grid, balanced_cuts([1] * problem.grid.shape[0], len(devices), align))
        inputs = footprint(problem, steps).inputs.values()
        reach = max(boundary_depth(problem, steps), *(max(g.below[0], g.above[0]) for g in inputs))
        self.slabs = [Slab(d, problem, partition.owned(n), reach) for n, d in enumerate(devices)]
        self.counters = []
        for device in devices:
            device.use()
            self.counters.append(device.allocate(4 * APART * 8))
        board = check(driver.cuMemHostAlloc(4096, 1 | 2))  # portable, mapped
        self.board_address = int(board)
        self.board = np.frombuffer((ctypes.c_int64 * 512).from_address(self.board_address), np.int64)

    def reset(self) -> None:
        """First values, counters at zero, nobody stopped."""
        self.board[:] = 0
        for slab, counters in zip(self.slabs, self.counters, strict=True):
            slab.fill()
            check(driver.cuMemsetD8Async(counters, 0, 4 * APART * 8, slab.device.main))
        self.sync()

    def rewind(self) -> None:
        """Counters at zero only."""
        for device, counters in zip(self.devices, self.counters, strict=True):
            device.use()
            check(driver.cuMemsetD8Async(counters, 0, 4 * APART * 8, device.main))
        self.sync()

    def sync(self) -> None:
        for device in self.devices:
            device.sync()
        if self.board[0]:
            reports = [(d, *self.board[8 * (d + 1) :][:3].tolist()) for d in range(len(self.devices))]
            raise RuntimeError(f"no answer: (device, op + 1, wanted, seen) {[r for r in reports if r[1]]}")

    def counter(self, device: int, side: int) -> int:
        return self.counters[device] + side * APART * 8

    def arrived(self, device: int) -> int:
        """The address of the counter of the barrier of a device's blocks."""
        return self.counter(device, 2)

    def links(self, dtype: np.dtype[Any], device: int, counts: list[tuple[int, int]], passed: int) -> np.ndarray:
        """`Exchange` of a device."""
        links = np.zeros((), dtype)
        links["passed"], links["timeout"] = passed, BUDGET
        links["fault_log"], links["record"] = self.board_address, 8 * (device + 1)
        for side in (0, 1):
            other = device + (1 if side else -1)
            if 0 <= other < len(self.devices):
                links["side"]["local"][side] = self.counter(device, side)
                links["side"]["remote"][side] = self.counter(other, 1 - side)
                links["side"]["expected"][side] = counts[other][1 - side]
                self.slabs[other].fields(links["side"]["fields"][side])
        return links

    def different(self, expected: Expected, slot: int) -> int:
        """How many values differ in a bit."""
        total, c = 0, ctypes
        for slab in self.slabs:
            device, (lo, _), (rows, columns) = slab.device, slab.box.lo, slab.box.shape
            device.use()
            count = device.upload(np.zeros(1, np.uint64))
            for name in self.problem.state:
                pitch = slab.pitch[name]
                start(device.helpers.function("differ"), (2048, 1), (256, 1), 0, device.main,
                      c.c_void_p(slab.origin(name, slot) + lo * pitch * 4),
                      c.c_void_p(expected.state[name] + lo * pitch * 4), c.c_int(rows), c.c_int(columns),
                      c.c_longlong(pitch), c.c_void_p(count))  # fmt: skip
            found = np.zeros(1, np.uint64)
            device.sync()
            check(driver.cuMemcpyDtoH(found.ctypes.data, count, 8))
            total += int(found[0])
        return total

    def release(self) -> None:
        for device in self.devices:
            device.use()
            device.release()
        check(driver.cuMemFreeHost(self.board_address))


class Loaded:
    """A program on one device."""

    def __init__(self, device: Device, program: Program, cubin: bytes) -> None:
        device.use()
        self.program, self.device, self.module = program, device, Module(cubin)
        self.function = self.module.function(program.entry, program.shared_bytes)
        self.resident = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            self.function, program.threads, program.shared_bytes))  # fmt: skip
        kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
        self.registers = check(driver.cuFuncGetAttribute(kind, self.function))

    @property
    def slots(self) -> int:
        """Tiles that run at once."""
        return self.device.multiprocessors * max(1, self.resident) * self.program.tiles_per_block


class PeerRun:
    """Passes as one graph on each device: a launch for interior tiles and one for boundary tiles in each pass."""

    def __init__(self, row: Row, made: PassKernel, pool: ThreadPoolExecutor) -> None:
        made = replace(made, has_strips=False)
        self.row, self.made, self.kernel = row, made, PeerKernel.of(made)
        arch = row.devices[0].arch
        programs = [self.kernel.interior, self.kernel.boundary, *([made.sums] if made.norm else [])]
        cubins = list(pool.map(lambda program: compile_cubin(program.source, arch), programs))
        self.loaded = [[Loaded(device, *pair) for pair in zip(programs, cubins, strict=True)] for device in row.devices]
        self.launches = [
            self.kernel.launches(slab.box, loaded[0].slots) for slab, loaded in zip(row.slabs, self.loaded, strict=True)
        ]
        self.counts = [
            self.kernel.links.counts(s.box, (launch.regions for launch in found))
            for s, found in zip(row.slabs, self.launches, strict=True)
        ]
        self.norms = [self._norms(n) for n in range(len(row.devices))] if made.norm else []
        self.graphs: list[Any] = []
        self.description = f"regs {self.loaded[0][0].registers} tiles {[len(k.regions) for k in self.launches[0]]}"

    def _norms(self, device: int) -> list[np.ndarray]:
        """Where partial sums go, for even and odd passes."""
        slab, steps = self.row.slabs[device], self.made.shape.steps
        slab.device.use()
        low, bands = slab.box.lo[0] // NORM_ROWS, -(-slab.box.shape[0] // NORM_ROWS)
        across = -(-slab.box.hi[1] // NORM_COLUMNS)
        found = []
        for _ in range(2):
            norms = np.zeros((), NORMS)
            norms["partial"] = slab.device.allocate(steps * bands * across * 4) - low * across * 4
            norms["rows"] = slab.device.allocate(steps * bands * 8) - low * 8
            norms["pitch"], norms["plane"], norms["row_plane"] = across, bands * across, bands
            found.append(norms)
        return found

    def prepare(self, passes: int) -> None:
        """A graph of so many passes on each device."""
        self.forget()
        self.graphs = [self._graph(n, passes) for n in range(len(self.row.devices))]

    def forget(self) -> None:
        for graph in self.graphs:
            check(driver.cuGraphExecDestroy(graph))
        self.graphs = []

    def _graph(self, number: int, passes: int) -> Any:
        slab = self.row.slabs[number]
        device = slab.device
        device.use()
        given = {(k, s): self._arguments(slab, launch, s)
                 for k, launch in enumerate(self.launches[number]) for s in (0, 1)}  # fmt: skip
        late = check(driver.cuStreamCreate(1))
        summed = [check(driver.cuEventCreate(2)) for _ in range(2)]
        check(driver.cuStreamBeginCapture(device.main, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        for turn in range(passes):
            if self.made.norm and turn > 1:
                check(driver.cuStreamWaitEvent(device.main, summed[turn % 2], 0))
            self._pass(number, turn, given)
            if self.made.norm:
                check(driver.cuEventRecord(device.fork, device.main))
                check(driver.cuStreamWaitEvent(late, device.fork, 0))
                bands = -(-slab.box.shape[0] // NORM_ROWS)
                self._start(self.loaded[number][2], (bands, self.made.shape.steps), late, given[0, turn % 2],
                            self.norms[number][turn % 2])  # fmt: skip
                check(driver.cuEventRecord(summed[turn % 2], late))
        for event in summed[:passes] if self.made.norm else []:
            check(driver.cuStreamWaitEvent(device.main, event, 0))
        graph = check(driver.cuStreamEndCapture(device.main))
        found = check(driver.cuGraphInstantiate(graph, 0))
        check(driver.cuGraphDestroy(graph))
        check(driver.cuGraphUpload(found, device.main))
        device.sync()
        return found

    def _pass(self, number: int, turn: int, given: dict[tuple[int, int], np.ndarray]) -> None:
        device, launches = self.row.devices[number], self.launches[number]
        links = self.row.links(self.kernel.links.dtype(), number, self.counts, turn)
        more = [self.norms[number][turn % 2]] if self.made.norm else []
        forked = len(launches) > 1
        if forked:
            check(driver.cuEventRecord(device.fork, device.main))
            check(driver.cuStreamWaitEvent(device.side, device.fork, 0))
        for k, launch in enumerate(launches):
            plain = launch.program is self.kernel.interior
            stream = device.side if forked and not plain else device.main
            loaded = self.loaded[number][0 if plain else 1]
            self._start(loaded, (launch.blocks, 1), stream, given[k, turn % 2], links, *more)
        if forked:
            check(driver.cuEventRecord(device.join, device.side))
            check(driver.cuStreamWaitEvent(device.main, device.join, 0))

    def _start(self, loaded: Loaded, blocks: tuple[int, int], stream: Any, *values: np.ndarray) -> None:
        program = loaded.program
        start(loaded.function, blocks, (program.threads, 1), program.shared_bytes, stream, *values)

    def _arguments(self, slab: Slab, launch: Launch, source: int) -> np.ndarray:
        given = slab.arguments(source, 0)
        given["regions"], given["count"] = slab.device.upload(launch.regions), len(launch.regions)
        return given

    def start(self) -> None:
        for device, graph in zip(self.row.devices, self.graphs, strict=True):
            device.use()
            check(driver.cuGraphLaunch(graph, device.main))

    def rows(self, turn: int) -> np.ndarray:
        """The sums of rows that a pass left, of all devices."""
        found = []
        for slab, norms in zip(self.row.slabs, self.norms, strict=True):
            mine = np.zeros((self.made.shape.steps, -(-slab.box.shape[0] // NORM_ROWS)))
            slab.device.use()
            check(driver.cuMemcpyDtoH(mine.ctypes.data, int(norms[turn % 2]["rows"]) + slab.box.lo[0] // NORM_ROWS * 8,
                                      mine.nbytes))  # fmt: skip
            found.append(mine)
        return np.concatenate(found, axis=1)


class PersistentRun:
    """All passes in one cooperative kernel on each device."""

    def __init__(self, row: Row, kernel: PersistentKernel) -> None:
        self.row, self.kernel = row, kernel
        program = self.kernel.program
        cubin = compile_cubin(program.source, row.devices[0].arch)
        self.loaded = [Loaded(device, program, cubin) for device in row.devices]
        self.tables = [
            self.kernel.tables(s.box, k.device.multiprocessors * max(1, k.resident))
            for s, k in zip(row.slabs, self.loaded, strict=True)
        ]
        self.counts = [
            self.kernel.links.counts(s.box, found[:2]) for s, found in zip(row.slabs, self.tables, strict=True)
        ]
        self.given = [self._given(n) for n in range(len(row.devices))]
        plain, edge, _ = self.tables[0]
        self.description = (
            f"regs {self.loaded[0].registers} tiles {len(edge), len(plain)} units {self.kernel.units(plain, edge)} "
            f"blocks {self._blocks(0)}"
        )

    def _given(self, number: int) -> list[np.ndarray]:
        slab, (plain, edge, _) = self.row.slabs[number], self.tables[number]
        slab.device.use()
        turns = np.zeros((), PASSES)
        turns["interior"], turns["boundary"] = (slab.device.upload(table) for table in (plain, edge))
        turns["interior_count"], turns["boundary_count"] = len(plain), len(edge)
        turns["arrived"] = self.row.arrived(number)
        return [slab.arguments(0, 0), self.row.links(self.kernel.links.dtype(), number, self.counts, 0), turns]

    def _blocks(self, number: int) -> int:
        loaded, (plain, edge, _) = self.loaded[number], self.tables[number]
        return min(self.kernel.units(plain, edge), loaded.device.multiprocessors * max(1, loaded.resident))

    def prepare(self, passes: int) -> None:
        for given in self.given:
            given[2]["passes"] = passes

    def forget(self) -> None:
        pass

    def start(self) -> None:
        for number, (loaded, given) in enumerate(zip(self.loaded, self.given, strict=True)):
            loaded.device.use()
            places = (ctypes.c_void_p * 3)(*(table.ctypes.data for table in given))
            program = loaded.program
            check(driver.cuLaunchCooperativeKernel(loaded.function, self._blocks(number), 1, 1, program.threads, 1, 1,
                                                   program.shared_bytes, loaded.device.main,
                                                   ctypes.addressof(places)))  # fmt: skip


def seconds(row: Row, run: PeerRun | PersistentRun) -> float:
    """Wall-clock seconds from before the first launch until every device is done."""
    row.rewind()
    began = time.perf_counter()
    run.start()
    row.sync()
    return time.perf_counter() - began

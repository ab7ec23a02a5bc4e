"""Measure the time-blocked 3D kernels on one GPU: shapes side by side, each checked to the bit against plain sweeps.

    python benchmarks/cuda/blocked3d.py [--cases heat,heat64,yee,layers,maxwell] [--size 512] [--shapes SHAPES]
        [--out FILE]

Each case is measured as a run makes it, with two, three and four steps per pass, and in the shapes asked for:
'heat:3:128,36,3,2,3,0 yee:2:72,28,1,1,1,0', the case, its steps, then columns, rows, rows of a thread, planes ahead,
clocks in the body of the loop, clocks that blocks may be apart and, after a comma, b: a barrier in two halves,
t: tensor copies.

Needs a GPU, NumPy, cuda-core and cuda-bindings. A variant that fails is reported and the rest goes on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from gpu import ROOT, Device, Module, check, copy_rate, start
from problems3d import CASES

sys.path.insert(0, str(ROOT / "benchmarks"))
from record import about

from peergrid.codegen.cuda.choose.shape3d import pass3d
from peergrid.codegen.cuda.onestep import OneStepKernels
from peergrid.codegen.cuda.onestep.groups import scratch_fields
from peergrid.codegen.cuda.stream3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.stream3d.remainder import remainders
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.grid import Box
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.lowering.tensor_maps import stored
from peergrid.runtime.cuda.memory.blocks import BlockLayout
from peergrid.stencil import Problem

HELPERS = """
extern "C" __global__ void fill(REAL* p, long long n, unsigned seed) {
  for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < n; k += (long long)gridDim.x * blockDim.x) {
    unsigned h = (unsigned)(k * 2654435761u) ^ (unsigned)(k >> 16) ^ seed;
    h ^= h >> 16; h *= 0x7feb352du; h ^= h >> 15; h *= 0x846ca68bu; h ^= h >> 16;
    p[k] = (REAL)((h >> 8) * 5.9604645e-8f);
  }
}
extern "C" __global__ void differ(const unsigned* a, const unsigned* b, long long n, unsigned long long* count) {
  unsigned long long found = 0;
  for (long long k = blockIdx.x * (long long)blockDim.x + threadIdx.x; k < n; k += (long long)gridDim.x * blockDim.x)
    found += a[k] != b[k];
  if (found) atomicAdd(count, found);
}
"""


@dataclass
class Result:
    """One variant, as it goes into the JSON; steps in its shape: 0 for single ones by the kernels of `onestep`."""

    case: str
    shape: dict[str, Any] = field(default_factory=dict)
    gcells: float = 0.0
    ms_per_pass: float = 0.0
    registers: int = 0
    local_bytes: int = 0
    blocks_per_multiprocessor: int = 0
    shared_bytes: int = 0
    tiles: int = 0
    remainder_ms: float = 0.0
    remainder_cells: int = 0
    different: int = -1
    error: str = ""


Layouts = tuple[dict[str, BlockLayout], dict[str, BlockLayout]]
"""How fields lie in the slot that is read and in the one that is written."""


@dataclass(frozen=True)
class One:
    """Kernels of one step and their code on the device."""

    program: OneStepKernels
    module: Module


@dataclass(frozen=True)
class Built:
    """The code of a pass, and the program of its remainder with its code, if it has one."""

    tiles: bytes
    remainder: tuple[OneStepKernels, bytes] | None = None


class Bench:
    """One problem: its memory, plain sweeps of it, and the variants measured on it."""

    def __init__(self, device: Device, case: str, problem: Problem) -> None:
        self.device, self.case, self.problem = device, case, problem
        real = "float" if problem.itemsize == 4 else "double"
        self.helpers = Module(compile_cubin(HELPERS.replace("REAL", real), device.arch))
        self.blocks = {name: BlockLayout(f, f.box, problem.itemsize, 8) for name, f in problem.fields.items()}
        self.one = {name: self._block(name, seed) for seed, name in enumerate(problem.fields)}
        self.two = {name: self._block(name, None) for name in problem.state}
        self.program = OneStepKernels.of(problem, [[problem.grid.box]])
        self.module = Module(compile_cubin(self.program.source, device.arch))
        self.expected: dict[int, dict[str, int]] = {}

    def _block(self, name: str, seed: int | None, blocks: dict[str, BlockLayout] | None = None) -> int:
        block = (blocks or self.blocks)[name]
        place = self.device.allocate(max(block.bytes, 16))
        check(driver.cuMemsetD8(place, 0xFF, block.bytes))
        if seed is not None:
            c = ctypes
            start(self.helpers.function("fill"), (2048, 1), (256, 1), 0, self.device.main, c.c_void_p(place),
                  c.c_longlong(block.values), c.c_uint(seed))  # fmt: skip
        return place

    def arguments(self, slots: tuple[dict[str, int], dict[str, int]], layouts: Layouts | None = None) -> Any:
        table = self.program.arguments
        read, written = layouts or (self.blocks, self.blocks)
        given = np.zeros((), table.dtype)
        for number, name in enumerate(table.fields):
            row = given["fields"][number]
            for slot, kind, blocks in ((0, "pitch", read), (1, "into", written)):
                block = blocks[name]
                place = slots[slot].get(name, self.one[name]) + block.shift * block.itemsize
                row["slot"][slot] = place % (1 << 64) if block.values else 0
                if block.field.full:
                    row[kind][:2] = block.pitches[:-1]
        given["params"][: len(table.params)] = list(self.problem.params.values())
        given["target"] = 1
        given["lo"], given["hi"] = (0, 0, 0), self.problem.grid.shape
        return given

    def sweep(self, slots: tuple[dict[str, int], dict[str, int]], scratch: list[int], made: One | None = None,
              boxes: Iterable[Box] | None = None, layouts: Layouts | None = None) -> Callable[[], None]:  # fmt: skip
        """One step of boxes, all of the grid by default, by the one-step kernels, ready to be issued."""
        ready, made = [], made or One(self.program, self.module)
        for launch in made.program.launches(boxes or [self.problem.grid.box]):
            given = self.arguments(slots, layouts)
            given["scratch"][: len(scratch)] = scratch
            given["lo"], given["hi"] = launch.box.lo, launch.box.hi
            if launch.regions:
                given["regions"], given["count"] = self.device.upload(launch.table()), len(launch.regions)
            ready.append((made.module.function(launch.kernel), launch.blocks, launch.threads, given))

        def issue() -> None:
            for function, blocks, threads, given in ready:
                start(function, (blocks, 1), (threads, 1), 0, self.device.main, given)

        return issue

    def scratch(self) -> list[int]:
        """Fresh blocks for what one-step kernels leave in between."""
        names = scratch_fields(self.problem)
        return [self._block(name, None) + self.blocks[name].shift * self.problem.itemsize for name in names]

    def reference(self, most: int) -> Result:
        """The states after up to `most` steps, and the speed of single steps."""
        scratch, before = self.scratch(), self.one
        for done in range(1, most + 1):
            after = {name: self._block(name, None) for name in self.problem.state}
            self.sweep((before, after), scratch)()
            self.expected[done] = before = after
        self.device.sync()
        result, issue = Result(self.case, {"steps": 0}), self.sweep((self.one, self.two), scratch)
        result.ms_per_pass = self.device.timed(lambda: [issue() for _ in range(16)] and None) / 16
        result.gcells = self.problem.grid.box.size / result.ms_per_pass / 1e6
        return result

    def remainder(self, kernel: PassKernel3D, slots: int, built: Built) -> tuple[Callable[[], None], int]:
        """What tiles leave, step by step, ready to be issued, and its cells."""
        if built.remainder is None:
            return (lambda: None), 0
        made = One(built.remainder[0], Module(built.remainder[1]))
        issued, cells, scratch = list[Callable[[], None]](), 0, self.scratch()
        for part in remainders(self.problem, kernel.steps, kernel.remainder(self.problem.grid.box, slots)):
            kept = self.blocks | (self._dense(part.dense) if part.dense else {})
            between = [{name: self._block(name, None, kept) for name in self.problem.state} for _ in part.steps[1:]]
            states, layouts = [self.one, *between, self.two], [self.blocks, *(kept for _ in between), self.blocks]
            for n, boxes in enumerate(part.steps):
                shapes = layouts[n], layouts[n + 1]
                issued.append(self.sweep((states[n], states[n + 1]), scratch, made, boxes, shapes))
            cells += sum(box.size for box in part.steps[-1])
        return (lambda: [issue() for issue in issued] and None), cells

    def _dense(self, box: Box) -> dict[str, BlockLayout]:
        fields, size = self.problem.fields, self.problem.itemsize
        return {name: BlockLayout(fields[name], fields[name].box & box, size, 8) for name in self.problem.state}

    def measure(self, kernel: PassKernel3D, built: Built) -> Result:
        device, program = self.device, kernel.interior
        module = Module(built.tiles)
        function = module.function(program.entry, program.shared_bytes)
        kind, of = driver.CUfunction_attribute, driver.cuFuncGetAttribute
        blocks = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            function, program.threads, program.shared_bytes))  # fmt: skip
        slots = device.multiprocessors * max(1, blocks)
        (launch,) = kernel.launches(self.problem.grid.box, slots)
        remainder, cells = self.remainder(kernel, slots, built)
        table = self.arguments((self.one, self.two))
        table["regions"], table["count"] = device.upload(launch.regions), len(launch.regions)
        maps = kernel.tensors(table, lambda name: stored(self.blocks[name]), CudaDriver().tensor_map)
        for name in self.problem.state:  # cells that nobody writes are in both slots
            check(driver.cuMemcpyDtoD(self.two[name], self.expected[1][name], self.blocks[name].bytes))

        def tiles() -> None:
            start(function, (launch.blocks, 1), (program.threads, 1), program.shared_bytes, device.main, table, *maps)

        def whole() -> None:
            remainder()
            tiles()

        whole()
        device.sync()
        result = Result(
            self.case,
            _shape(kernel),
            registers=check(of(kind.CU_FUNC_ATTRIBUTE_NUM_REGS, function)),
            local_bytes=check(of(kind.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function)),
            blocks_per_multiprocessor=blocks,
            shared_bytes=program.shared_bytes,
            tiles=launch.blocks,
            remainder_cells=cells,
            different=self.differences(kernel.steps),
        )
        result.ms_per_pass = device.timed(lambda: [whole() for _ in range(8)] and None) / 8
        if cells:
            result.remainder_ms = device.timed(lambda: [remainder() for _ in range(8)] and None) / 8
        result.gcells = self.problem.grid.box.size * kernel.steps / result.ms_per_pass / 1e6
        check(driver.cuModuleUnload(module.handle))
        return result

    def differences(self, steps: int) -> int:
        """How many words of the new state differ from the plain sweeps'."""
        c, count = ctypes, self.device.upload(np.zeros(1, np.uint64))
        for name in self.problem.state:
            start(self.helpers.function("differ"), (2048, 1), (256, 1), 0, self.device.main,
                  c.c_void_p(self.two[name]), c.c_void_p(self.expected[steps][name]),
                  c.c_longlong(self.blocks[name].bytes // 4), c.c_void_p(count))  # fmt: skip
        found = np.zeros(1, np.uint64)
        self.device.sync()
        check(driver.cuMemcpyDtoH(found.ctypes.data, count, 8))
        return int(found[0])


def variants(case: str, problem: Problem, shapes: str) -> Iterator[PassKernel3D]:
    """The variants of a case: what a run would take for each number of steps, then those that are asked for."""
    for steps in (2, 3, 4):
        if (chosen := pass3d(problem, steps)) is not None:
            yield chosen
    for name, asked, numbers in (part.split(":") for part in shapes.split()):
        if name == case:
            *sizes, flags = numbers.split(",") if numbers[-1].isalpha() else (*numbers.split(","), "")
            columns, rows, each, ahead, unroll, lead = map(int, sizes)
            ways = {"split_barrier": "b" in flags, "tensor": "t" in flags}
            shape = StreamShape(columns, rows, each, ahead, own=True, unroll=unroll, lead=lead, **ways)
            yield PassKernel3D(problem, int(asked), shape)


def build(kernel: PassKernel3D, device: Device) -> Built:
    """The machine code of the kernels that a pass over the grid launches."""
    box, tiles = kernel.problem.grid.box, compile_cubin(kernel.interior.source, device.arch)
    left = kernel.remainder(box, device.multiprocessors)
    if not left:
        return Built(tiles)
    found = remainders(kernel.problem, kernel.steps, left)
    program = OneStepKernels.of(kernel.problem, [boxes for part in found for boxes in part.steps])
    return Built(tiles, (program, compile_cubin(program.source, device.arch)))


def run_case(device: Device, case: str, size: int, shapes: str, pool: ThreadPoolExecutor) -> list[Result]:
    make, dtype = CASES[case]
    problem = make(size, dtype)
    kernels = list(variants(case, problem, shapes))
    waiting = [(kernel, pool.submit(build, kernel, device)) for kernel in kernels]
    bench = Bench(device, case, problem)
    results = [bench.reference(max((kernel.steps for kernel in kernels), default=1))]
    print(line(results[0]), flush=True)
    for kernel, future in waiting:
        try:
            results.append(bench.measure(kernel, future.result()))
        except Exception as error:  # each variant stands alone
            results.append(Result(case, _shape(kernel), error=f"{type(error).__name__}: {error}"[:400]))
        print(line(results[-1]), flush=True)
    device.release()
    return results


def _shape(kernel: PassKernel3D) -> dict[str, Any]:
    return {"steps": kernel.steps, **asdict(kernel.shape)}


def line(r: Result) -> str:
    s = r.shape
    if not s["steps"]:
        return f"{r.case} one step after another: {r.gcells:.0f} GC/s, {r.ms_per_pass:.3f} ms"
    tile = f"{s['columns']}x{s['rows']}/{s['rows_each']}"
    name = f"{r.case} T={s['steps']} {tile} ahead={s['ahead']} unroll={s['unroll']}"
    if r.error:
        return f"{name}: {r.error}"
    return (
        f"{name}: {r.gcells:.0f} GC/s pass {r.ms_per_pass:.3f} ms regs {r.registers} local {r.local_bytes} "
        f"blocks {r.blocks_per_multiprocessor} shared {r.shared_bytes} tiles {r.tiles} bad {r.different}"
        + (f" remainder {r.remainder_cells} cells {r.remainder_ms:.3f} ms" if r.remainder_cells else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="heat,heat64,yee,layers,maxwell")
    parser.add_argument("--size", type=int, default=512, help="cells along each axis")
    parser.add_argument("--shapes", default="", help="variants beside those of runs")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = Device()
    rates = copy_rate(device)
    print(f"{device.name}, copy {rates['memcpy']:.0f} GB/s, by a kernel {rates['kernel']:.0f}")
    results: list[Result] = []
    with ThreadPoolExecutor(8) as pool:
        for case in options.cases.split(","):
            try:
                results += run_case(device, case, options.size, options.shapes, pool)
            except Exception as error:  # each case stands alone
                results.append(Result(case, {"steps": 0}, error=f"{type(error).__name__}: {error}"[:400]))
                print(f"{case}: {results[-1].error}", flush=True)
                device.release()
            if options.out:
                report = {"about": _about(device), "copy_gb_per_s": rates, "results": [asdict(r) for r in results]}
                options.out.write_text(json.dumps(report, indent=1))


def _about(device: Device) -> dict[str, Any]:
    found = about(("numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"))
    return {**found, "hardware": {"gpus": f"1 × {device.name}", **found["hardware"]}}


if __name__ == "__main__":
    main()

"""Measure the time-blocked 3D kernels on one GPU: shapes side by side, each checked to the bit against plain sweeps.

    python benchmarks/cuda/blocked3d.py [--cases heat,heat64,yee,layers,maxwell] [--size 512] [--quick] [--out FILE]

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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from gpu import ROOT, Device, Module, check, copy_rate, start
from problems3d import CASES

sys.path.insert(0, str(ROOT / "benchmarks"))
from record import about

from peergrid.codegen.cuda import onestep
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.shell import shells
from peergrid.codegen.cuda.choose.shape3d import pass3d
from peergrid.codegen.cuda.onestep.groups import scratch_fields
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.grid import Box
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
    """One variant, as it goes into the JSON; steps 0: one step after another by the kernels of `onestep`."""

    case: str
    shape: dict[str, Any] = field(default_factory=dict)
    gcells: float = 0.0
    ms_per_pass: float = 0.0
    edge_ms: float = 0.0
    registers: int = 0
    local_bytes: int = 0
    warps_per_multiprocessor: int = 0
    shared_bytes: int = 0
    tiles: int = 0
    edge_tiles: int = 0
    shell_ms: float = 0.0
    shell_cells: int = 0
    useful: float = 0.0
    different: int = -1
    error: str = ""


Layouts = tuple[dict[str, BlockLayout], dict[str, BlockLayout]]
"""How fields lie in the slot that is read and in the one that is written."""


@dataclass(frozen=True)
class One:
    """Kernels of one step and their code on the device."""

    program: onestep.Program
    module: Module


@dataclass(frozen=True)
class Built:
    """The code of a pass by kernel, and the program of its shell, if it has one."""

    cubins: dict[str, bytes]
    shell: onestep.Program | None = None


class Bench:
    """One problem: its memory, plain sweeps of it, and the variants measured on it."""

    def __init__(self, device: Device, case: str, problem: Problem) -> None:
        self.device, self.case, self.problem = device, case, problem
        real = "float" if problem.itemsize == 4 else "double"
        self.helpers = Module(compile_cubin(HELPERS.replace("REAL", real), device.arch))
        self.blocks = {name: BlockLayout(f, f.box, problem.itemsize, 8) for name, f in problem.fields.items()}
        self.one = {name: self._block(name, seed) for seed, name in enumerate(problem.fields)}
        self.two = {name: self._block(name, None) for name in problem.state}
        self.program = onestep.program(problem, [[problem.grid.box]])
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

    def shell(self, kernel: PassKernel3D, slots: int, built: Built) -> tuple[Callable[[], None], int]:
        """What plain tiles leave, step by step, ready to be issued, and its cells."""
        if built.shell is None:
            return (lambda: None), 0
        made = One(built.shell, Module(built.cubins["shell"]))
        issued, cells, scratch = list[Callable[[], None]](), 0, self.scratch()
        for part in shells(self.problem, kernel.steps, kernel.remainder(self.problem.grid.box, slots)):
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
        device, cubins = self.device, built.cubins
        result = Result(self.case, asdict(kernel.shape), shared_bytes=kernel.plain.shared_bytes)
        modules = {entry: Module(cubin) for entry, cubin in cubins.items() if entry != "shell"}
        programs = {program.entry: program for program in (kernel.plain, kernel.edge) if program.entry in cubins}
        functions = {e: modules[e].function(e, p.shared_bytes, whole=p.whole) for e, p in programs.items()}
        kind, of = driver.CUfunction_attribute, driver.cuFuncGetAttribute
        plain = functions[kernel.plain.entry]
        result.registers = check(of(kind.CU_FUNC_ATTRIBUTE_NUM_REGS, plain))
        result.local_bytes = check(of(kind.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, plain))
        blocks = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            plain, kernel.plain.threads, kernel.plain.shared_bytes))  # fmt: skip
        result.warps_per_multiprocessor = blocks * kernel.shape.warps
        slots = device.multiprocessors * (1 if kernel.shelled else max(1, blocks))
        launches = kernel.launches(self.problem.grid.box, slots)
        shell, result.shell_cells = self.shell(kernel, slots, built)
        result.useful = round(kernel.useful(self.problem.grid.box), 3)
        given = {}
        for launch in launches:
            table = self.arguments((self.one, self.two))
            table["regions"], table["count"] = device.upload(launch.regions), len(launch.regions)
            given[launch.program.entry] = (table, launch.blocks)
        result.tiles = given[kernel.plain.entry][1]
        result.edge_tiles = given[kernel.edge.entry][1] if kernel.edge.entry in given else 0
        for name in self.problem.state:
            check(driver.cuMemsetD8(self.two[name], 0xFF, self.blocks[name].bytes))

        def run(entries: Iterable[str]) -> None:
            for entry in entries:
                table, count = given[entry]
                program = programs[entry]
                start(functions[entry], (count, 1), (program.threads, 1), program.shared_bytes, device.main, table)

        def whole() -> None:
            shell()
            run(given)

        whole()
        device.sync()
        if kernel.steps in self.expected:
            result.different = self.differences(kernel.steps)
        result.ms_per_pass = device.timed(lambda: [whole() for _ in range(8)] and None) / 8
        if built.shell:
            result.shell_ms = device.timed(lambda: [shell() for _ in range(8)] and None) / 8
        if result.edge_tiles:
            result.edge_ms = device.timed(lambda: [run([kernel.edge.entry]) for _ in range(4)] and None) / 4
        result.gcells = self.problem.grid.box.size * kernel.steps / result.ms_per_pass / 1e6
        for module in modules.values():
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


def variants(case: str, problem: Problem, quick: bool) -> Iterator[PassKernel3D]:
    """The variants of a case: what a run would take for each number of steps, then others."""
    if case == "heat":
        yield PassKernel3D(problem, Shape3D(1, 4, 2, 16))
    elif case == "heat64":
        yield PassKernel3D(problem, Shape3D(1, 2, 2, 16))
    elif case == "yee":
        yield PassKernel3D(problem, Shape3D(1, 2, 1, 16, turning=False))
    for steps in (2, 3, 4):
        if (chosen := pass3d(problem, steps)) is not None:
            yield chosen
    if not quick:
        yield from (PassKernel3D(problem, shape) for shape in OTHERS.get(case, ()))


FIRST, SHORT = partial(Shape3D, turning=False), partial(Shape3D, turning=False, joined=True)
OTHERS = {
    "heat": (
        *(Shape3D(2, 4, 1, 32, 2), Shape3D(2, 4, 1, 32, 3), Shape3D(2, 4, 2, 16, 4)),
        *(SHORT(3, 4, 1, 32, 2), SHORT(3, 4, 1, 32, 3), SHORT(3, 4, 2, 16, 2), SHORT(4, 4, 2, 16, 1)),
    ),
    "heat64": (Shape3D(2, 2, 2, 16, 4), Shape3D(2, 2, 1, 32, 2), SHORT(3, 2, 1, 32, 3), SHORT(4, 2, 1, 32, 1)),
    "yee": (
        *(FIRST(1, 2, 1, 16, 1), FIRST(1, 4, 1, 16, 1), FIRST(2, 2, 1, 16, 1), FIRST(2, 2, 1, 16, 2)),
        *(FIRST(2, 2, 2, 8, 3), SHORT(3, 2, 1, 16, 1), SHORT(3, 2, 1, 16, 2), SHORT(3, 2, 2, 8, 2)),
    ),
}


def build(kernel: PassKernel3D, device: Device) -> Built:
    """The machine code of the kernels that a pass over the grid launches."""
    box, slots = kernel.problem.grid.box, device.multiprocessors
    launches, shell = kernel.launches(box, slots), None
    cubins = {launch.program.entry: compile_cubin(launch.program.source, device.arch) for launch in launches}
    if kernel.shelled:
        found = shells(kernel.problem, kernel.steps, kernel.remainder(box, slots))
        shell = onestep.program(kernel.problem, [boxes for part in found for boxes in part.steps])
        cubins["shell"] = compile_cubin(shell.source, device.arch)
    return Built(cubins, shell)


def run_case(device: Device, case: str, size: int, quick: bool, pool: ThreadPoolExecutor) -> list[Result]:
    make, dtype = CASES[case]
    problem = make(size, dtype)
    kernels = list(variants(case, problem, quick))
    waiting = [(kernel, pool.submit(build, kernel, device)) for kernel in kernels]
    bench = Bench(device, case, problem)
    results = [bench.reference(max((kernel.steps for kernel in kernels), default=1))]
    print(line(results[0]), flush=True)
    for kernel, future in waiting:
        try:
            results.append(bench.measure(kernel, future.result()))
        except Exception as error:  # each variant stands alone
            results.append(Result(case, asdict(kernel.shape), error=f"{type(error).__name__}: {error}"[:400]))
        print(line(results[-1]), flush=True)
    device.release()
    return results


def line(r: Result) -> str:
    s = r.shape
    if not s["steps"]:
        return f"{r.case} one step after another: {r.gcells:.0f} GC/s, {r.ms_per_pass:.3f} ms"
    name = f"{r.case} T={s['steps']} VX={s['columns']} rows={s['rows']}x{s['warps']} ahead={s['ahead']}"
    marks = ("not held", not s["held"]), ("skew", s["skew"]), ("short rings", not s["turning"]), ("joined", s["joined"])
    name += "".join(f" {mark}" for mark, here in marks if here)
    if r.error:
        return f"{name}: {r.error}"
    return (
        f"{name}: {r.gcells:.0f} GC/s pass {r.ms_per_pass:.3f} ms regs {r.registers} local {r.local_bytes} "
        f"warps {r.warps_per_multiprocessor} shared {r.shared_bytes} tiles {r.tiles} useful {r.useful} "
        f"bad {r.different}"
        + (f" edge {r.edge_tiles} tiles {r.edge_ms:.3f} ms" if r.edge_tiles else "")
        + (f" shell {r.shell_cells} cells {r.shell_ms:.3f} ms" if r.shell_cells else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--size", type=int, default=512, help="cells along each axis")
    parser.add_argument("--quick", action="store_true", help="a few variants only")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = Device()
    rates = copy_rate(device)
    print(f"{device.name}, copy {rates['memcpy']:.0f} GB/s, by a kernel {rates['kernel']:.0f}")
    results: list[Result] = []
    with ThreadPoolExecutor(8) as pool:
        for case in options.cases.split(","):
            try:
                results += run_case(device, case, options.size, options.quick, pool)
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

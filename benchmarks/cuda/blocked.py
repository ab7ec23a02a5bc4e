"""Measure the time-blocked 2D kernels on one GPU: shapes side by side, each checked to the bit against plain sweeps.

    python benchmarks/cuda/blocked.py [--cases jacobi,norm,yee,radar] [--quick] [--out blocked.json]

Needs a GPU, NumPy, cuda-core and cuda-bindings. A variant that fails is reported and the rest goes on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from gpu import Device, Module, check, copy_rate, start
from problems import jacobi_problem, radar_problem, sweep_jacobi, sweep_yee, yee_problem

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.norm import NORM_COLUMNS, NORM_ROWS, NORMS
from peergrid.codegen.cuda.pass_kernel import Launch, PassKernel, Program
from peergrid.codegen.cuda.stream_parts import Shape
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.stencil import Problem

PAD = 32
SCALES = {"ca": (0.1, 0.9), "cb": (0.5, 0.0)}  # the others: noise around zero


class Memory:
    """The fields of a problem on the device, two slots for the state, columns at multiples of 32 floats."""

    def __init__(self, device: Device, problem: Problem) -> None:
        self.device, self.problem = device, problem
        self.pitch, self.bases = {}, {}
        for seed, (name, described) in enumerate(problem.fields.items()):
            if not described.full:
                self.bases[name] = (device.upload(described.global_array()),)
                continue
            box = described.box
            self.pitch[name] = -(-(box.hi[1] - box.lo[1] // PAD * PAD) // PAD) * PAD
            size = self.pitch[name] * box.shape[0] * 4
            slots = 2 if name in problem.state else 1
            self.bases[name] = tuple(device.allocate(size) for _ in range(slots))
            for base in self.bases[name]:
                self.device.noise(base, size // 4, seed, *SCALES.get(name, (1.0, -0.5)))
        self.signals = {name: (device.upload(s.samples), len(s.samples)) for name, s in problem.signals.items()}
        self.total_steps = 4096
        self.traces = device.upload(np.full((max(1, len(problem.receivers)), self.total_steps), np.nan, np.float32))
        device.sync()

    def origin(self, name: str, slot: int) -> int:
        box = self.problem.fields[name].box
        if name not in self.pitch:
            return self.bases[name][0]
        return self.bases[name][slot] - (box.lo[0] * self.pitch[name] + box.lo[1] // PAD * PAD) * 4

    def arguments(self, launch: Launch, source: int, step: int = 0) -> np.ndarray:
        table = Arguments(self.problem)
        given = np.zeros((), table.dtype)
        for number, name in enumerate(table.fields):
            row = given["fields"][number]
            slots = len(self.bases[name])
            row["slot"][:slots] = [self.origin(name, slot) for slot in range(slots)]
            row["pitch"][0] = self.pitch.get(name, 0)
        for number, name in enumerate(table.signals):
            given["signals"][number] = self.signals[name]
        given["params"][: len(table.params)] = list(self.problem.params.values())
        given["traces"], given["total_steps"], given["step"] = self.traces, self.total_steps, step
        given["source"], given["target"] = source, 1 - source
        given["lo"][:2], given["hi"][:2] = (0, 0), self.problem.grid.shape
        given["regions"], given["receivers"] = self.device.upload(launch.regions), self.device.upload(launch.receivers)
        given["count"] = len(launch.regions)
        return given


@dataclass
class Result:
    """One variant, as it goes into the JSON."""

    case: str
    shape: dict[str, Any]
    gcells: float = 0.0
    ms_per_pass: float = 0.0
    plain_ms: float = 0.0
    edge_ms: float = 0.0
    layer_ms: float = 0.0
    registers: int = 0
    edge_registers: int = 0
    layer_registers: int = 0
    local_bytes: int = 0
    warps_per_multiprocessor: int = 0
    shared_bytes: int = 0
    tiles: tuple[int, ...] = ()
    compile_seconds: float = 0.0
    fraction_of_copy: float = 0.0
    different: int = -1
    norms_different: int = -1
    error: str = ""


@dataclass(frozen=True)
class Built:
    """The machine code of a pass."""

    kernel: PassKernel
    plain: bytes
    edge: bytes
    layer: bytes | None
    sums: bytes | None
    seconds: float


def build(kernel: PassKernel, arch: str) -> Built:
    began = time.perf_counter()
    plain, edge = (compile_cubin(program.source, arch) for program in (kernel.plain, kernel.edge))
    sums = compile_cubin(kernel.sums.source, arch) if kernel.norm else None
    layer = compile_cubin(kernel.layer.source, arch) if kernel.layer else None
    return Built(kernel, plain, edge, layer, sums, time.perf_counter() - began)


class Bench:
    """One problem: its memory, its plain sweeps, and the variants measured on it."""

    def __init__(self, device: Device, case: str, problem: Problem, bytes_per_cell: int, copy_rate: float) -> None:
        self.device, self.case, self.problem = device, case, problem
        self.memory = Memory(device, problem)
        self.limit = copy_rate / bytes_per_cell
        self.n = problem.grid.shape[0]
        self.expected: dict[int, dict[str, int]] = {}
        self.norms: np.ndarray | None = None
        self.keep = len(device.buffers)

    def reference(self, steps: list[int], sweep: Callable[[Memory, dict[str, int], dict[str, int]], None]) -> None:
        """The state after each of the numbers of steps, by plain sweeps from slot 0."""
        sizes = {
            name: self.memory.pitch[name] * self.problem.fields[name].box.shape[0] * 4 for name in self.problem.state
        }
        one = {name: self.device.allocate(size) for name, size in sizes.items()}
        two = {name: self.device.allocate(size) for name, size in sizes.items()}
        for name, size in sizes.items():
            check(driver.cuMemcpyDtoD(one[name], self.memory.bases[name][0], size))
        for done in range(max(steps)):
            sweep(self.memory, one, two)
            one, two = two, one
            if done + 1 in steps:
                self.expected[done + 1] = {name: self.device.allocate(size) for name, size in sizes.items()}
                for name, size in sizes.items():
                    check(driver.cuMemcpyDtoDAsync(self.expected[done + 1][name], one[name], size, self.device.main))
        self.device.sync()
        self.keep = len(self.device.buffers)

    def measure(self, built: Built) -> Result:
        kernel, device = built.kernel, self.device
        result = Result(self.case, asdict(kernel.shape), compile_seconds=round(built.seconds, 2))
        plain, edge = Module(built.plain), Module(built.edge)
        functions = {
            kernel.plain: plain.function(kernel.plain.entry, kernel.plain.shared_bytes),
            kernel.edge: edge.function(kernel.edge.entry, kernel.edge.shared_bytes),
        }
        modules = [plain, edge]
        if kernel.layer is not None:
            modules.append(Module(built.layer or b""))
            functions[kernel.layer] = modules[-1].function(kernel.layer.entry, kernel.layer.shared_bytes)
        kind = driver.CUfunction_attribute
        of = driver.cuFuncGetAttribute
        result.registers = check(of(kind.CU_FUNC_ATTRIBUTE_NUM_REGS, functions[kernel.plain]))
        result.edge_registers = check(of(kind.CU_FUNC_ATTRIBUTE_NUM_REGS, functions[kernel.edge]))
        if kernel.layer is not None:
            result.layer_registers = check(of(kind.CU_FUNC_ATTRIBUTE_NUM_REGS, functions[kernel.layer]))
        result.local_bytes = check(of(kind.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, functions[kernel.plain]))
        result.shared_bytes = kernel.plain.shared_bytes
        blocks = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            functions[kernel.plain], kernel.plain.threads, kernel.plain.shared_bytes))  # fmt: skip
        result.warps_per_multiprocessor = blocks * kernel.shape.warps
        slots = device.multiprocessors * max(1, blocks) * kernel.shape.warps
        launches = kernel.launches(self.problem.grid.box, slots, range(len(self.problem.receivers)))
        result.tiles = tuple(len(launch.regions) for launch in launches)
        given = {(k, s): self.memory.arguments(launch, s) for k, launch in enumerate(launches) for s in (0, 1)}

        bands, across = -(-self.n // NORM_ROWS), -(-self.n // NORM_COLUMNS)
        steps = kernel.shape.steps
        norms, more = np.zeros((), NORMS), []
        if kernel.norm:
            norms["partial"] = device.allocate(steps * bands * across * 4)
            norms["rows"] = device.allocate(steps * bands * 8)
            norms["pitch"], norms["plane"], norms["row_plane"] = across, bands * across, bands
            more = [norms]
            summing = Module(built.sums or b"")
            adding = summing.function(kernel.sums.entry)

        def begin(k: int, source: int, stream: Any) -> None:
            program = launches[k].program
            start(functions[program], (launches[k].blocks, 1), (program.threads, 1), program.shared_bytes, stream,
                  given[k, source], *more)  # fmt: skip

        def run(which: list[int], source: int) -> None:
            device.beside([partial(begin, k, source) for k in which])
            if kernel.norm and len(which) > 1:
                start(adding, (bands, steps), (256, 1), kernel.sums.shared_bytes, device.main, given[0, source], norms)

        every = list(range(len(launches)))
        for name in self.problem.state:
            size = self.memory.pitch[name] * self.problem.fields[name].box.shape[0] * 4
            check(driver.cuMemsetD8(self.memory.bases[name][1], 0xFF, size))
        run(every, 0)
        device.sync()
        if kernel.shape.steps in self.expected:
            result.different = self.differences(kernel.shape.steps)
        if kernel.norm:
            found = np.zeros((steps, bands))
            check(driver.cuMemcpyDtoH(found.ctypes.data, int(norms["rows"]), found.nbytes))
            self.norms = found if self.norms is None else self.norms
            both = min(steps, len(self.norms))
            result.norms_different = int((found[:both] != self.norms[:both]).sum())
        passes = 16

        def several(which: list[int]) -> Callable[[], None]:
            return lambda: [run(which, 0) for _ in range(passes)] and None

        several(every)()
        result.ms_per_pass = device.timed(several(every)) / passes
        for k in every:
            alone = device.timed(several([k]), 3) / passes
            if launches[k].program is kernel.plain:
                result.plain_ms = alone
            elif launches[k].program is kernel.layer:
                result.layer_ms = alone
            else:
                result.edge_ms = alone
        cells = float(np.prod(self.problem.grid.shape))
        result.gcells = cells * kernel.shape.steps / result.ms_per_pass / 1e6
        result.fraction_of_copy = result.gcells / self.limit
        for pointer in device.buffers[self.keep :]:
            check(driver.cuMemFree(pointer))
        del device.buffers[self.keep :]
        for module in modules:
            check(driver.cuModuleUnload(module.handle))
        return result

    def differences(self, steps: int) -> int:
        """How many values of slot 1 differ in a bit from the plain sweeps."""
        device, count = self.device, self.device.upload(np.zeros(1, np.uint64))
        c = ctypes
        for name in self.problem.state:
            rows, columns = self.problem.fields[name].box.shape
            skip = self.problem.fields[name].box.lo[1] % PAD * 4
            start(device.helpers.function("differ"), (2048, 1), (256, 1), 0, device.main,
                  c.c_void_p(self.memory.bases[name][1] + skip), c.c_void_p(self.expected[steps][name] + skip),
                  c.c_int(rows), c.c_int(columns),
                  c.c_longlong(self.memory.pitch[name]), c.c_void_p(count))  # fmt: skip
        found = np.zeros(1, np.uint64)
        device.sync()
        check(driver.cuMemcpyDtoH(found.ctypes.data, count, 8))
        return int(found[0])


class OneStep:
    """Plain sweeps by the edge kernel alone, one step at a time, for problems without a hand-written kernel."""

    def __init__(self, bench: Bench) -> None:
        kernel = PassKernel(bench.problem, Shape(1), 128)
        self.program: Program = kernel.edge
        self.function = Module(compile_cubin(self.program.source, bench.device.arch)).function(
            self.program.entry, self.program.shared_bytes
        )
        from peergrid.codegen.cuda.tiles import _edges

        boxes = list(_edges([bench.problem.grid.box], kernel.cut))
        from peergrid.codegen.cuda.arguments import RECEIVER, REGION

        regions = np.zeros(len(boxes), REGION)
        regions["lo"][:, :2] = [b.lo for b in boxes]
        regions["hi"][:, :2] = [b.hi for b in boxes]
        self.launch = Launch(self.program, regions, np.zeros(0, RECEIVER))
        self.step = 0

    def __call__(self, memory: Memory, one: dict[str, int], two: dict[str, int]) -> None:
        given = memory.arguments(self.launch, 0, self.step)
        for number, name in enumerate(memory.problem.fields):
            if name in memory.problem.state:
                for slot, base in enumerate((one[name], two[name])):
                    shift = memory.bases[name][0] - memory.origin(name, 0)
                    given["fields"][number]["slot"][slot] = base - shift
        start(self.function, (self.launch.blocks, 1), (self.program.threads, 1), self.program.shared_bytes,
              memory.device.main, given)  # fmt: skip
        self.step += 1


def shapes(case: str, quick: bool) -> Iterator[Shape]:
    """The variants of a case, the likely best first."""
    if case == "norm":
        yield from (Shape(8, 4), Shape(8, 4, rotate=False), Shape(6, 4), Shape(4, 8))
        if not quick:
            yield from (Shape(8, 4, warps=2), Shape(8, 4, ahead=2), Shape(12, 4), Shape(4, 4), Shape(8, 8))
    elif case == "jacobi":
        yield from (Shape(8, 4), Shape(8, 4, rotate=False), Shape(8, 4, skew=1), Shape(12, 4), Shape(6, 4))
        if quick:
            return
        yield from (Shape(8, 4, ahead=a) for a in (1, 2, 6))
        yield from (Shape(8, 4, warps=w) for w in (1, 2, 8))
        yield from (Shape(8, 4, blocks=b) for b in (5, 6))
        yield from (Shape(8, 4, rotate=False, blocks=b) for b in (5, 6))
        yield from (Shape(4, 4), Shape(4, 8), Shape(6, 8), Shape(8, 8), Shape(4, 2), Shape(8, 2), Shape(12, 2))
        yield from (Shape(16, 4, rotate=False), Shape(10, 4), Shape(6, 4, blocks=5), Shape(12, 4, rotate=False))
    else:
        yield from (Shape(4, 4), Shape(8, 4, ahead=2), Shape(6, 4, ahead=2), Shape(4, 4, rotate=False))
        if quick:
            return
        yield from (Shape(4, 4, ahead=2), Shape(8, 2, ahead=2), Shape(6, 4, ahead=2, warps=2), Shape(8, 4, ahead=1))
        if case == "yee":
            yield from (
                Shape(12, 4, ahead=1),
                Shape(12, 2, ahead=2),
                Shape(4, 4, warps=2),
                Shape(6, 4, ahead=2, blocks=4),
            )
            yield from (Shape(4, 4, ahead=2, blocks=5), Shape(8, 4, ahead=2, rotate=False), Shape(4, 4, skew=1))


CASES: dict[str, tuple[Callable[[tuple[int, int]], Problem], int, int]] = {
    "jacobi": (jacobi_problem, 17408, 8),
    "norm": (jacobi_problem, 17408, 8),
    "yee": (yee_problem, 8192, 32),
    "radar": (radar_problem, 8192, 32),
}


def run_case(
    device: Device, case: str, size: int | None, quick: bool, copy: float, pool: ThreadPoolExecutor
) -> list[Result]:
    make, n, cell_bytes = CASES[case]
    problem = make((size or n, size or n))
    wanted = list(shapes(case, quick))
    waiting: list[tuple[Shape, Future[Built]]] = [
        (shape, pool.submit(build, PassKernel(problem, shape, norm="u" if case == "norm" else None), device.arch))
        for shape in wanted
    ]
    bench = Bench(device, case, problem, cell_bytes, copy)
    sweep = {"jacobi": sweep_jacobi, "norm": sweep_jacobi, "yee": sweep_yee}.get(case) or OneStep(bench)
    bench.reference(sorted({shape.steps for shape in wanted}), sweep)
    results = []
    for shape, future in waiting:
        try:
            results.append(bench.measure(future.result()))
        except Exception as error:  # each variant stands alone
            results.append(Result(case, asdict(shape), error=f"{type(error).__name__}: {error}"[:400]))
        print(line(results[-1]), flush=True)
    device.release()
    return results


def line(r: Result) -> str:
    s = r.shape
    name = f"{r.case} T={s['steps']} VX={s['columns']} ahead={s['ahead']} warps={s['warps']} skew={s['skew']}"
    name += f" blocks={s['blocks']}{'' if s['rotate'] else ' moved'}"
    if r.error:
        return f"{name}: {r.error}"
    return (
        f"{name}: {r.gcells:.0f} GC/s x{r.fraction_of_copy:.2f} pass {r.ms_per_pass:.3f} (plain {r.plain_ms:.3f} edge "
        f"{r.edge_ms:.3f} layer {r.layer_ms:.3f}) ms regs {r.registers}/{r.edge_registers}/{r.layer_registers} "
        f"local {r.local_bytes} "
        f"warps {r.warps_per_multiprocessor} tiles {r.tiles} bad {r.different}"
        + (f" norms bad {r.norms_different}" if r.case == "norm" else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="jacobi,norm,yee,radar")
    parser.add_argument("--size", type=int, help="cells along each axis instead of the usual ones")
    parser.add_argument("--quick", action="store_true", help="a few variants only")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = Device()
    rates = copy_rate(device)
    print(
        f"{device.name}, {device.multiprocessors} multiprocessors, copy {rates['memcpy']:.0f} GB/s, "
        f"by a kernel {rates['kernel']:.0f}"
    )
    results: list[Result] = []
    with ThreadPoolExecutor(8) as pool:
        for case in options.cases.split(","):
            try:
                results += run_case(device, case, options.size, options.quick, max(rates.values()), pool)
            except Exception as error:  # each case stands alone
                results.append(Result(case, {}, error=f"{type(error).__name__}: {error}"[:400]))
                print(f"{case}: {results[-1].error}", flush=True)
                device.release()
            if options.out:
                report = {"device": device.name, "copy_gb_per_s": rates, "results": [asdict(r) for r in results]}
                options.out.write_text(json.dumps(report, indent=1))
    print("--- best of each case")
    for case in dict.fromkeys(r.case for r in results):
        good = [r for r in results if r.case == case and not r.error and r.different <= 0]
        for r in sorted(good, key=lambda r: -r.gcells)[:3]:
            print(line(r))


if __name__ == "__main__":
    main()

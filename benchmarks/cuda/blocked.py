"""Measure the time-blocked 2D kernels on one GPU: shapes side by side, each checked to the bit against plain sweeps.

    python benchmarks/cuda/blocked.py [--cases jacobi,norm,yee,radar] [--quick] [--out blocked.json]

Needs a GPU, NumPy, cuda-core and cuda-bindings. A variant that fails is reported and the rest goes on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from gpu import Device, Module, check, copy_rate, start
from passes import Built, LoadedPass, build
from planes import PAD, Memory
from problems import jacobi_problem, radar_problem, sweep_jacobi, sweep_yee, yee_problem

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.blocked2d.tiles import boundary_tiles
from peergrid.codegen.cuda.common.arguments import RECEIVER, REGION
from peergrid.codegen.cuda.common.program import Launch, Program
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.stencil import Problem

PASSES = 16  # timed together


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


class Bench:
    """One problem: its memory, its plain sweeps, and the variants measured on it."""

    def __init__(self, device: Device, case: str, problem: Problem, bytes_per_cell: int, copy_rate: float) -> None:
        self.device, self.case, self.problem = device, case, problem
        self.memory = Memory(device, problem)
        self.limit = copy_rate / bytes_per_cell
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
        """Run a pass once and compare it with the plain sweeps; then take its time, whole and by launch."""
        made = LoadedPass(self.memory, built)
        result = Result(self.case, asdict(built.kernel.shape), compile_seconds=round(built.seconds, 2))
        result = replace(result, tiles=tuple(len(launch.regions) for launch in made.launches), **made.resources)
        self._compare(made, result)
        self._time(made, result)
        for pointer in self.device.buffers[self.keep :]:
            check(driver.cuMemFree(pointer))
        del self.device.buffers[self.keep :]
        made.unload()
        return result

    def _compare(self, made: LoadedPass, result: Result) -> None:
        """One pass into a slot that holds no numbers; which bits differ from the plain sweeps, and from other norms."""
        for name in self.problem.state:
            size = self.memory.pitch[name] * self.problem.fields[name].box.shape[0] * 4
            check(driver.cuMemsetD8(self.memory.bases[name][1], 0xFF, size))
        made.run(range(len(made.launches)), 0)
        self.device.sync()
        steps = made.kernel.shape.steps
        if steps in self.expected:
            result.different = self.differences(steps)
        if made.norms is not None:
            found = made.norms.rows()
            self.norms = found if self.norms is None else self.norms
            both = min(steps, len(self.norms))
            result.norms_different = int((found[:both] != self.norms[:both]).sum())

    def _time(self, made: LoadedPass, result: Result) -> None:
        def several(which: Sequence[int]) -> Callable[[], None]:
            def body() -> None:
                for _ in range(PASSES):
                    made.run(which, 0)

            return body

        every = range(len(made.launches))
        several(every)()
        result.ms_per_pass = self.device.timed(several(every)) / PASSES
        for k in every:
            alone = self.device.timed(several([k]), 3) / PASSES
            if made.launches[k].program is made.kernel.interior:
                result.plain_ms = alone
            elif made.launches[k].program is made.kernel.layer:
                result.layer_ms = alone
            else:
                result.edge_ms = alone
        result.gcells = self.problem.grid.box.size * made.kernel.shape.steps / result.ms_per_pass / 1e6
        result.fraction_of_copy = result.gcells / self.limit

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
        self.program: Program = kernel.boundary
        self.function = Module(compile_cubin(self.program.source, bench.device.arch)).function(
            self.program.entry, self.program.shared_bytes
        )
        boxes = list(boundary_tiles([bench.problem.grid.box], kernel.cut))
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
        yield from (Shape(8, 4), Shape(8, 4, rotate=False), Shape(12, 4), Shape(6, 4))
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
            yield from (Shape(4, 4, ahead=2, blocks=5), Shape(8, 4, ahead=2, rotate=False))


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
    name = f"{r.case} T={s['steps']} VX={s['columns']} ahead={s['ahead']} warps={s['warps']}"
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

"""Measure kernels that exchange halos themselves, on 1, 2, 4 and 8 GPUs, each checked to the bit on one.

    python benchmarks/cuda/linked.py [--only strong,weak] [--gpus 1,2,4] [--out linked.json]

Needs GPUs that reach each other's memory, NumPy, cuda-core and cuda-bindings. A case that fails is reported and the
rest goes on; a kernel that waits in vain stops after two seconds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver
from device_barrier import BARRIER, BARRIER_DTYPE
from gpu import Device, Module, check, copy_rate
from problems import jacobi_problem, sweep_jacobi, sweep_yee, yee_problem
from row import APART, Expected, PeerRun, PersistentRun, Row, seconds

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.norm import NORM_ROWS
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.stencil import Problem


@dataclass(frozen=True)
class Case:
    """What is measured; `extent` gives the rows and columns for a number of GPUs."""

    name: str
    extent: Callable[[int], tuple[int, int]]
    shape: Shape
    steps: int
    checked: int
    kind: str = "peer"
    problem: str = "jacobi"
    norm: bool = False
    edge_rows: int = 64
    least_rows: int = 32
    edge_ahead: int = 3
    plain: bool = True
    warps: int = 16

    def run(self, row: Row, problem: Problem, pool: ThreadPoolExecutor) -> PeerRun | PersistentRun:
        """What carries the case out; compiles it."""
        made = self.made(problem)
        if self.kind == "peer":
            return PeerRun(row, made, pool)
        return PersistentRun(row, PersistentKernel(made, self.plain, self.edge_rows, self.warps))

    def made(self, problem: Problem) -> PassKernel:
        norm = "u" if self.norm else None
        return PassKernel(
            problem,
            self.shape,
            norm=norm,
            boundary_rows=self.edge_rows,
            least_rows=self.least_rows,
            boundary_ahead=self.edge_ahead,
        )


PROBLEMS: dict[str, tuple[Callable[[tuple[int, int]], Problem], Callable[..., None], int]] = {
    "jacobi": (jacobi_problem, sweep_jacobi, 8),
    "yee": (yee_problem, sweep_yee, 32),
}
BIG = 17408


def cases() -> Iterator[Case]:
    """In the order of measuring."""
    fast = Shape(8, 4, ahead=6, warps=8)
    yield Case("strong", lambda n: (BIG, BIG), fast, 1000, 1000)
    for steps in (7, 6, 8):
        shape, done = Shape(steps, 4, ahead=6, warps=8), 1000 // steps * steps
        yield Case("strong norm", lambda n: (BIG, BIG), shape, done, done, norm=True, edge_rows=NORM_ROWS)
    yield Case("weak", lambda n: (BIG * n, BIG), fast, 1000, 24)
    yee = Shape(8, 4, ahead=2)
    yield Case("yee 8192", lambda n: (8192, 8192), yee, 1000, 24, problem="yee")
    yield Case("yee 16384", lambda n: (16384, 16384), yee, 1000, 24, problem="yee")
    yield Case("4096 peer", lambda n: (4096, 4096), fast, 4000, 200)
    for name, rows in (("4096", 4096), ("half 4096", 2048)):
        for shape, high, least, warps in (
            (Shape(8, 2), 16, 16, 8), (Shape(8, 2), 32, 16, 8), (Shape(8, 2), 16, 24, 8), (Shape(8, 2), 16, 16, 4),
            (Shape(6, 2), 16, 16, 8), (Shape(6, 2), 32, 12, 8), (Shape(10, 2), 16, 16, 8), (Shape(12, 2), 16, 16, 8),
            (Shape(8, 4), 16, 16, 8), (Shape(6, 4), 16, 16, 8), (Shape(4, 4), 16, 16, 8), (Shape(4, 2), 16, 12, 8),
        ):  # fmt: skip
            steps = 4000 // shape.steps * shape.steps
            yield Case(name, lambda n, rows=rows: (rows, 4096), shape, steps, 10 * shape.steps, "persistent",
                       edge_rows=high, least_rows=least, warps=warps)  # fmt: skip
    for steps, rows, warps in (
        (1, 10, 16), (1, 10, 32), (1, 6, 16), (4, 12, 16), (8, 12, 16), (8, 12, 32), (8, 6, 16), (8, 24, 16),
        (12, 16, 16), (12, 16, 32), (16, 16, 32), (16, 32, 32),
    ):  # fmt: skip
        whole = 4000 // steps * steps
        yield Case("256 each", lambda n: (256 * n, 256), Shape(steps, 2), whole, 10 * steps, "persistent",
                   edge_rows=rows, plain=False, warps=warps)  # fmt: skip


@dataclass
class Result:
    """One case on so many GPUs, as it goes into the JSON."""

    case: str
    gpus: int
    shape: dict[str, Any]
    rows: int = 0
    edge_ahead: int = 0
    warps: int = 0
    seconds: float = 0.0
    microseconds_per_step: float = 0.0
    gcells: float = 0.0
    efficiency: float = 0.0
    fraction_of_copy: float = 0.0
    different: int = -1
    norms_different: int = -1
    about: str = ""
    error: str = ""


class Bench:
    """The GPUs, what was expected last, and the figures of one GPU."""

    def __init__(self, devices: list[Device], copy: float, pool: ThreadPoolExecutor) -> None:
        self.devices, self.copy, self.pool = devices, copy, pool
        self.single: dict[tuple[Any, ...], float] = {}
        self.norms: dict[tuple[Any, ...], np.ndarray] = {}

    def measure(self, case: Case, gpus: int) -> Result:
        make, sweep, cell_bytes = PROBLEMS[case.problem]
        problem = make(case.extent(gpus))
        result = Result(case.name, gpus, asdict(case.shape), case.edge_rows, case.edge_ahead, case.warps)
        row = Row(self.devices[:gpus], problem, case.shape.steps, NORM_ROWS if case.norm else 1)
        try:
            run = case.run(row, problem, self.pool)
            result.about = run.description
            expected = Expected(self.devices[0], problem, case.checked, sweep)
            passes = case.checked // case.shape.steps
            row.reset()
            run.prepare(passes)
            seconds(row, run)
            result.different = row.different(expected, passes % 2)
            key = (case.name, case.shape, case.warps)
            if isinstance(run, PeerRun) and case.norm:
                found = run.rows(passes - 1)
                result.norms_different = int((self.norms.setdefault(key, found) != found).sum())
            run.prepare(case.steps // case.shape.steps)
            result.seconds = min(seconds(row, run) for _ in range(3))
            run.forget()
        finally:
            row.release()
        cells = problem.grid.box.size
        result.microseconds_per_step = result.seconds / case.steps * 1e6
        result.gcells = cells * case.steps / result.seconds / 1e9
        result.fraction_of_copy = result.gcells / gpus * cell_bytes / self.copy
        one = self.single.setdefault((*key, case.edge_rows, case.edge_ahead), result.gcells) if gpus == 1 else None
        one = one or self.single.get((*key, case.edge_rows, case.edge_ahead), 0.0)
        result.efficiency = result.gcells / gpus / one if one else 0.0
        return result


def barrier(devices: list[Device], rounds: int = 2000) -> Iterator[tuple[str, float]]:
    """Microseconds of a barrier of all blocks of all devices; and of neighbours only."""
    functions, arrived, flags = [], [], []
    for device in devices:
        device.use()
        functions.append(Module(compile_cubin(BARRIER, device.arch)).function("barrier"))
        arrived.append(device.upload(np.zeros(APART, np.int64)))
        flags.append(device.upload(np.zeros(16 * 16, np.int64)))
    for near in (0, 1):
        best = 1e9
        for _ in range(3):
            tables = []
            for number, device in enumerate(devices):
                device.use()
                check(driver.cuMemsetD8(arrived[number], 0, APART * 8))
                check(driver.cuMemsetD8(flags[number], 0, 16 * 16 * 8))
                given = np.zeros((), BARRIER_DTYPE)
                given["arrived"], given["mine"] = arrived[number], flags[number]
                given["theirs"][: len(devices)] = flags
                given["devices"], given["self"], given["rounds"] = len(devices), number, rounds
                given["neighbours"] = near
                tables.append(given)
                device.sync()
            began = time.perf_counter()
            for function, device, given in zip(functions, devices, tables, strict=True):
                device.use()
                place = np.array([given.ctypes.data], np.uint64)
                check(driver.cuLaunchCooperativeKernel(function, device.multiprocessors, 1, 1, 64, 1, 1, 0,
                                                       device.main, place.ctypes.data))  # fmt: skip
            for device in devices:
                device.sync()
            best = min(best, time.perf_counter() - began)
        yield ("neighbours" if near else "all"), best / rounds * 1e6
    for device in devices:
        device.use()
        device.release()


def line(r: Result) -> str:
    s = r.shape
    name = f"{r.case} x{r.gpus} T={s['steps']} VX={s['columns']} ahead={s['ahead']} "
    name += f"edge {r.rows}/{r.edge_ahead} warps {r.warps}"
    if r.error:
        return f"{name}: {r.error}"
    return (
        f"{name}: {r.seconds * 1e3:.2f} ms, {r.microseconds_per_step:.2f} us/step, {r.gcells:.0f} GC/s, "
        f"efficiency {r.efficiency:.3f}, x{r.fraction_of_copy:.2f} of copy, bad {r.different}"
        + (f", norms bad {r.norms_different}" if r.norms_different >= 0 else "")
        + f" ({r.about})"
    )


def connect(devices: list[Device]) -> None:
    """Let every GPU address the memory of every other."""
    for one, two in itertools.permutations(devices, 2):
        one.use()
        check(driver.cuCtxEnablePeerAccess(two.context, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="beginnings of the names of cases, and 'barrier'")
    parser.add_argument("--gpus", help="how many, e.g. 1,2,4; usually all powers of two there are")
    parser.add_argument("--seconds", type=float, default=140, help="start no case after that")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    began = time.perf_counter()
    check(driver.cuInit(0))
    present = check(driver.cuDeviceGetCount())
    counts = [int(n) for n in options.gpus.split(",")] if options.gpus else [n for n in (1, 2, 4, 8) if n <= present]
    devices = [Device(number) for number in range(max(counts))]
    connect(devices)
    devices[0].use()
    rates = copy_rate(devices[0])
    print(f"{present} x {devices[0].name}, copy {max(rates.values()):.0f} GB/s", flush=True)
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    results: list[Result] = []
    barriers: dict[str, float] = {}
    for gpus in counts if "barrier".startswith(wanted) else []:
        for who, microseconds in barrier(devices[:gpus]):
            barriers[f"{gpus} {who}"] = microseconds
            print(f"barrier x{gpus} {who}: {microseconds:.2f} us", flush=True)
    with ThreadPoolExecutor(8) as pool:
        bench = Bench(devices, max(rates.values()), pool)
        for case in cases():
            for gpus in counts if case.name.startswith(wanted) else []:
                if time.perf_counter() - began > options.seconds:
                    print(f"{case.name} x{gpus}: no time left", flush=True)
                    continue
                try:
                    results.append(bench.measure(case, gpus))
                except Exception as error:  # each case stands alone
                    text = f"{type(error).__name__}: {error}"[:400]
                    results.append(
                        Result(
                            case.name, gpus, asdict(case.shape), case.edge_rows, case.edge_ahead, case.warps, error=text
                        )
                    )
                print(line(results[-1]), flush=True)
            if options.out:
                report = {"device": devices[0].name, "copy_gb_per_s": rates, "barrier_us": barriers}
                options.out.write_text(json.dumps(report | {"results": [asdict(r) for r in results]}, indent=1))
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

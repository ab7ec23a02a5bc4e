"""Two GPUs as two ranks beside the same GPUs in one process: microseconds of a step, and the bits.

    mpiexec -n 2 python benchmarks/cuda/ranks.py --ranks --out ranks.json
    python benchmarks/cuda/ranks.py --out alone.json
    python benchmarks/cuda/ranks.py --compare ranks.json alone.json
    mpiexec -n 2 python benchmarks/cuda/ranks.py --bare --out bare.json    # NCCL's calls, alone and behind a kernel

Samples rest for three times their length, as those of `peergrid bench` do.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
from record import about

from peergrid import Grid, Options, Problem, Simulation
from peergrid.bench.problems import jacobi, noise, relax
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.grid import Box
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.ranks.nccl import Nccl
from peergrid.runtime.ranks.ranks import Ranks

SAMPLES, SECONDS, REST = 5, 0.1, 3.0
ROWS = 64  # on both sides of the cut, whose bits are compared

SIZES = {"17408": 17408, "4096": 4096}
ROW_BYTES = {"4KiB": 4 << 10, "64KiB": 64 << 10, "1MiB": 1 << 20}
RING_ROWS = {"": 64, "-half": 32, "-thin": 8, "-thin-half": 4}
RINGS = {f"{name}{part}": (rows, count) for part, rows in RING_ROWS.items() for name, count in ROW_BYTES.items()}
"""Rows, and bytes of each, of small grids in a ring. Halves: what each of two GPUs has of them. Thin: few rows, so that
a step is little more than its exchange."""
WAYS = [
    (size, strategy, depth)
    for strategies, depth in (
        (("persistent", "overlap", "peer"), 8),
        (("graph", "async"), 8),
        (("async", "overlap", "peer", "graph"), 1),
    )
    for strategy in strategies
    for size in SIZES
] + [(size, strategy, 1) for size in RINGS for strategy in ("async", "graph")]
BARE = 200  # exchanges of a sample


def problem(size: str) -> Problem:
    """Jacobi's step: on a square, or on few rows of which each has so many bytes, in a ring."""
    if size in SIZES:
        return jacobi(SIZES[size], SIZES[size])
    rows, count = RINGS[size]
    shape = (rows, count // 4)
    grid = Grid(shape, ("periodic", "fixed"))
    return Problem.of(relax(grid.field("u", noise(shape, 1))))


def measured(size: str, strategy: str, depth: int, comm: Any, devices: str, route: Any) -> dict[str, Any]:
    """One case: microseconds of a step, sample by sample."""
    began, total = time.perf_counter(), 1 << 22
    options = Options(strategy, depth, route=route)
    with Simulation(problem(size), total, devices=devices, options=options, comm=comm) as simulation:
        simulation.run(64)
        name = next(iter(simulation.problem.state))
        rows, columns = simulation.problem.grid.shape
        near = min(ROWS, rows // 2)
        strip = simulation.gather(name, Box((rows // 2 - near, 1), (rows // 2 + near, columns - 1)))
        bits = hashlib.sha256(strip.tobytes()).hexdigest()[:16]
        setup = time.perf_counter() - began
        before = simulation.seconds
        simulation.run(128)
        step = (simulation.seconds - before) / 128
        if comm is not None:
            step = max(comm.allgather(step))
        count, samples = max(64, int(SECONDS / step) // 64 * 64), []
        for _ in range(SAMPLES):
            time.sleep(REST * SECONDS)
            before = simulation.seconds
            simulation.run(count)
            samples.append((simulation.seconds - before) / count * 1e6)
        notes = list(simulation.notes)
    slowest = samples if comm is None else list(map(max, zip(*comm.allgather(samples), strict=True)))
    return {
        "case": f"{size} {strategy} {depth}",
        "microseconds": median(slowest),
        "samples": slowest,
        "steps": count,
        "bits": bits,
        "setup_seconds": round(setup, 2),
        "notes": notes,
    }


def bare_nccl(comm: Any, size: int, rows: int = 0) -> dict[str, Any]:
    """Microseconds of what a ring of two ranks exchanges: groups of two messages each way, back to back.

    rows: of so many bytes that a kernel copies before each group, as a step writes all rows of a GPU; 0: no kernel.
    """
    driver, ranks = CudaDriver(), Ranks(comm, (0, 1), carrier="nccl")
    context = driver.retain(comm.rank)
    driver.make_current(context)
    calls, buffers, stream = Nccl(ranks), [driver.allocate(size) for _ in range(4)], driver.create_stream(0)
    start, end, send, receive = (calls.entry(f"nccl{name}") for name in ("GroupStart", "GroupEnd", "Send", "Recv"))
    bracket = ctypes.CFUNCTYPE(ctypes.c_int)
    move = ctypes.CFUNCTYPE(
        ctypes.c_int, *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    )
    begin, finish, samples = bracket(start), bracket(end), []
    step = copying(driver, comm.rank, rows * size, stream) if rows else None
    moves = [(move(send if place < 2 else receive), address) for place, address in enumerate(buffers)]
    for _ in range(SAMPLES + 2):
        ranks.gathered()
        started = time.perf_counter()
        for _ in range(BARE):
            if step is not None:
                step()
            begin()
            for function, address in moves:
                function(address, size, 0, 1 - comm.rank, calls.address, stream)
            finish()
        driver.synchronize()
        samples.append((time.perf_counter() - started) / BARE * 1e6)
    calls.close()
    name = f"bare NCCL {size}" + (f" behind a kernel that copies {rows} rows" if rows else "")
    return {"case": name, "microseconds": median(samples[2:]), "samples": samples[2:]}


COPY = """
struct Copied { const uint4* from; uint4* to; long long vectors; };
extern "C" __global__ void __launch_bounds__(256) copy(const __grid_constant__ Copied c) {
  const long long at = (long long)blockIdx.x * 256 + threadIdx.x;
  if (at < c.vectors) c.to[at] = c.from[at];
}
"""


def copying(driver: CudaDriver, ordinal: int, count: int, stream: int) -> Callable[[], object]:
    """A call that launches a kernel which copies so many bytes of GPU memory, a vector of 16 a thread."""
    code = compile_cubin(COPY, driver.architecture(ordinal))
    kernel, vectors = driver.function(driver.load(code), "copy"), count // 16
    values = np.array([driver.allocate(count), driver.allocate(count), vectors], np.int64)
    pointers = np.array([values.ctypes.data], np.uint64)
    launch = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    )(driver.entry("cuLaunchKernel"))
    given = (kernel, -(-vectors // 256), 1, 1, 256, 1, 1, 0, stream, pointers.ctypes.data, None)
    kept = values, pointers  # the call reads them
    return lambda: kept and launch(*given)


def compare(paths: list[str]) -> None:
    """A line for each case that both records have."""
    first, second = ({c["case"]: c for c in json.loads(Path(path).read_text())["cases"]} for path in paths)
    for name in (name for name in first if name in second):
        one, two = first[name], second[name]
        share = two["microseconds"] / one["microseconds"]
        same = "same bits" if one["bits"] == two["bits"] else "OTHER BITS"
        print(f"{name:24} {one['microseconds']:9.2f} {two['microseconds']:9.2f} us {share:7.1%} {same}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", action="store_true")
    parser.add_argument("--devices", default="cuda")
    parser.add_argument("--route")
    parser.add_argument("--only", default="", help="words of the cases, and others after commas: '17408 8,4KiB'")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so many")
    parser.add_argument("--out", type=Path, default=Path("ranks.json"))
    parser.add_argument("--compare", nargs=2, metavar="RECORD")
    given = parser.parse_args()
    if given.compare:
        compare(given.compare)
        return
    comm = None
    if given.ranks or given.bare:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    leads, began, cases = comm is None or comm.rank == 0, time.monotonic(), []
    wanted = [one.split() for one in given.only.split(",")]
    if given.bare:
        cases = [bare_nccl(comm, size, rows) for size in ROW_BYTES.values() for rows in (0, RING_ROWS["-thin-half"])]
        if leads:
            print(*({key: case[key] for key in ("case", "microseconds")} for case in cases), sep="\n", flush=True)
            given.out.write_text(json.dumps({**about(("nccl4py",)), "cases": cases}, indent=1))
        return
    for size, strategy, depth in WAYS:
        words = f"{size} {strategy} {depth}".split()
        if not any(all(word in words for word in one) for one in wanted):
            continue
        late = time.monotonic() - began > given.seconds
        if any(comm.allgather(late)) if comm is not None else late:
            break
        cases.append(measured(size, strategy, depth, comm, given.devices, given.route))
        if leads:
            print({key: cases[-1][key] for key in cases[-1] if key != "samples"}, flush=True)
            facts = {"ranks": 1 if comm is None else comm.size, "route": given.route, "cases": cases}
            given.out.write_text(json.dumps({**about(), **facts}, indent=1))


if __name__ == "__main__":
    main()

"""From how many cells on a step of a 3D box is faster by kernels that stream: rates of many problems on one GPU.

    python benchmarks/cuda/streamed_from.py [--only KIND,...] [--shapes 192,256,32x512x512] [--ways streaming,one_step]
        [--seconds 120] [--out streamed_from.json]

Float32 where the name says no other, from noise, steps back to back through `Simulation`, the best of four samples.
First all kernels are compiled, in processes at once; then each problem is timed on each box: by kernels that stream, by
kernels of one step, or by those that peergrid chooses. `bytes`: the fewest that a step of a pass for all stages moves
for each cell.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from kinds3d import KINDS  # noqa: E402
from record import about  # noqa: E402

from peergrid import Options, Problem, Simulation  # noqa: E402
from peergrid.codegen.cuda.gpu_model import GpuModel  # noqa: E402
from peergrid.grid import Array, Box, Field, Index  # noqa: E402
from peergrid.runtime.cuda.device.driver import CudaDriver  # noqa: E402
from peergrid.stencil.cost import minimal_bytes  # noqa: E402
from peergrid.stencil.lagged import lagged_fields  # noqa: E402

SHAPES = "128,192,256,320,32x512x512,64x512x512"
WARM, SAMPLE, SAMPLES = 0.3, 0.05, 4  # seconds: clocks are low after a GPU was idle
RATES = {"streaming": 1e-9, "one_step": 1e9}  # of kernels of one step over those that stream, whatever they are
NOISE = np.random.default_rng(0).random(1 << 24, np.float32)


def started(problem: Problem, way: str) -> Simulation:
    """A run whose boxes are streamed, or not, whatever their size, or where peergrid chooses so."""
    usual = CudaDriver.model

    def model(driver: CudaDriver, ordinal: int) -> GpuModel:
        found = usual(driver, ordinal)
        return replace(found, one_step_rates=(RATES[way],) * 2) if way in RATES else found

    with patch.object(CudaDriver, "model", model):
        return Simulation(problem, 10**6, devices="cuda:0", options=Options("overlap", 1, 1))


def rough(problem: Problem) -> Problem:
    """The problem with noise around 1 in the fields that change or are 0, from a table: the quickest to make."""
    lagged, numbers = lagged_fields(problem), {name: k for k, name in enumerate(problem.fields)}
    fields = {
        name: replace(field, made_by=_drawn(field, numbers[lagged.get(name, name)]))
        if name in problem.state or (field.full and field.made_by is None and not np.any(field.init))
        else field
        for name, field in problem.fields.items()
    }
    return replace(problem, fields=MappingProxyType(fields))


def _drawn(field: Field, seed: int) -> Callable[[Box], Array]:
    table = (1 + 0.1 * NOISE).astype(field.grid.dtype)
    rows, columns = field.box.shape[1:]

    def values(box: Box) -> Array:
        found = np.empty(box.shape, field.grid.dtype)
        within = tuple(slice(lo - home, hi - home) for lo, hi, home in zip(box.lo, box.hi, field.box.lo, strict=True))
        for place, z in enumerate(range(box.lo[0], box.hi[0])):
            first = (seed * 1234577 + z * 7919) % (1 << 23)
            found[place] = table[first : first + rows * columns].reshape(rows, columns)[within[1:]]
        return found

    return values


def row(kind: str, shape: Index, way: str) -> dict[str, Any]:
    """The rate of a problem on a box."""
    problem = rough(KINDS[kind](shape))
    with started(problem, way) as run:
        steps, began = 4, time.perf_counter()
        while (took := timed(run, steps)) < SAMPLE or time.perf_counter() - began < WARM:
            steps = max(steps, int(steps * min(10.0, 1.1 * SAMPLE / took)) + 1)
        cells, seconds = prod(shape), min(timed(run, steps) for _ in range(SAMPLES)) / steps
    moved = minimal_bytes(problem) / cells
    found = {"problem": kind, "shape": shape, "way": way, "gcells_per_s": cells / seconds / 1e9, "bytes": moved}
    return {**found, "tb_per_s": cells * moved / seconds / 1e12}


def timed(run: Simulation, steps: int) -> float:
    began = time.perf_counter()
    run.run(steps)
    return time.perf_counter() - began


def compiled(kind: str, shape: Index, way: str) -> None:
    """Leave the machine code of a run in the cache."""
    with started(rough(KINDS[kind](shape)), way) as run:
        run.run(1)


def _shape(text: str) -> Index:
    sizes = tuple(map(int, text.split("x")))
    return sizes * 3 if len(sizes) == 1 else sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--ways", default="streaming,one_step", help="of streaming, one_step, chosen")
    parser.add_argument("--seconds", type=float, default=120.0, help="nothing is begun after so many")
    parser.add_argument("--out", type=Path, default=Path("streamed_from.json"))
    given = parser.parse_args()
    began, shapes, kinds = time.monotonic(), [_shape(text) for text in given.shapes.split(",")], given.only.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"--only {unknown[0]} is none of the kinds: {', '.join(KINDS)}.")
    jobs = [(kind, shape, way) for kind in kinds for shape in shapes for way in given.ways.split(",")]
    workers = min(12, len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(compiled, *job) for job in jobs]:
            done.exception()
    print(f"{time.monotonic() - began:.0f} s: compiled", flush=True)
    rows: list[dict[str, Any]] = []
    for job in jobs:
        if time.monotonic() - began > given.seconds:
            break
        rows.append(row(*job))
        print(f"{time.monotonic() - began:.0f} s", rows[-1], flush=True)
        given.out.write_text(json.dumps({"about": about(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

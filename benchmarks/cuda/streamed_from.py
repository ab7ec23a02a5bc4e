"""From how many cells on a step of a 3D box is faster by kernels that stream: rates of both, cubes and slabs, one GPU.

    python benchmarks/cuda/streamed_from.py [--only WORD,...] [--seconds 120] [--out streamed_from.json]

Float32, from noise, steps back to back through `Simulation`, the best of three samples. First all kernels are compiled,
in processes at once; then each pair is timed, streaming and not, one after the other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from problems3d import (  # noqa: E402
    acoustic_prev,
    along_axis,
    box27,
    electric_uniform,
    heat,
    magnetic,
    tti_from_stored,
)
from record import about  # noqa: E402

from peergrid import Grid, Options, Problem, Simulation  # noqa: E402
from peergrid.bench.problems import noisy  # noqa: E402
from peergrid.codegen.cuda.gpu_model import GpuModel  # noqa: E402
from peergrid.grid import Index  # noqa: E402
from peergrid.runtime.cuda.device.driver import CudaDriver  # noqa: E402

SHAPES: tuple[Index, ...] = (
    (128, 128, 128), (192, 192, 192), (256, 256, 256), (320, 320, 320), (16, 512, 512), (32, 512, 512), (64, 512, 512),
    (96, 512, 512),
)  # fmt: skip
SAMPLE, SAMPLES = 0.05, 3  # seconds


def _heat(grid: Grid) -> Problem:
    return Problem.of(heat(grid.field("u"), 0.1))


def _acoustic(grid: Grid) -> Problem:
    return Problem.of(acoustic_prev(grid.field("u"), grid.field("v2", init=0.1)))


def _box27(grid: Grid) -> Problem:
    return Problem.of(box27(grid.field("u")))


def _yee(grid: Grid) -> Problem:
    fields = [grid.field(name) for name in ("ex", "ey", "ez", "hx", "hy", "hz")]
    return Problem.of([magnetic(*fields, 0.4), electric_uniform(*fields, 0.4)])


def _tti(grid: Grid) -> Problem:
    p, q, former_p, former_q, gp, gq = (grid.field(name) for name in ("p", "q", "p0", "q0", "gp", "gq"))
    axis = [grid.field(name, init=value) for name, value in (("n0", 0.6), ("n1", 0.48), ("n2", 0.64))]
    rest = [grid.field(name, init=value) for name, value in (("m", 0.05), ("a", 1.2), ("b", 1.05))]
    stages = [along_axis(p, q, gp, gq, axis), tti_from_stored(p, q, former_p, former_q, gp, gq, axis, *rest)]
    return Problem.of(stages)


KINDS: dict[str, Callable[[Grid], Problem]] = {
    "heat": _heat, "acoustic": _acoustic, "box27": _box27, "yee": _yee, "tti": _tti,
}  # fmt: skip


def started(kind: str, shape: Index, streaming: bool) -> Simulation:
    """A run whose boxes are streamed, or not, whatever their size."""
    usual = CudaDriver.model

    def model(driver: CudaDriver, ordinal: int) -> GpuModel:
        found = usual(driver, ordinal)
        return replace(found, one_step_rates=(1e-9 if streaming else 1e9,) * 2)

    with patch.object(CudaDriver, "model", model):
        problem = noisy(KINDS[kind](Grid(shape)))
        return Simulation(problem, 10**6, devices="cuda:0", options=Options("overlap", 1, 1))


def rate(kind: str, shape: Index, streaming: bool) -> float:
    """Cells a second."""
    with started(kind, shape, streaming) as run:
        steps = 4
        while (took := timed(run, steps)) < SAMPLE:
            steps = max(steps + 1, int(steps * min(10.0, 1.1 * SAMPLE / took)))
        return prod(shape) * steps / min(took, *(timed(run, steps) for _ in range(SAMPLES - 1)))


def timed(run: Simulation, steps: int) -> float:
    began = time.perf_counter()
    run.run(steps)
    return time.perf_counter() - began


def compiled(kind: str, streaming: bool, shapes: tuple[Index, ...]) -> None:
    """Leave the machine code of these runs in the cache."""
    for shape in shapes:
        with started(kind, shape, streaming) as run:
            run.run(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--seconds", type=float, default=120.0, help="nothing is begun after so many")
    parser.add_argument("--compile", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("streamed_from.json"))
    given = parser.parse_args()
    if given.compile:
        kind, streaming, number = given.compile.split(",")
        compiled(kind, streaming == "True", (SHAPES[int(number)],))
        return
    began, kinds = time.monotonic(), given.only.split(",")
    jobs = [
        subprocess.Popen([sys.executable, __file__, "--compile", f"{kind},{streaming},{number}"])
        for kind in kinds
        for streaming in (True, False)
        for number in (0, 2, 4, 6)
    ]
    for job in jobs:
        job.wait()
    print(f"{time.monotonic() - began:.0f} s: compiled", flush=True)
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        for shape in SHAPES:
            if time.monotonic() - began > given.seconds:
                break
            one, other = rate(kind, shape, True), rate(kind, shape, False)
            rows.append({"problem": kind, "shape": shape, "streaming": one, "one_step": other, "gain": one / other})
            print(f"{time.monotonic() - began:.0f} s", rows[-1], flush=True)
            given.out.write_text(json.dumps({"about": about(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()

"""How many rows a boundary tile of a persistent kernel should have: every choice on grids of several sizes.

    python benchmarks/cuda/edge_rows.py [--device cuda:0] [--only radar] [--depths 8,4] [--heights 16,48]
        [--out edge_rows.json]

`codegen/cuda/persistent_choice.py` chooses by counting; its tests compare the choice with what is recorded here. Each
time is the median of some runs of 20 ms after one that warms up. Tiles for which blocks have no shared memory are left
out, and said so.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import Options, Problem, Simulation  # noqa: E402
from peergrid.bench.own import own_waves  # noqa: E402
from peergrid.bench.problems import jacobi, radar  # noqa: E402
from peergrid.codegen.cuda import persistent_choice  # noqa: E402
from peergrid.codegen.cuda.fused.persistent import PersistentKernel  # noqa: E402
from peergrid.codegen.cuda.gpu_model import H200  # noqa: E402
from peergrid.runtime.cuda.device.driver import CudaDriver  # noqa: E402
from peergrid.runtime.cuda.memory.room import gpu_model, multiprocessors  # noqa: E402

PROBLEMS: dict[str, Callable[[int, int], Problem]] = {
    "Jacobi": jacobi,
    "waves": lambda rows, columns: own_waves(rows, columns, lossy=False),
    "radar": lambda rows, columns: radar(rows, columns, 100),
}
GRIDS = [(1024, 1024), *((rows, 4096) for rows in (512, 1024, 2048, 4096))]
SECONDS, SAMPLES, MOST_STEPS = 0.02, 3, 10**7


def step_seconds(problem: Problem, depth: int, device: str, height: int) -> float | None:
    """Seconds of a step by the persistent kernel whose boundary tiles have so many rows; None where there is none.

    The choice is remembered with the problem: what is measured is one of its own.
    Raises RuntimeError where the kernel in use has other tiles.
    """
    options = Options("persistent", depth=depth)
    with _only(height):
        simulation = Simulation(replace(problem), MOST_STEPS, devices=device, options=options)
    with simulation:
        simulation.run(2 * depth)
        if simulation.notes:
            print(f"{height} rows: {' '.join(simulation.notes)}", file=sys.stderr, flush=True)
            return None
        _check(kernel_in_use(simulation), height)
        each = _timed(simulation, 64 * depth)
        steps = max(64 * depth, int(SECONDS / each) // (2 * depth) * 2 * depth)
        _timed(simulation, steps)
        return median(_timed(simulation, steps) for _ in range(SAMPLES))


@contextmanager
def _only(height: int) -> Iterator[None]:
    """The one choice that boundary tiles beside plain ones have for now."""
    usual = CudaDriver.model
    CudaDriver.model = lambda driver, ordinal: replace(usual(driver, ordinal), persistent_rows=(height,))  # type: ignore
    try:
        yield
    finally:
        CudaDriver.model = usual  # type: ignore[method-assign]


def kernel_in_use(simulation: Simulation) -> PersistentKernel | None:
    """The choice that a run made and its problem remembers; had it made none, one among all heights."""
    ordinals, driver = simulation.devices.ordinals, CudaDriver()
    boxes = tuple(simulation.partition.owned(device) for device in range(len(ordinals)))
    gpu = gpu_model(ordinals, driver)
    return persistent_choice.persistent_kernel(
        simulation.problem, simulation.options.depth, boxes, gpu, multiprocessors(ordinals, driver)
    )


def _check(kernel: PersistentKernel | None, height: int) -> None:
    alone = kernel is not None and not kernel.interior
    found = "none" if kernel is None else f"{kernel.rows} rows" + (", all of them boundary tiles" if alone else "")
    if kernel is None or not kernel.interior or kernel.rows != height:
        raise RuntimeError(f"The kernel should have boundary tiles of {height} rows and interior ones; it has {found}.")


def _timed(simulation: Simulation, steps: int) -> float:
    started = time.perf_counter()
    simulation.run(steps)
    return (time.perf_counter() - started) / steps


def rows(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every choice on every grid."""
    for name, make in PROBLEMS.items():
        for shape in GRIDS if asked.only in name else ():
            problem = make(*shape)
            for depth in asked.depths:
                for height in asked.heights:
                    seconds = step_seconds(problem, depth, asked.device, height)
                    if seconds is not None:
                        found = {"name": name, "shape": shape, "depth": depth, "edge_rows": height}
                        yield {**found, "us_per_step": 1e6 * seconds}


def arguments() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(n) for n in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default="", help="only problems with this word in their name")
    parser.add_argument("--depths", type=numbers, default=[8, 4], help="steps of a pass, such as 8,4")
    parser.add_argument("--heights", type=numbers, default=H200.persistent_rows, help="rows of a boundary tile")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    found: list[dict[str, Any]] = []
    for row in rows(asked):
        found.append(row)
        print(json.dumps(row), flush=True)
        if asked.out:
            report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "rows": found}
            asked.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

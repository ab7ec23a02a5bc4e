"""How many rows an edge tile of a persistent kernel should have: every choice on grids of several sizes.

    python benchmarks/cuda/edge_rows.py [--device cuda:0] [--only radar] [--out edge_rows.json]

`codegen/cuda/suited.py` chooses by counting; its tests compare the choice with what is recorded here. Each
time is the median of some runs of 20 ms after one that warms up. Tiles for which blocks have no shared memory are left
out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import Options, Problem, Simulation  # noqa: E402
from peergrid.bench.own import own_waves  # noqa: E402
from peergrid.bench.problems import jacobi, radar  # noqa: E402
from peergrid.codegen.cuda import suited  # noqa: E402

PROBLEMS: dict[str, Callable[[int, int], Problem]] = {
    "Jacobi": jacobi,
    "waves": lambda rows, columns: own_waves(rows, columns, lossy=False),
    "radar": lambda rows, columns: radar(rows, columns, 100),
}
GRIDS = [(1024, 1024), *((rows, 4096) for rows in (512, 1024, 2048, 4096))]
SECONDS, SAMPLES, MOST_STEPS = 0.02, 3, 10**7


def step_seconds(problem: Problem, depth: int, device: str) -> float | None:
    """Seconds of a step by the persistent kernel; None where there is none."""
    options = Options("persistent", depth=depth)
    with Simulation(problem, MOST_STEPS, devices=device, options=options) as simulation:
        simulation.run(2 * depth)
        if simulation.notes:
            return None
        each = _timed(simulation, 64 * depth)
        steps = max(64 * depth, int(SECONDS / each) // (2 * depth) * 2 * depth)
        _timed(simulation, steps)
        return median(_timed(simulation, steps) for _ in range(SAMPLES))


def _timed(simulation: Simulation, steps: int) -> float:
    started = time.perf_counter()
    simulation.run(steps)
    return (time.perf_counter() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", default="", help="only problems with this word in their name")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: list[dict[str, Any]] = []
    choices = suited.MIXED_ROWS
    for name, make in PROBLEMS.items():
        for shape in GRIDS if asked.only in name else ():
            problem = make(*shape)
            for depth in (8, 4):
                for rows in choices:
                    suited.MIXED_ROWS = (rows,)  # type: ignore[assignment]
                    seconds = step_seconds(problem, depth, asked.device)
                    if seconds is None:
                        continue
                    found.append(
                        {"name": name, "shape": shape, "depth": depth, "edge_rows": rows, "us_per_step": 1e6 * seconds}
                    )
                    print(json.dumps(found[-1]), flush=True)
                    if asked.out:
                        report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "rows": found}
                        asked.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

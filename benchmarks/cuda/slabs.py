"""Radar over several GPUs: slabs of equal rows beside slabs that take equally long, with the digest of what they find.

    python benchmarks/cuda/slabs.py [--size 16384] [--gpus 1,2,4] [--steps 256] [--strategy peer] [--edge 8]
        [--out slabs.json]

The radar is that of `peergrid bench fdtd`. Times are of stepping alone, the best and the median of some runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import Options, Problem, Simulation  # noqa: E402
from peergrid.bench.problems import radar  # noqa: E402
from peergrid.codegen.cuda.choose.balance import row_costs  # noqa: E402
from peergrid.grid.partition import Partition, balanced_cuts  # noqa: E402

DEPTH, RUNS = 8, 3


def measured(problem: Problem, partition: Partition, steps: int, strategy: str) -> dict[str, Any]:
    """Some runs of so many steps on as many GPUs as the partition has slabs."""
    devices = "cuda:" + ",".join(map(str, range(partition.devices)))
    options = Options(strategy, depth=DEPTH)  # type: ignore[arg-type]
    with Simulation(problem, (RUNS + 1) * steps, devices=devices, options=options, split=partition) as simulation:
        seconds = []
        for _ in range(RUNS + 1):
            before = simulation.seconds
            simulation.run(steps)
            seconds.append((simulation.seconds - before) / steps)
        digest = hashlib.sha256(simulation.gather("Ez").tobytes())
        for trace in simulation.traces().values():
            digest.update(trace.tobytes())
        notes = simulation.notes
    cells = problem.grid.box.size
    return {
        "gpus": partition.devices,
        "rows": [partition.owned(device).shape[0] for device in range(partition.devices)],
        "microseconds_per_step": {"best": min(seconds[1:]) * 1e6, "median": median(seconds[1:]) * 1e6},
        "gcells_per_s": cells / median(seconds[1:]) / 1e9,
        "sha256": digest.hexdigest(),
        "notes": notes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=16384)
    parser.add_argument("--gpus", default="1,2,4")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--strategy", default="peer")
    parser.add_argument(
        "--edge",
        default="0",
        help="what a cell of an edge costs, in cells of interior tiles (0: as predicted); several: 4,8",
    )
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    problem = radar(asked.size, asked.size, (RUNS + 1) * asked.steps)
    found: list[dict[str, Any]] = []
    for gpus in map(int, asked.gpus.split(",")):
        wanted = {"equal rows": Partition.over(problem.grid, gpus)}
        for edge in map(int, asked.edge.split(",")) if gpus > 1 else ():
            cuts = balanced_cuts(row_costs(problem, DEPTH, edge or None), gpus)
            wanted[f"equal time, edge {edge}"] = Partition.slabs(problem.grid, cuts)
        for name, partition in wanted.items():
            row = {"slabs": name, **measured(problem, partition, asked.steps, asked.strategy)}
            row["efficiency"] = (
                row["gcells_per_s"] / (gpus * found[0]["gcells_per_s"] / found[0]["gpus"]) if found else 1
            )
            found.append(row)
            print(json.dumps(row), flush=True)
            if asked.out:
                report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "rows": found}
                asked.out.write_text(json.dumps({**report, "size": asked.size, "strategy": asked.strategy}, indent=1))
    print("same bits" if len({row["sha256"] for row in found}) == 1 else "BITS DIFFER")


if __name__ == "__main__":
    main()

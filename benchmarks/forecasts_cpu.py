"""Steps of many arrangements on two virtual devices, measured and predicted (`peergrid.predict.virtual`).

    python benchmarks/forecasts_cpu.py [--seconds 80] [--sizes 512,1024,2048] [--only WORD,...] [--out FILE]

Passes are measured before anything runs; then every strategy is carried out on the same memory: after a warm-up the
median of `SAMPLES` samples of at least `SAMPLE_SECONDS`. The record is valid at any moment.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "cuda")]

from problems3d import acoustic_problem, heat_problem  # noqa: E402
from record import RESULTS, about  # noqa: E402

from peergrid.bench.problems import jacobi, noisy, radar  # noqa: E402
from peergrid.predict.virtual import VirtualForecaster  # noqa: E402
from peergrid.resolve import layout_of, partition_of  # noqa: E402
from peergrid.runtime.devices import parse_devices  # noqa: E402
from peergrid.runtime.executors import executor_of  # noqa: E402
from peergrid.schedule import Options, one_iteration  # noqa: E402
from peergrid.schedule.strategies import STRATEGIES  # noqa: E402

DEVICES = parse_devices("cpu:2")
STEPS, SAMPLES, SAMPLE_SECONDS = 100_000, 3, 0.03
DEEP = 8


def problem_of(name: str, n: int) -> Any:
    """A problem on a square of n by n cells, or a cube with about as many."""
    m = max(24, round(n ** (2 / 3) / 8) * 8)
    match name:
        case "Jacobi":
            return jacobi(n, n)
        case "radar":
            return radar(n, n, 1000)
        case "3D heat":
            return noisy(heat_problem(m))
    return noisy(acoustic_problem(m))


def rows(name: str, n: int, depth: int) -> list[dict[str, Any]]:
    """A row for each strategy, all on the same memory."""
    problem, options = problem_of(name, n), Options("async", depth=depth)
    plan = layout_of(problem, DEVICES, options, partition_of(problem, DEVICES, options))
    found = []
    with closing(executor_of(DEVICES, plan, STEPS, "compiled", None, None)) as executor:
        for field, described in problem.fields.items():
            executor.load(field, described.first_values(), 0)
        asked = VirtualForecaster(executor)
        for strategy in STRATEGIES:
            schedule = one_iteration(plan, replace(options, strategy=strategy))
            began = time.perf_counter()
            predicted = asked.seconds_per_step(schedule)
            asked_for, seconds = time.perf_counter() - began, step_seconds(executor, schedule)
            row = {"problem": name, "shape": problem.grid.shape, "strategy": strategy, "depth": depth}
            found.append({**row, "seconds_per_step": seconds, "predicted": predicted, "error": predicted / seconds - 1,
                          "seconds_to_measure": asked_for})  # fmt: skip
    return found


def step_seconds(executor: Any, schedule: Any) -> float:
    def sample(times: int) -> float:
        began = time.perf_counter()
        executor.execute(schedule, times, 0)
        return (time.perf_counter() - began) / times / schedule.steps

    first = sample(1)
    times = max(1, min(500, int(SAMPLE_SECONDS / first / schedule.steps)))
    return median(sample(times) for _ in range(SAMPLES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=80.0, help="no case is begun after so many")
    parser.add_argument("--sizes", default="512,1024,2048,3072")
    parser.add_argument("--only", default="", help="only problems with one of these words in their name")
    parser.add_argument("--out", type=Path, default=RESULTS / "cpu-forecasts.json")
    given = parser.parse_args()
    began, found = time.monotonic(), list[dict[str, Any]]()
    names = [
        name for name in ("Jacobi", "radar", "3D heat", "3D acoustic") if any(w in name for w in given.only.split(","))
    ]
    for n in map(int, given.sizes.split(",")):
        for name in names:
            for depth in (1, DEEP):
                if time.monotonic() - began > given.seconds:
                    continue
                for row in rows(name, n, depth):
                    found.append(row)
                    times = f"{row['seconds_per_step'] * 1e6:9.1f} {row['predicted'] * 1e6:9.1f} {row['error']:+7.1%}"
                    print(f"{name:12s} {n:5d} {row['strategy']:11s} {depth} {times}", flush=True)
                errors = sorted(abs(row["error"]) for row in found)
                said = {"cases": len(found), "median_error": median(errors), "rows": found}
                given.out.write_text(
                    json.dumps({**about(), "command": "python benchmarks/forecasts_cpu.py", **said}, indent=1)
                )
    print(f"{len(found)} cases, median error {median(errors):.1%}, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

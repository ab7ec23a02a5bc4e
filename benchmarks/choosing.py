"""The choice of an arrangement by forecasts: how long it takes, and how good it is on steps that were measured.

    python benchmarks/choosing.py [seconds] [plans] [choices] [--most 8192]

seconds: of a choice among all strategies, for every grid of benchmarks/results/h200-forecasts.json of at most so many
cells along an axis, each by a process that knows nothing of the problem; plans: of `peergrid plan` from its start to
its end; choices: the steps of that record predicted with the figures and the code of today, and how much longer than
the best of all measured those take that are predicted to be the fastest. Writes benchmarks/results/choosing.json; what
is not asked for stays as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from fit_costs import choices, problem  # noqa: E402
from record import RESULTS, about, save  # noqa: E402

from peergrid.costs.machine import Machine  # noqa: E402
from peergrid.costs.machines import LAUNCH, machine_named, with_host  # noqa: E402
from peergrid.predict.choice import ranked  # noqa: E402
from peergrid.predict.forecast import Forecaster  # noqa: E402
from peergrid.schedule import Options  # noqa: E402

Grid = tuple[str, tuple[int, ...], int]
TIMES = 3
PLANS = (
    ("examples/gpr.toml", "--machine", "h200-x8"),
    ("examples/gpr.toml", "--machine", "h200-x2", "--nodes", "4", "--network", "5e-6,50e9"),
    ("examples/gpr.toml", "--machine", "benchmarks/results/profile-h200-x4.json", "--gpus", "4"),
    ("examples/survey.toml", "--machine", "h100-x8"),
    ("examples/marine.toml", "--machine", "h200-x8"),
    ("examples/marine.toml", "--machine", "b200-x8", "--nodes", "4", "--network", "5e-6,50e9"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=("seconds", "plans", "choices"), default=[])
    parser.add_argument("--most", type=int, default=8192)
    given = parser.parse_args()
    measured = json.loads((RESULTS / "h200-forecasts.json").read_text())
    factor = statistics.mean(measured["launch_seconds"]) / LAUNCH
    machine = with_host(machine_named("h200-x2"), factor)
    path = RESULTS / "choosing.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for part in given.parts:
        match part:
            case "seconds":
                new: Any = list(seconds(grids(measured["rows"]), machine, given.most))
            case "plans":
                new = [plan(*arguments) for arguments in PLANS]
            case "choices":
                new = predicted(measured["rows"], machine)
        found[part] = {**about(), "found": new}
        save("choosing", found)


def grids(rows: list[dict[str, Any]]) -> list[Grid]:
    """The problems, sizes and numbers of GPUs of a record."""
    return sorted({(row["problem"], tuple(row["shape"]), row["gpus"]) for row in rows})


def seconds(cases: list[Grid], machine: Machine, most: int) -> list[dict[str, Any]]:
    """The seconds of each choice, the most of some times; modules are loaded before."""
    ranked(Forecaster(problem("radar", (256, 256)), machine, 2))
    rows = []
    for name, shape, gpus in cases:
        if max(shape) <= most:
            spent = max(alone(name, shape, gpus, machine) for _ in range(TIMES))
            rows.append({"problem": name, "shape": shape, "gpus": gpus, "seconds": spent})
            print(rows[-1], flush=True)
    return rows


def alone(name: str, shape: tuple[int, ...], gpus: int, machine: Machine) -> float:
    """Seconds of a choice in a process of its own, which has the problem and no answer about it."""
    made, (reading, writing) = problem(name, shape), os.pipe()
    child = os.fork()
    if child == 0:
        began = time.perf_counter()
        ranked(Forecaster(made, machine, gpus))
        os.write(writing, f"{time.perf_counter() - began}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        return float(answer.read())


def plan(*arguments: str) -> dict[str, Any]:
    """Seconds of `peergrid plan` with some arguments: the most of some times."""
    command, spent = [sys.executable, "-m", "peergrid", "plan", *arguments], []
    for _ in range(TIMES):
        began = time.perf_counter()
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": "src"}
        )
        spent.append(time.perf_counter() - began)
    row = {"command": " ".join(["peergrid", "plan", *arguments]), "code": ended.returncode, "seconds": max(spent)}
    print(row, ended.stderr.strip(), flush=True)
    return row


def predicted(rows: list[dict[str, Any]], machine: Machine) -> dict[str, Any]:
    """The quality of forecasts and of the choices that follow, grid by grid."""
    found: list[dict[str, Any]] = []
    for name, shape, gpus in grids(rows):
        asked = Forecaster(problem(name, shape), machine, gpus)
        for row in rows:
            if (row["problem"], tuple(row["shape"]), row["gpus"]) == (name, shape, gpus):
                made = asked.forecast(Options(row["strategy"], depth=row["depth"]))
                named = {key: row[key] for key in ("problem", "shape", "gpus", "strategy", "depth", "seconds_per_step")}
                found.append(named | {"predicted": made.seconds_per_step})
        print(name, shape, gpus, flush=True)
    errors = sorted(abs(row["predicted"] / row["seconds_per_step"] - 1) for row in found)
    return {
        "cases": len(errors),
        "median_error": statistics.median(errors),
        "within_25_percent": sum(error <= 0.25 for error in errors) / len(errors),
        "choices": choices(found),
    }


if __name__ == "__main__":
    main()

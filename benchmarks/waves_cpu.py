"""Waves in 3D on CPU threads beside Devito, in turn, several rounds.

    python benchmarks/waves_cpu.py --devito-python /path/to/venv/bin/python [--case acoustic] [--rounds 5]

8th order in space, 2nd in time, parameters that vary from cell to cell, 256³ cells, float32, two threads each: the same
scheme from the same noise (see `wave_problems`). Devito runs with OpenMP, its full optimisation and its autotuning,
outside the time that is measured. Before anything is timed, the fields after some steps are compared. Writes
benchmarks/results/waves_cpu.json or, for TTI, tti_cpu.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from record import about, save
from wave_problems import CASES, RADIUS, Values, Waves

import peergrid
from peergrid import Options, Problem, Simulation
from peergrid.runtime.cpu.bandwidth import copy_bandwidth

CELLS = 256
THREADS = 2
COMPARED = 20  # steps after which the fields are compared
TARGETS = {
    "acoustic": {"one_step_per_pass": 1.5, "several": 2.5, "relative_l2": 1e-4},
    "tti": {"best": 2.0, "relative_l2": 1e-4},
}
RESULTS = {"acoustic": "waves_cpu", "tti": "tti_cpu"}
DEVITO = """
import sys, time
import numpy as np
from devito import Eq, Function, Grid, Operator, TimeFunction
folder, steps = sys.argv[1], int(sys.argv[2])
values = dict(np.load(f"{folder}/values.npz"))
shape = next(iter(values.values())).shape
grid = Grid(shape=shape, extent=tuple(n - 1.0 for n in shape), dtype=np.float32)
def wave(name):
    return TimeFunction(name=name, grid=grid, time_order=2, space_order=8)
def given(name, order=0):
    made = Function(name=name, grid=grid, space_order=order)
    made.data[:] = values[name]
    return made
exec(open(f"{folder}/operator.py").read())
def begin():
    for one in waves:
        one.data[:] = values[one.name]
begin()
operator.apply(time_m=1, time_M=4, autotune="basic")
tuned = operator._state["autotuning"][-1]["tuned"]
def advance():
    begin()
    began = time.perf_counter()
    operator.apply(time_m=1, time_M=steps, autotune="off", **tuned)
    return time.perf_counter() - began
advance()
np.savez(f"{folder}/last.npz", **{one.name: one.data[(steps + 1) % 3] for one in waves})
print("tuned", tuned, flush=True)
for line in sys.stdin:
    print(advance(), flush=True)
"""


class Devito:
    """A process that advances Devito's fields whenever it is asked to, and says how long that took."""

    def __init__(self, python: Path, folder: Path, steps: int) -> None:
        environment = {
            **os.environ, "DEVITO_LANGUAGE": "openmp", "OMP_NUM_THREADS": str(THREADS), "DEVITO_LOGGING": "ERROR"
        }  # fmt: skip
        command = [str(python), "-c", DEVITO, str(folder), str(steps)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.tuned = self._line()

    def seconds(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        return float(self._line())

    def close(self) -> None:
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise SystemExit("Devito ended without an answer.")
        return line


def peergrid_runs(problem: Problem, depth: int, steps: int, rounds: int) -> Callable[[], float]:
    """A function that advances by `steps` and gives the seconds; first it warms up."""
    simulation = Simulation(
        problem, steps * (rounds + 1), devices=f"cpu:{THREADS}", options=Options("async", depth=depth)
    )

    def sample() -> float:
        before = simulation.seconds
        simulation.run(steps)
        return simulation.seconds - before

    sample()
    return sample


def summary(samples: list[float]) -> dict[str, Any]:
    ordered = sorted(samples)
    middle = statistics.median(ordered)
    return {"samples": samples, "median": middle, "spread": (ordered[-1] - ordered[0]) / middle}


def version(python: Path) -> str:
    ask = "from importlib.metadata import version; print(version('devito'))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


def difference(case: Waves, problem: Problem, steps: int, theirs: Mapping[str, Any]) -> float:
    """The relative L2 norm of the difference between both programs' fields, of the field where it is largest."""
    ours = peergrid.run(problem, steps, devices=f"cpu:{THREADS}").fields
    inside = (slice(RADIUS, -RADIUS),) * 3
    return max(
        float(np.linalg.norm(ours[name][inside] - theirs[name]) / np.linalg.norm(theirs[name])) for name in case.waves
    )


def begun(case: Waves, values: Values, python: Path, steps: int) -> tuple[Devito, dict[str, Any]]:
    """Devito ready to run, and its fields after some steps."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "values.npz", **values)
        (folder / "operator.py").write_text(case.devito, encoding="utf-8")
        devito = Devito(python, folder, steps)
        return devito, dict(np.load(folder / "last.npz"))


def measured(runs: Mapping[str, Callable[[], float]], steps: int, rounds: int) -> dict[str, list[float]]:
    """Mcells/s of each program, in turns."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            samples[name].append(CELLS**3 * steps / run() / 1e6)
            print(f"{name:20s} {samples[name][-1]:.4g}", flush=True)
    return samples


def ratios(samples: Mapping[str, list[float]]) -> dict[str, float]:
    """The median over the rounds of each program's rate in units of Devito's."""
    theirs = samples["devito"]
    return {
        name: statistics.median(mine / other for mine, other in zip(values, theirs, strict=True))
        for name, values in samples.items()
        if name != "devito"
    }


def chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devito-python", type=Path, required=True, help="Python of an environment with Devito")
    parser.add_argument("--case", choices=tuple(CASES), default="acoustic")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=COMPARED)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--name", help="of the record; by default that of the case")
    return parser.parse_args()


def circumstances(python: Path) -> dict[str, Any]:
    found = about()
    found["command"] = found["command"].replace(str(python), "PATH")
    found["versions"]["devito"] = version(python)
    return found


def main() -> None:
    wanted = chosen()
    case, steps, python = CASES[wanted.case], wanted.steps, wanted.devito_python.absolute()
    values = case.values(CELLS)
    problem = case.problem(values)
    devito, theirs = begun(case, values, python, steps)
    apart = difference(case, problem, steps, theirs)
    print(f"relative L2 of the difference after {steps} steps: {apart:.2e}", flush=True)
    runs: dict[str, Callable[[], float]] = {"devito": devito.seconds}
    for depth in wanted.depths:
        runs[f"peergrid_depth_{depth}"] = peergrid_runs(problem, depth, steps, wanted.rounds)
    loads = [os.getloadavg()[0]]
    samples = measured(runs, steps, wanted.rounds)
    loads.append(os.getloadavg()[0])
    devito.close()
    times = ratios(samples)
    record = {
        **circumstances(wanted.devito_python),
        "case": case.name,
        "targets": TARGETS[case.name],
        "cells": [CELLS] * 3,
        "threads": THREADS,
        "bytes_per_cell_and_step": case.bytes,
        "unit": "Mcells/s",
        "devito_tuned": devito.tuned,
        "relative_l2_of_the_difference": apart,
        "load_before_and_after": loads,
        "copy_bytes_per_s": copy_bandwidth(THREADS),
        "results": {name: summary(found) for name, found in samples.items()},
        "times_devito_median_of_rounds": times,
    }
    path = save(wanted.name or RESULTS[case.name], record)
    for name, value in times.items():
        print(f"{name:20s} {value:.2f} x Devito")
    print(path)


if __name__ == "__main__":
    main()

"""Acoustic waves in 3D on CPU threads beside Devito, in turn, several rounds.

    python benchmarks/waves_cpu.py --devito-python /path/to/venv/bin/python [--rounds 5]

8th order in space, 2nd in time, variable velocity, 256³ cells, float32, two threads each: the same scheme from the same
noise. peergrid updates 256³ cells within a frame of zeros four cells wide, as Devito's halo is. Devito runs with
OpenMP, its full optimisation and its autotuning, outside the time that is measured. Before anything is timed, the
fields after some steps are compared. Writes benchmarks/results/waves_cpu.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import about, save

import peergrid
from peergrid import Grid, Options, Problem, Simulation, stencil

CELLS = 256
RADIUS = 4
WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
THREADS = 2
BYTES = 16  # per cell and step: read both wave fields and the velocity, write one
COMPARED = 20  # steps after which the fields are compared
TARGETS = {"one_step_per_pass": 1.5, "several": 2.5, "relative_l2": 1e-4}
DEVITO = """
import sys, time
import numpy as np
from devito import Eq, Function, Grid, Operator, TimeFunction
folder, steps = sys.argv[1], int(sys.argv[2])
start, speed = np.load(f"{folder}/start.npy"), np.load(f"{folder}/speed.npy")
grid = Grid(shape=start.shape, extent=tuple(n - 1.0 for n in start.shape), dtype=np.float32)
u = TimeFunction(name="u", grid=grid, time_order=2, space_order=8)
c = Function(name="c", grid=grid, space_order=0)
c.data[:] = speed
operator = Operator([Eq(u.forward, 2 * u - u.backward + c * u.laplace)], opt="advanced")
u.data[:] = start
operator.apply(time_m=1, time_M=4, autotune="basic")
tuned = operator._state["autotuning"][-1]["tuned"]
def advance():
    u.data[:] = start
    began = time.perf_counter()
    operator.apply(time_m=1, time_M=steps, autotune="off", **tuned)
    return time.perf_counter() - began
advance()
np.save(f"{folder}/last.npy", u.data[(steps + 1) % 3])
print("tuned", tuned, flush=True)
for line in sys.stdin:
    print(advance(), flush=True)
"""


@stencil
def wave(u: Any, speed: Any, weights: Any) -> None:
    """One step in time; `speed` holds the squares of velocity, time step and spacing as one number."""
    around = 3 * weights[0] * u[0, 0, 0]
    for r in range(1, RADIUS + 1):
        along_x, along_y, along_z = u[-r, 0, 0] + u[r, 0, 0], u[0, -r, 0] + u[0, r, 0], u[0, 0, -r] + u[0, 0, r]
        around = around + weights[r] * (along_x + along_y + along_z)
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + speed[0, 0, 0] * around


def problem(start: NDArray[np.float32], speed: NDArray[np.float32]) -> Problem:
    grid = Grid(tuple(n + 2 * RADIUS for n in start.shape))
    framed = grid.field("u", np.pad(start, RADIUS)), grid.field("speed", np.pad(speed, RADIUS))
    return Problem.of(wave(*framed, WEIGHTS))


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


def peergrid_runs(chosen: Problem, depth: int, steps: int, rounds: int) -> Callable[[], float]:
    """A function that advances by `steps` and gives the seconds; first it warms up."""
    simulation = Simulation(
        chosen, steps * (rounds + 1), devices=f"cpu:{THREADS}", options=Options("async", depth=depth)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devito-python", type=Path, required=True, help="Python of an environment with Devito")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=COMPARED)
    parser.add_argument("--depths", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--name", default="waves_cpu")
    chosen = parser.parse_args()
    python = chosen.devito_python.absolute()

    numbers = np.random.default_rng(2)
    start = numbers.random((CELLS,) * 3, dtype=np.float32) - np.float32(0.5)
    speed = np.float32(0.02) + np.float32(0.05) * numbers.random((CELLS,) * 3, dtype=np.float32)
    waves = problem(start, speed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "start.npy", start)
        np.save(folder / "speed.npy", speed)
        devito = Devito(python, folder, chosen.steps)
        theirs = np.load(folder / "last.npy")
    ours = peergrid.run(waves, chosen.steps, devices=f"cpu:{THREADS}").fields["u"]
    inside = ours[(slice(RADIUS, -RADIUS),) * 3]
    difference = float(np.linalg.norm(inside - theirs) / np.linalg.norm(theirs))
    print(f"relative L2 of the difference after {chosen.steps} steps: {difference:.2e}", flush=True)

    runs: dict[str, Callable[[], float]] = {"devito": devito.seconds}
    for depth in chosen.depths:
        runs[f"peergrid_depth_{depth}"] = peergrid_runs(waves, depth, chosen.steps, chosen.rounds)
    samples: dict[str, list[float]] = {name: [] for name in runs}
    loads = [os.getloadavg()[0]]
    for _ in range(chosen.rounds):
        for name, run in runs.items():
            samples[name].append(CELLS**3 * chosen.steps / run() / 1e6)
            print(f"{name:20s} {samples[name][-1]:.4g}", flush=True)
    loads.append(os.getloadavg()[0])
    devito.close()
    found = {name: summary(values) for name, values in samples.items()}
    pairs = {name: zip(values, samples["devito"], strict=True) for name, values in samples.items() if name != "devito"}
    ratios = {name: statistics.median(mine / other for mine, other in pair) for name, pair in pairs.items()}
    circumstances = about()
    circumstances["command"] = circumstances["command"].replace(str(chosen.devito_python), "PATH")
    circumstances["versions"]["devito"] = version(python)
    path = save(
        chosen.name,
        {
            **circumstances,
            "targets": TARGETS,
            "cells": [CELLS] * 3,
            "threads": THREADS,
            "bytes_per_cell_and_step": BYTES,
            "unit": "Mcells/s",
            "devito_tuned": devito.tuned,
            "relative_l2_of_the_difference": difference,
            "load_before_and_after": loads,
            "results": found,
            "times_devito_median_of_rounds": ratios,
        },
    )
    for name, value in ratios.items():
        print(f"{name:20s} {value:.2f} x Devito")
    print(path)


if __name__ == "__main__":
    main()

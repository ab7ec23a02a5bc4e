"""The radar model on CPU threads beside gprMax 4.0.1 and the machine's copy bandwidth, in turn, several rounds.

    python benchmarks/fdtd_cpu.py --gprmax-python /path/to/venv/bin/python [--rounds 5]

2D TMz, 4000 x 2000 cells, float32, ten cells of CPML (and a run without), damp sand with a pipe (so that every
coefficient is a field), one line source, one receiver, two threads each. peergrid runs one step per pass (no temporal
blocking) and several. The time is that of stepping alone on both sides. Writes benchmarks/results/fdtd_cpu.json.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from record import about, save

from peergrid import Options, Simulation
from peergrid.models.fdtd import build
from peergrid.models.fdtd.materials import Material
from peergrid.models.fdtd.model import Absorber, GridSpec, LineSource, RadarModel, ReceiverSpec
from peergrid.models.fdtd.shapes import Cylinder
from peergrid.models.waveforms import Ricker
from peergrid.runtime.cpu.bandwidth import copy_bandwidth

SPACING = 0.002  # metres
BYTES = 32  # per cell and step: read Ez, Hx, Hy, ca, cb, write Ez, Hx, Hy
THREADS = 2
TARGETS = {"ratio_to_gprmax": 3.0, "fraction_of_copy_without_blocking": 0.6, "cost_of_cpml": 0.05}
# Written down before the first recorded run.
PREDICTION = {
    "reason": (
        "One step per pass moves 32 to 44 bytes per cell (stores past the caches save most of the fetching before "
        "writing) at what two threads get from memory: 0.7 of copying. Eight steps per pass are bound by the second-"
        "level cache: 16 loads or stores of 4 bytes per cell, at 64 bytes a cycle and 4 GHz near 2 Gcells/s a thread. "
        "CPML adds two row functions of ten cells to each of about a microsecond: 2 to 4 %."
    ),
    "gprmax_mcells_per_s": 214,
    "depth_1_fraction_of_copy": 0.7,
    "depth_8_mcells_per_s": 4000,
    "cost_of_cpml": 0.03,
}
# Written down before the first recorded run with stores past the caches and masked ends of rows.
PREDICTION_AFTER_CHANGES = {
    "reason": (
        "The first recorded run had no stores past the caches: 44 bytes per cell, and two short vectors and two single "
        "cells for each ten cells of CPML. Now large passes move 32 bytes: 15 % more cells per second at one step per "
        "pass, 20 % at eight, as seen in pairs of short runs. Ten cells are one masked vector: CPML costs 3 %. "
        "Copying is 40 to 43 GB/s where another process holds a core, 70 to 77 GB/s where none does."
    ),
    "depth_1_mcells_per_s": 1400,
    "depth_1_fraction_of_copy": [0.6, 1.05],
    "depth_8_mcells_per_s": 5100,
    "cost_of_cpml": 0.03,
}
COST_OF_CPML = "median over the rounds of (without CPML) / (with CPML), samples taken one after the other; less 1"
GPRMAX = """\
#title: bench
#domain: {x} {y} {d}
#dx_dy_dz: {d} {d} {d}
#time_window: {steps}
#pml_cells: 10 10 0 10 10 0
#material: 4 0.01 1 0 sand
#material: 6 0.02 1 0 pipe
#box: 0 0 0 {x} {y} {d} sand
#cylinder: {cx} {cy} 0 {cx} {cy} {d} {r} pipe n
#waveform: ricker 1 4e8 w
#hertzian_dipole: z {sx} {sy} 0 w
#rx: {rx} {sy} 0
"""


def extent(cells: tuple[int, int]) -> tuple[float, float]:
    return cells[0] * SPACING, cells[1] * SPACING


def model(cells: tuple[int, int], absorber: int, steps: int) -> RadarModel:
    x, y = extent(cells)
    return RadarModel(
        grid=GridSpec(size=(x, y), spacing=SPACING, steps=steps, background="sand"),
        materials=(Material("sand", 4.0, 0.01), Material("pipe", 6.0, 0.02)),
        shapes=(Cylinder("pipe", (x / 2, 0.7 * y), 0.05 * y),),
        sources=(LineSource((x / 2, y / 2), Ricker(frequency=4e8)),),
        receivers=(ReceiverSpec((0.55 * x, y / 2)),),
        absorber=Absorber(cells=absorber),
    )


def peergrid_runs(cells: tuple[int, int], absorber: int, depth: int, steps: int, rounds: int) -> Callable[[], float]:
    """A function that advances by `steps` and gives Mcells/s; first it warms up."""
    problem = build(model(cells, absorber, steps * (rounds + 1))).problem
    simulation = Simulation(
        problem, steps * (rounds + 1), devices=f"cpu:{THREADS}", options=Options("async", depth=depth)
    )

    def sample() -> float:
        before = simulation.seconds
        simulation.run(steps)
        return cells[0] * cells[1] * steps / (simulation.seconds - before) / 1e6

    sample()
    return sample


def gprmax_run(python: Path, cells: tuple[int, int], steps: int) -> float:
    """Mcells/s of one run, by the solving time that gprMax prints."""
    x, y = extent(cells)
    text = GPRMAX.format(
        x=x, y=y, d=SPACING, steps=steps, cx=x / 2, cy=0.7 * y, r=0.05 * y, sx=x / 2, sy=y / 2, rx=0.55 * x
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bench.in").write_text(text)
        command = [str(python), "-m", "gprMax", "bench.in", "--hide-progress-bars", "--allow-underresolved"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    found = re.search(r"Time taken: (?:(\d+) minutes? and )?([\d.]+) seconds", done.stdout)
    if found is None:
        raise SystemExit(f"gprMax said nothing of the time it took:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return cells[0] * cells[1] * steps / (60 * int(found[1] or 0) + float(found[2])) / 1e6


def summary(samples: list[float]) -> dict[str, Any]:
    ordered = sorted(samples)
    middle = statistics.median(ordered)
    return {"samples": samples, "median": middle, "spread": (ordered[-1] - ordered[0]) / middle}


def cost_of_cpml(found: dict[str, dict[str, Any]], depth: int) -> float:
    """See `COST_OF_CPML`: neighbours in time share the machine's state, medians of whole series do not."""
    name = f"peergrid_depth_{depth}"
    pairs = zip(found[f"{name}_no_cpml"]["samples"], found[name]["samples"], strict=True)
    return float(statistics.median(without / absorbed for without, absorbed in pairs)) - 1


def verdict(found: dict[str, dict[str, Any]], depths: list[int]) -> dict[str, float]:
    """The figures that the targets are about: medians, and medians of ratios."""
    middle = {name: entry["median"] for name, entry in found.items()}
    figures = {
        "fraction_of_copy_without_blocking": middle["peergrid_depth_1"] * 1e6 * BYTES / middle["copy_bytes_per_s"],
        "cost_of_cpml_without_blocking": cost_of_cpml(found, 1),
    }
    for depth in depths:
        name = f"peergrid_depth_{depth}"
        figures[f"cost_of_cpml_depth_{depth}"] = cost_of_cpml(found, depth)
        if "gprmax" in middle:
            figures[f"ratio_to_gprmax_depth_{depth}"] = middle[name] / middle["gprmax"]
    return figures


def circumstances(gprmax_python: Path | None) -> dict[str, Any]:
    """As `about`, with the version of gprMax in place of where it lies on this machine."""
    found = about()
    found["command"] = found["command"].replace(str(gprmax_python), "PATH")
    if gprmax_python:
        ask = "from importlib.metadata import version; print(version('gprMax'))"
        done = subprocess.run([gprmax_python, "-c", ask], capture_output=True, text=True, check=True)
        found["versions"]["gprMax"] = done.stdout.strip()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gprmax-python", type=Path, help="Python of an environment with gprMax 4.0.1; left out: skip")
    parser.add_argument("--cells", type=int, nargs=2, default=(4000, 2000))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=96, help="steps of one peergrid sample")
    parser.add_argument("--gprmax-steps", type=int, default=100)
    parser.add_argument("--depths", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--name", default="fdtd_cpu")
    chosen = parser.parse_args()
    cells = (chosen.cells[0], chosen.cells[1])

    runs: dict[str, Callable[[], float]] = {"copy_bytes_per_s": lambda: copy_bandwidth(THREADS)}
    for depth in (1, *chosen.depths):
        for absorber, ending in ((10, ""), (0, "_no_cpml")):
            name = f"peergrid_depth_{depth}{ending}"
            runs[name] = peergrid_runs(cells, absorber, depth, chosen.steps, chosen.rounds)
    if chosen.gprmax_python:
        runs["gprmax"] = lambda: gprmax_run(chosen.gprmax_python.absolute(), cells, chosen.gprmax_steps)

    samples: dict[str, list[float]] = {name: [] for name in runs}
    loads = [os.getloadavg()[0]]
    for _ in range(chosen.rounds):
        for name, run in runs.items():
            samples[name].append(run())
            print(f"{name:28s} {samples[name][-1]:.4g}", flush=True)
    loads.append(os.getloadavg()[0])
    found = {name: summary(values) for name, values in samples.items()}
    figures = verdict(found, chosen.depths)
    path = save(
        chosen.name,
        {
            **circumstances(chosen.gprmax_python),
            "prediction": PREDICTION,
            "prediction_after_changes": PREDICTION_AFTER_CHANGES,
            "cost_of_cpml_is": COST_OF_CPML,
            "targets": TARGETS,
            "cells": cells,
            "threads": THREADS,
            "bytes_per_cell_and_step": BYTES,
            "unit": "Mcells/s, copy_bytes_per_s aside",
            "load_before_and_after": loads,
            "results": found,
            "figures": figures,
        },
    )
    for name, value in figures.items():
        print(f"{name:40s} {value:.3f}")
    print(path)


if __name__ == "__main__":
    main()

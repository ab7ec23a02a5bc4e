"""The price of snapshots on CPUs: the same radar run with and without them, in turns.

Usage: benchmarks/snapshots.py [--cells 4000] [--steps 960] [--rounds 4] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from record import about, save

from peergrid.jobs.folder import Folder
from peergrid.jobs.recording import recording
from peergrid.jobs.requested import requested_of
from peergrid.jobs.run import step_to_end
from peergrid.models import BuiltModel, parse

CASES = {"none": (0, 1), "ten": (10, 1), "ten, every 4th node": (10, 4), "one": (1, 1)}  # how many, stride
MODEL = """
[grid]
size = [{width}, {height}]
spacing = 0.001
steps = {steps}

[[material]]
name = "sand"
permittivity = 4.0
conductivity = 0.001

[[shape]]
kind = "layer"
material = "sand"
bottom = -1.0
top = {top}

[[source]]
kind = "line"
position = [{middle}, {above}]
waveform = {{ kind = "ricker", frequency = 5e9 }}

[[receiver]]
position = [{middle}, {above}]

[output]
snapshots = {every}
stride = {stride}
pictures = false
"""


def model(cells: int, steps: int, count: int, stride: int) -> BuiltModel:
    """A layer under air, twice as wide as high, with so many snapshots."""
    width, every = cells / 1000, steps // count if count else 0
    places = {"top": width / 4, "middle": width / 2, "above": width / 4 + 0.02}
    return parse(MODEL.format(width=width, height=width / 2, steps=steps, every=every, stride=stride, **places)).build()


def seconds(built: BuiltModel, folder: Path) -> float:
    """The time of all steps until the snapshots have their file's name, on all processors."""
    requested = requested_of(built.model, None, None, None)
    with requested.simulation(built, requested.resolve(built), built.steps) as simulation:
        started = time.perf_counter()
        with recording(Folder(folder), built, simulation, None, print) as recorded:
            step_to_end(simulation, built, recorded, lambda step: False)
        return time.perf_counter() - started


def price(taken: float, usual: float, count: int) -> dict[str, float]:
    """The price of so many snapshots; usual: seconds of the run without them."""
    return {"share of the run": taken / usual - 1, "seconds of each": (taken - usual) / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=4000, help="along the longer axis")
    parser.add_argument("--steps", type=int, default=960)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=None, help="where files are written (default: temporary)")
    given = parser.parse_args()
    models = {name: model(given.cells, given.steps, *case) for name, case in CASES.items()}
    taken: dict[str, list[float]] = {name: [] for name in models}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        seconds(models["none"], Path(folder))
        for number in range(given.rounds):
            for name in list(models)[:: -1 if number % 2 else 1]:
                taken[name].append(seconds(models[name], Path(folder)))
    usual = statistics.median(taken["none"])
    size = (given.cells + 1) * (given.cells // 2 + 1) * 4
    found = {
        "about": about(),
        "cells": given.cells * given.cells // 2,
        "steps": given.steps,
        "bytes of a whole snapshot": size,
        "seconds": taken,
        "price": {
            name: price(statistics.median(taken[name]), usual, CASES[name][0]) for name in CASES if name != "none"
        },
    }
    print(json.dumps(found, indent=1), save("snapshots_cpu", found))


if __name__ == "__main__":
    main()

"""The price of a checkpoint on CPUs: how long the run stands still for it, and how long its thread writes beside.

Usage: benchmarks/checkpoints.py [--cells 3000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from record import about, save

import peergrid
from peergrid import Grid, Problem, Receiver, Simulation
from peergrid.io.checkpoint import write_state

EVERY = 60.0  # seconds between two checkpoints


@peergrid.stencil
def wave(u, c):  # type: ignore[no-untyped-def]
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next[0, 0] = 2 * u[0, 0] - u.prev[0, 0] + c[0, 0] * around


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=3000, help="along each of two axes")
    parser.add_argument("--folder", type=Path, default=None, help="where checkpoints are written (default: temporary)")
    given = parser.parse_args()
    grid = Grid((given.cells, given.cells), "fixed")
    u = grid.field("u", np.random.default_rng(1).random(grid.shape))
    problem = Problem.of(wave(u, grid.field("c", np.full(grid.shape, 0.2))), [Receiver("r", "u", (5, 5))])
    taken, written = [], []
    with Simulation(problem, 100) as simulation, tempfile.TemporaryDirectory(dir=given.folder) as folder:
        simulation.run(20)
        for number in range(5):
            started = time.perf_counter()
            state = simulation.state()
            taken.append(time.perf_counter() - started)
            started = time.perf_counter()
            write_state(Path(folder) / f"{number}.h5", state)
            written.append(time.perf_counter() - started)
        size = sum(values.nbytes for values in state.fields.values())
    found = {
        "about": about(),
        "devices": str(simulation.devices),
        "cells": grid.box.size,
        "bytes": size,
        "still": {"seconds": taken, "share of a minute": statistics.median(taken) / EVERY},
        "beside": {"seconds": written, "share of a minute": statistics.median(written) / EVERY},
    }
    print(json.dumps(found, indent=1), save("checkpoints_cpu", found))


if __name__ == "__main__":
    main()

"""Waves in tilted media on many GPUs, on paper: the parts of a step, and how many slices hide a network; not measured.

    python benchmarks/wave_scaling.py
    python benchmarks/wave_scaling.py --measure

With --measure the parts are measured on two cores of this machine instead, a core for a device, and so is the number of
slices whose interior takes longer than their halos on each network.

TTI in two stages, 8th order in space, 512³ cells with `overlap`: on one host of up to eight H200s over NVLink, and on
three hosts of two over several networks, beside the speed-ups of a case study of 2009 on hosts of two GPUs. A
network is hidden where a step on a long chain of GPUs takes at most 2 % longer than the same chain on NVLink alone.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from record import about, save
from wave_problems import AXIS, FIRST, RADIUS, SECOND, along_axis, tilted

from peergrid import Grid, Options, Problem, Simulation
from peergrid.costs.machine import Line, Machine
from peergrid.costs.machines import machine_named
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.predict.forecast import Forecaster
from peergrid.predict.scaling import seconds_on
from peergrid.schedule import layout

NETWORKS = {
    "InfiniBand DDR, 1.6 GB/s, 5 us": Line(5e-6, 1.6e9),
    "InfiniBand QDR, 3.2 GB/s, 3 us": Line(3e-6, 3.2e9),
    "400 Gbit/s, 3 us": Line(3e-6, 50e9),
}
THEIRS = {"1 x 2": 1.98, "2 x 1": 1.97, "2 x 2": 3.98, "3 x 2": 4.50, "3 x 2, 768 cells": 5.60, "slices": [100, 70]}
SLICES = (4, 8, 16, 24, 32, 48, 64, 85, 100, 128, 192, 256, 384, 512, 768, 1024)
HIDDEN = 1.02
CHAIN = 16  # GPUs
MEASURED_CELLS = 96
OVERLAP = Options("overlap", 1)


def waves(slices: int, cells: int) -> Problem:
    """A step in so many slices of cells × cells; no array is made."""
    grid = Grid((slices + 2 * RADIUS, cells + 2 * RADIUS, cells + 2 * RADIUS))
    inside = Box((2 * RADIUS,) * 3, tuple(n - 2 * RADIUS for n in grid.shape))
    p, q, gp, gq, m, a, b = (grid.field(name) for name in ("p", "q", "gp", "gq", "m", "a", "b"))
    axis = [grid.field(name) for name in AXIS]
    advance = tilted(p, q, gp, gq, *axis, m, a, b, FIRST, SECOND).within(inside)
    return Problem.of([along_axis(p, q, gp, gq, *axis, FIRST), advance])


def parts(problem: Problem, machine: Machine, gpus: int) -> dict[str, float]:
    """Seconds of a step and of its parts on the busiest GPU, whatever these hide behind.

    An interior lasts from its first kernel to the end of its last, waits between them included.
    """
    found = Forecaster(problem, machine, gpus).forecast(OVERLAP)
    return {
        "seconds": found.seconds_per_step, "halo": found.boundary, "interior": found.interior,
        "exchange": found.exchange, "exposed": found.exposed,
    }  # fmt: skip


def hiding(machine: Machine, cells: int) -> tuple[int | None, dict[int, float]]:
    """The fewest slices for each GPU that hide the network, and for each number how many times as long a step is."""
    longer = {}
    for slices in SLICES:
        chain = waves(CHAIN * slices, cells)
        near = seconds_on(chain, replace(machine, network=None), OVERLAP, CHAIN)[0]
        longer[slices] = seconds_on(chain, machine, OVERLAP, CHAIN)[0] / near
    kept = [n for n in SLICES if all(longer[more] <= HIDDEN for more in SLICES if more >= n)]
    return (min(kept) if kept else None), longer


def measured(slices: int, cells: int) -> dict[str, float]:
    """Seconds of a step and of its parts on two cores, so many slices on each, in the fastest of some timelines."""
    with Simulation(waves(2 * slices, cells), 10**6, devices="cpu:2", options=OVERLAP) as run:
        run.run(4)
        found = []
        for _ in range(5):
            timeline = run.trace(4)
            parts = timeline.split()
            seconds = max(span.end for span in timeline.spans) / 4
            found.append((seconds, parts.boundary / 4, parts.interior / 4, parts.exchange / 4))
    return dict(zip(("seconds", "halo", "interior", "exchange"), min(found), strict=True))


def hidden_from(cells: int, slice_seconds: float) -> dict[str, int]:
    """The fewest slices whose interior takes longer than a halo on each network, at so many seconds for a slice."""
    problem = waves(256, cells)
    made = layout(problem, Partition.over(problem.grid, 2), OVERLAP)
    width = max(halo.target_box.shape[0] for halo in made.exchanged)
    sent = sum(halo.source_box.size for halo in made.exchanged if halo.source == 0)
    return {
        name: 2 * width + ceil((line.latency + sent * problem.itemsize / line.bandwidth) / slice_seconds)
        for name, line in NETWORKS.items()
    }


def measure() -> None:
    """The parts on this machine; writes benchmarks/results/wave-split-cpu.json."""
    rows = {slices: measured(slices, MEASURED_CELLS) for slices in (24, 32, 48, 64, 96)}
    for slices, row in rows.items():
        print(slices, {key: float(f"{value:.4g}") for key, value in row.items()}, flush=True)
    slope, rest = np.polyfit(list(rows), [row["seconds"] for row in rows.values()], 1)
    hidden = hidden_from(MEASURED_CELLS, slope)
    found = {"slices": rows, "slice_seconds": slope, "other_seconds": rest, "hidden_from": hidden}
    print({key: value for key, value in found.items() if key != "slices"})
    subject = f"TTI in slices of {MEASURED_CELLS}² cells on two cores, a core for a device"
    save("wave-split-cpu", {"what": subject, **found, **about()})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", action="store_true")
    measure() if parser.parse_args().measure else predict()


def predict() -> None:
    """The parts on H200s; writes benchmarks/results/wave-scaling-foretold.json."""
    host = machine_named("h200-x8")
    cube = waves(512, 512)
    found: dict[str, Any] = {"one host": {gpus: parts(cube, host, gpus) for gpus in (1, 2, 4, 8)}}
    one = found["one host"][1]["seconds"]
    for gpus, row in found["one host"].items():
        row["times_one"] = one / row["seconds"]
        print(gpus, {key: float(f"{value:.4g}") for key, value in row.items()}, flush=True)
    for name, line in NETWORKS.items():
        cases = {}
        for nodes, gpus, cells in ((2, 1, 512), (2, 2, 512), (3, 2, 512), (3, 2, 768)):
            machine = replace(host, gpus=gpus, nodes=nodes, network=line)
            problem = waves(cells, cells)
            row = parts(problem, machine, nodes * gpus)
            row["times_one"] = parts(problem, host, 1)["seconds"] / row["seconds"]
            cases[f"{nodes} x {gpus}, {cells} cells"] = row
            print(name, nodes, gpus, cells, {key: float(f"{value:.4g}") for key, value in row.items()}, flush=True)
        fewest, longer = hiding(replace(host, gpus=2, nodes=8, network=line), 512)
        print(f"{name}: hidden from {fewest} slices on", flush=True)
        found[name] = {"cases": cases, "slices_that_hide_it": fewest, "times_as_long_as_on_nvlink": longer}
    subject = "TTI on H200s; predicted, not measured"
    save("wave-scaling-foretold", {"what": subject, "foretold": found, "case_study": THEIRS, **about()})


if __name__ == "__main__":
    main()

"""Radar in three dimensions on CPU threads, media by index beside fields of coefficients, in turns.

    python benchmarks/media_cpu.py [--cells 200] [--rounds 5] [--steps 12]

Cubes in layers of soil, absorbers of 10 cells on all sides, float32, two threads: without losses, with losses, with
Lorentz poles; of 2 media, 40 and 200. `chosen` and `loaded` leave out the permutations of vectors, as on processors
that lack them: entries are chosen by comparisons, or loaded one by one.
Fields must be the same to the bit. Writes benchmarks/results/media_cpu.json: million cells a second, the median of the
rounds, and the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from record import about, save

from peergrid import Simulation
from peergrid.codegen.cpu import entries, vectors
from peergrid.models.fdtd3d import Absorber, Domain, Drive, ElectricDipole, Medium, Receiver, Slab, combinations
from peergrid.models.fdtd3d.build import build
from peergrid.models.fdtd3d.domain import SIDES, VACUUM, lorentz
from peergrid.models.waveforms import Ricker

SPACING = 0.002  # m
STEP = 3.8e-12  # s
WARM = 2  # steps before the first round
CASES = {
    "without losses": ((2, 0.0, False), ("fields", "index", "chosen")),
    "with losses": ((2, 0.005, False), ("fields", "index", "chosen", "loaded")),
    "Lorentz poles": ((2, 0.005, True), ("fields", "index")),
    "with losses, 40 media": ((40, 0.005, False), ("fields", "index")),
    "with losses, 200 media": ((200, 0.005, False), ("fields", "index")),
}


def domain(cells: int, count: int, conductivity: float, poles: bool) -> Domain:
    """Layers of so many media along z, a dipole and a receiver."""
    pole = (lorentz(1, 3e9, 1e9),) if poles else ()
    soils = (Medium(f"soil{k}", 4 + 0.02 * k, conductivity * (1 + 0.1 * k), poles=pole) for k in range(count - 1))
    layers = np.arange(cells + 1) * count // (cells + 1)
    ids = np.broadcast_to(layers.astype(np.uint8), (6, *[cells + 1] * 3))
    node = (cells // 2,) * 3
    return Domain(
        (cells,) * 3, (SPACING,) * 3, STEP, 10_000, (VACUUM, *soils), ids,
        absorber=Absorber(tuple((side, Slab(10)) for side in SIDES)),
        sources=(ElectricDipole("z", node, Drive(Ricker(1.5e9))),), receivers=(Receiver(node),),
    )  # fmt: skip


@contextmanager
def arranged(way: str) -> Iterator[None]:
    """What is built and compiled within is arranged in this way."""
    with ExitStack() as held:
        held.enter_context(patch.object(combinations, "MOST", 0 if way == "fields" else 256))
        if way in ("chosen", "loaded"):
            held.enter_context(patch.object(vectors, "shifts_vectors", lambda: False))
        if way == "loaded":
            held.enter_context(patch.object(entries, "CHOSEN", 0))
        yield


def measured(given: Domain, ways: tuple[str, ...], rounds: int, steps: int) -> dict[str, Any]:
    """The rates of some ways, in turns."""
    with ExitStack() as held:
        runs = {}
        for way in ways:
            with arranged(way):
                problem = build(given).problem
                assert bool(problem.tables) == (way != "fields")
                runs[way] = held.enter_context(Simulation(problem, WARM + rounds * steps, devices="cpu:2"))
                runs[way].run(WARM)
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, run in runs.items():
                start = time.perf_counter()
                run.run(steps)
                rates[way].append(run.problem.grid.box.size * steps / (time.perf_counter() - start) / 1e6)
        assert len({run.sha256() for run in runs.values()}) == 1
    ratios = {way: median(a / b for a, b in zip(rates[way], rates["fields"], strict=True)) for way in ways[1:]}
    return {"mcells_per_s": {way: median(found) for way, found in rates.items()}, "times_fields": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    asked = parser.parse_args()
    found = {}
    for name, (what, ways) in CASES.items():
        found[name] = measured(domain(asked.cells, *what), ways, asked.rounds, asked.steps)
        print(name, found[name], flush=True)
    print(save("media_cpu", {**about(), "cells": [asked.cells] * 3, "rounds": asked.rounds, "results": found}))


if __name__ == "__main__":
    main()

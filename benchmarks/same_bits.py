"""The same bits everywhere: one digest per problem over devices, strategies, depths and exchange orders.

    python benchmarks/same_bits.py [--steps 200]

The radar example runs the whole matrix for some steps, and every device count, strategy, depth and order once in full
length. Writes benchmarks/results/same_bits.json; exits 1 if any digest differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from record import about, save

from peergrid import Grid, Options, Problem, Simulation, stencil
from peergrid.grid import Index
from peergrid.models.fdtd import build
from peergrid.models.modelfile import read
from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.strategies import STRATEGIES

DEVICES, DEPTHS = (1, 2, 3, 4, 7), (1, 2, 3, 5, 8)
Case = tuple[Index, Options]


@stencil
def heat(u, k):
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next[0, 0, 0] = u[0, 0, 0] + k * (around - 6 * u[0, 0, 0])


@stencil
def wide(u):
    u.next[0, 0] = 0.5 * u[0, 0] + 0.1 * (u[-4, 0] + u[4, 0]) + 0.15 * (u[0, -4] + u[0, 4])


def random(shape: Index) -> np.ndarray:
    return np.random.default_rng(1).random(shape)


def cube() -> Problem:
    grid = Grid((48, 40, 36), boundary=("fixed", "fixed", "reflecting"))
    return Problem.of(heat(grid.field("u", random(grid.shape)), 0.1))


def radius_four() -> Problem:
    grid = Grid((160, 120))
    return Problem.of(wide(grid.field("u", random(grid.shape))))


def periodic() -> Problem:
    grid = Grid((150, 110), boundary="periodic", dtype="float64")
    return Problem.of(wide(grid.field("u", random(grid.shape))))


def matrix(splits: list[Index]) -> Iterator[Case]:
    """Every split, strategy, depth and order."""
    for split, strategy, depth, order in product(splits, STRATEGIES, DEPTHS, ORDERS):
        yield split, Options(strategy, depth, order=order)


def star(splits: list[Index]) -> Iterator[Case]:
    """Every split, strategy, depth and order once, the rest as usual."""
    yield from ((split, Options("overlap", 3)) for split in splits)
    yield from ((splits[1], Options(strategy, 2)) for strategy in STRATEGIES)
    yield from ((splits[2], Options("peer", depth)) for depth in DEPTHS)
    yield from ((splits[3], Options("async", 5, order=order)) for order in ORDERS)


def digests(problem: Problem, steps: int, cases: Iterator[Case]) -> tuple[set[str], int]:
    """All digests seen, and over how many runs."""
    seen: set[str] = set()
    count = 0
    for split, options in cases:
        devices = f"cpu:{int(np.prod(split))}"
        with Simulation(problem, steps, devices=devices, split=split, options=options) as simulation:
            simulation.run(steps)
            seen.add(simulation.sha256())
        count += 1
    return seen, count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    built = build(read(Path(__file__).parents[1] / "examples/gpr.toml"))
    slabs: list[Index] = [(n, 1) for n in DEVICES]
    plans = {
        "gpr, matrix": (built.problem, steps, matrix(slabs)),
        "gpr, full length": (built.problem, built.steps, star(slabs)),
        "heat 3d, split along two axes": (cube(), 60, matrix([(1, 1, 1), (2, 2, 1), (3, 2, 1)])),
        "radius 4": (radius_four(), 60, matrix([(1, 1), (2, 1), (4, 1), (2, 2)])),
        "periodic": (periodic(), 60, matrix([(1, 1), (3, 1), (7, 1), (2, 3)])),
    }
    found = []
    for name, (problem, length, cases) in plans.items():
        started = time.perf_counter()
        seen, runs = digests(problem, length, cases)
        found.append({"problem": name, "steps": length, "runs": runs, "digests": sorted(seen)})
        print(f"{name}: {runs} runs of {length} steps, {len(seen)} digest(s), {time.perf_counter() - started:.0f} s")
    save("same_bits", {**about(), "problems": found})
    return 0 if all(len(entry["digests"]) == 1 for entry in found) else 1


if __name__ == "__main__":
    sys.exit(main())

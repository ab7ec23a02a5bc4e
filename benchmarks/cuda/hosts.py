"""What issuing costs: every strategy, time per step and the host's share of it, to the bit as on one GPU.

    python benchmarks/cuda/hosts.py [--case jacobi] [--gpus 4] [--sizes 17408,4096] [--depths 1,8]
                                    [--strategies overlap,threads] [--route store] [--out hosts.json]

On a small grid the devices do next to nothing: there a step takes as long as it takes to issue it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import Grid, Options, Problem, Simulation  # noqa: E402
from peergrid.bench.problems import radar, relax  # noqa: E402

STRATEGIES = ("overlap", "threads", "async", "serial", "graph", "peer")
WARM, SAMPLE, SAMPLES = 48, 1008, 3
NOISE = 1_000_003


@dataclass(frozen=True)
class Row:
    """One case. host: what issuing took the busiest thread, without waiting; equal: the same bits as one GPU's."""

    case: str
    strategy: str
    depth: int
    route: str | None
    size: int
    gpus: int
    microseconds_per_step: float
    worst_microseconds_per_step: float
    host_microseconds_per_step: float
    gcells_per_s: float
    equal: bool
    notes: tuple[str, ...]


def jacobi(size: int) -> Problem:
    """On noise, so that every halo is unlike any other."""
    values = np.resize(np.random.default_rng(1).random(NOISE, np.float32), (size, size))
    return Problem.of(relax(Grid((size, size), boundary=("periodic", "fixed")).field("u", values)))


CASES: dict[str, tuple[Callable[[int], Problem], str]] = {
    "jacobi": (jacobi, "u"),
    "radar": (lambda size: radar(size, size, WARM + SAMPLES * SAMPLE), "Ez"),
}
"""Each with a field to compare."""


def finished(given: Problem, devices: str, options: Options) -> tuple[Simulation, list[float], list[float]]:
    """A run that is over, still open; seconds of each sample, and of the host's issuing."""
    simulation = Simulation(given, WARM + SAMPLES * SAMPLE, devices=devices, options=options)
    simulation.run(WARM)
    seconds, issuing = [], []
    for _ in range(SAMPLES):
        before, host = simulation.seconds, simulation.host_seconds or 0.0
        simulation.run(SAMPLE)
        seconds.append(simulation.seconds - before)
        issuing.append((simulation.host_seconds or 0.0) - host)
    return simulation, seconds, issuing


def rows(asked: argparse.Namespace) -> Iterator[Row]:
    devices = "cuda:" + ",".join(map(str, range(asked.gpus)))
    make, field = CASES[asked.case]
    for size in asked.sizes:
        given = make(size)
        reference, *_ = finished(given, "cuda:0", Options("overlap", depth=8))
        with reference:
            expected = reference.gather(field)
        for strategy in asked.strategies:
            for depth in asked.depths:
                simulation, seconds, issuing = finished(
                    given, devices, Options(strategy, depth=depth, route=asked.route)
                )
                with simulation:
                    equal = bool(np.array_equal(simulation.gather(field), expected))
                best = min(seconds) / SAMPLE
                yield Row(
                    asked.case, strategy, depth, asked.route, size, asked.gpus, best * 1e6, max(seconds) / SAMPLE * 1e6,
                    min(issuing) / SAMPLE * 1e6, size * size / best / 1e9, equal,
                    simulation.notes,
                )  # fmt: skip


def line(row: Row) -> str:
    return (
        f"{row.case} {row.size:6d} {row.strategy:8s} depth {row.depth}: {row.microseconds_per_step:7.1f} µs per step "
        f"(worst {row.worst_microseconds_per_step:7.1f}), host {row.host_microseconds_per_step:6.1f} µs, "
        f"{row.gcells_per_s:8.0f} GCells/s, {'same bits' if row.equal else 'OTHER BITS'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)

    def numbers(text: str) -> list[int]:
        return [int(n) for n in text.split(",")]

    parser.add_argument("--case", choices=CASES, default="jacobi")
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--sizes", type=numbers, default=[17408, 4096])
    parser.add_argument("--depths", type=numbers, default=[1, 8])
    parser.add_argument("--strategies", type=lambda text: text.split(","), default=list(STRATEGIES))
    parser.add_argument("--route", choices=["copy", "store", "host"])
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: list[dict[str, Any]] = []
    for row in rows(asked):
        print(line(row), flush=True)
        found.append(asdict(row))
        if asked.out:
            asked.out.write_text(json.dumps({"about": about(), "rows": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""Weak scaling on paper: the time of a step on 128 hosts of eight H200s over two networks, predicted, not measured.

    python benchmarks/weak_scaling.py

A long chain of equal slabs takes as long as five of them in its middle, one link between which is the network (see
`peergrid.predict.scaling`): what is predicted here of 16 GPUs on two hosts holds for 1,024 on 128.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from record import about, save

from peergrid.bench.problems import RADAR, relax
from peergrid.costs.machine import Line
from peergrid.costs.machines import machine_named
from peergrid.grid import Grid
from peergrid.models import parse
from peergrid.predict.scaling import seconds_on
from peergrid.schedule import Options
from peergrid.stencil import Problem

NETWORKS = {"25 Gbit/s, 10 µs": Line(10e-6, 25e9 / 8), "400 Gbit/s, 3 µs": Line(3e-6, 400e9 / 8)}
DEPTHS = (1, 2, 4, 8)
SEVERAL = 16  # GPUs of two hosts, which stand for more


def jacobi(rows: int) -> Problem:
    """Jacobi's step on rows of 17408 cells, as the tutorial has it."""
    grid = Grid((rows, 17408), boundary=("fixed", "fixed"))
    return Problem.of(relax(grid.field("u")))


def radar(rows: int) -> Problem:
    """A ground-penetrating radar on rows of 4096 cells."""
    x, y = (rows - 1) * 0.002, 4095 * 0.002
    text = RADAR.format(x=x, y=y, steps=1000, top=0.7 * y, sx=0.4 * x, sy=0.75 * y, rx=0.6 * x)
    return parse(text).build().problem


CASES: dict[str, tuple[Callable[[int], Problem], int]] = {
    "Jacobi, 17408 × 17408 on each GPU": (jacobi, 17408),
    "Jacobi, 2176 × 17408 on each GPU": (jacobi, 2176),
    "radar, 2048 × 4096 on each GPU": (radar, 2048),
}


def predicted(make: Callable[[int], Problem], rows: int) -> dict[str, Any]:
    """Seconds of a step: of one GPU alone at its best depth, and of many at every depth on both networks."""
    machine = machine_named("h200-x8")
    alone = {depth: seconds_on(make(rows), machine, Options("overlap", depth), 1)[0] for depth in DEPTHS}
    many = make(SEVERAL * rows)
    ways = {
        name: {
            depth: seconds_on(many, replace(machine, network=line, nodes=2), Options("overlap", depth), SEVERAL)[0]
            for depth in DEPTHS
        }
        for name, line in NETWORKS.items()
    }
    return {"one_gpu": alone, "many": ways}


def main() -> None:
    found = {name: predicted(*case) for name, case in CASES.items()}
    subject = "1,024 H200s on 128 hosts; predicted, not measured"
    networks = {name: [line.latency, line.bandwidth] for name, line in NETWORKS.items()}
    save("weak-scaling-foretold", {"what": subject, "networks": networks, "cases": found, **about()})
    for name, case in found.items():
        best = min(case["one_gpu"].values())
        for network, ways in case["many"].items():
            shares = "  ".join(f"{depth}: {best / seconds:6.1%}" for depth, seconds in ways.items())
            print(f"{name:36} {network:18} {best * 1e6:8.1f} us alone  {shares}")


if __name__ == "__main__":
    main()

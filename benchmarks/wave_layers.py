"""Sponges and perfectly matched layers: what they send back, and the time of a step with them.

    python benchmarks/wave_layers.py [MEDIUM]

The largest difference of a trace from that on a grid whose edges send nothing back in time, over the trace's largest
value: of a Ricker wave of 20 cells at 10 Hz in the middle of 61² nodes, at four places, to a corner and along an edge
too. Times: of 120³ nodes and their layers on two cores, the best of three.
Writes benchmarks/results/wave_layers.json, or wave_layers_MEDIUM.json of one medium alone.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from record import about, save

from peergrid import Simulation
from peergrid.grid import Array
from peergrid.models.wave import Medium, PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.models.wave.scheme import Absorber

LAYERS: tuple[tuple[Absorber, int], ...] = (("sponge", 20), ("sponge", 40), ("cpml", 10), ("cpml", 15), ("cpml", 20))
MEDIA: dict[str, dict[str, float]] = {
    "acoustic": {},
    "density": {"density": 1.0},
    "vti": {"epsilon": 0.2, "delta": 0.1},
    "tti": {"epsilon": 0.25, "delta": 0.1, "tilt": 0.6},
}
THICKER: tuple[tuple[Absorber, int], ...] = (("cpml", 30),)  # of tilted axes
THERE = np.array([(500.0, 300.0), (300.0, 590.0), (590.0, 590.0), (10.0, 100.0)])
WIDER, STEPS = 100, 20


def traces(nodes: int, off: float, more: dict[str, float], scheme: Scheme) -> Array:
    """The traces at THERE in so many nodes, everything moved by `off` metres."""
    propagator = Propagator(Medium((nodes, nodes), 10.0, 2000.0, **more), scheme)
    shot = Shot(propagator, [PointSource((300.0 + off,) * 2, Ricker(10.0))], THERE + off, propagator.steps(0.9))
    with Simulation(shot.problem, shot.steps, devices="cpu:2") as run:
        run.run(shot.steps)
        return shot.gather(run.traces()).traces


def echo(more: dict[str, float], absorber: Absorber, layer: int) -> float:
    """The largest that comes back to one of the places."""
    found = traces(61, 0.0, more, Scheme(layer=layer, absorber=absorber))
    expected = traces(61 + 2 * WIDER, 10.0 * WIDER, more, Scheme(layer=40))
    return float((np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max())


def seconds(more: dict[str, float], absorber: Absorber, layer: int) -> float:
    """A step, on two cores."""
    propagator = Propagator(Medium((120,) * 3, 10.0, 2000.0, **more), Scheme(layer=layer, absorber=absorber))
    shot = Shot(propagator, [PointSource((600.0,) * 3, Ricker(10.0))], [(700.0,) * 3], 10 * STEPS)
    best = float("inf")
    with Simulation(shot.problem, shot.steps, devices="cpu:2") as run:
        for _ in range(4):
            begun = time.perf_counter()
            run.run(STEPS)
            best = min(best, (time.perf_counter() - begun) / STEPS)
    return best


def main(*media: str) -> None:
    found: list[dict[str, Any]] = []
    for medium in media or MEDIA:
        more = MEDIA[medium]
        for absorber, layer in (*LAYERS, *(THICKER if medium == "tti" else ())):
            row = {"echo": echo(more, absorber, layer), "seconds_per_step": seconds(more, absorber, layer)}
            found.append({"medium": medium, "absorber": absorber, "layer": layer, **row})
            print(found[-1], flush=True)
    print(save("_".join(("wave_layers", *media)), {**about(), "layers": found}))


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""Waves in the roughest media for 10,000 steps: norms of the waves every thousand, at the largest stable time step.

    python benchmarks/waves_rough.py

Velocities, densities, Thomsen's parameters and angles are noise from node to node; waves begin as noise; with and
without matched layers of six cells. Writes benchmarks/results/waves_rough.json.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from record import about, save

from peergrid import Problem, Simulation
from peergrid.models.wave import Medium, Propagator, Scheme

STEPS, EVERY = 10_000, 1_000
SHAPES = ((48, 40), (18, 16, 14))


def media(shape: tuple[int, ...]) -> dict[str, Medium]:
    """A medium of each kind, of noise."""
    rng = np.random.default_rng(3)

    def noise(low: float, width: float) -> Any:
        return low + width * rng.random(shape)

    velocity, delta = noise(1500, 1500), noise(-0.1, 0.2)
    thomsen = {"epsilon": delta + noise(0, 0.3), "delta": delta}
    angles = {"tilt": noise(0, 6.3), **({"azimuth": noise(0, 6.3)} if len(shape) == 3 else {})}
    return {
        "acoustic": Medium(shape, 10.0, velocity),
        "density": Medium(shape, 10.0, velocity, density=noise(1, 2)),
        "vti": Medium(shape, 10.0, velocity, **thomsen),
        "tti": Medium(shape, 10.0, velocity, **thomsen, **angles),
    }


def from_noise(propagator: Propagator) -> Problem:
    """Waves that begin as noise, at rest."""
    ndim = propagator.medium.ndim
    problem, _ = propagator.problem(np.zeros((0, ndim)), np.zeros((0, 0)), np.zeros((0, ndim)))
    values = np.zeros(propagator.frame.grid.shape, np.float32)
    inside = propagator.frame.inside
    values[inside.slices((0,) * ndim)] = np.random.default_rng(7).random(inside.shape) - 0.5
    waves = {one.name for one in propagator.waves}
    fields = {
        name: replace(one, init=values) if name.removesuffix(".prev") in waves else one
        for name, one in problem.fields.items()
    }
    return replace(problem, fields=MappingProxyType(fields))


def norms(propagator: Propagator) -> list[float]:
    """Of the first wave, every so many steps."""
    found = list[float]()
    with Simulation(from_noise(propagator), STEPS, devices="cpu:1") as run:
        while run.step < STEPS:
            run.run(EVERY)
            found.append(float(np.linalg.norm(run.gather(propagator.waves[0].name))))
    return found


def main() -> None:
    found: dict[str, Any] = {}
    for shape in SHAPES:
        for kind, medium in media(shape).items():
            for layer in (0, 6):
                propagator = Propagator(medium, Scheme(layer=layer, courant=1.0, absorber="cpml"))
                name = f"{kind}, {'×'.join(map(str, shape))}{', cpml' if layer else ''}"
                found[name] = norms(propagator)
                print(name, [round(norm, 2) for norm in found[name]], flush=True)
    print(save("waves_rough", {**about(), "steps": STEPS, "every": EVERY, "norms": found}))


if __name__ == "__main__":
    main()

"""The time that receivers take: one, and 3,000 on a line of 121 nodes, on one core; writes wave_receivers.json.

python benchmarks/wave_receivers.py
"""

from __future__ import annotations

import time

import numpy as np
from record import about, save

from peergrid import Simulation
from peergrid.models.wave import Medium, PointSource, Propagator, Ricker, Scheme, Shot

STEPS = {2: 200, 3: 20}
SHAPES = {2: (181, 181), 3: (161, 101, 81)}
NODES, RECEIVERS, SPACING = 121, 3000, 10.0


def step_seconds(ndim: int, receivers: int) -> float:
    """Seconds of a step of acoustic waves, the best of five batches."""
    shape = SHAPES[ndim]
    velocity = 2000 + 500 * np.random.default_rng(1).random(shape)
    across = [SPACING * (shape[1] // 2)] * (ndim - 2)
    along = np.linspace(100.0, 100.0 + SPACING * (NODES - 1), receivers)
    line = np.array([(x, *across, 123.4) for x in along]).reshape(-1, ndim)
    propagator = Propagator(Medium(shape, SPACING, velocity), Scheme(layer=20))
    shot = Shot(propagator, [PointSource((801.0, *across, 503.0), Ricker(15.0))], line, 6 * STEPS[ndim])
    with Simulation(shot.problem, shot.steps, devices="cpu:1") as run:
        run.run(STEPS[ndim])
        found = []
        for _ in range(5):
            began = time.perf_counter()
            run.run(STEPS[ndim])
            found.append((time.perf_counter() - began) / STEPS[ndim])
    return min(found)


def main() -> None:
    rows = {f"{ndim}D, {n} receivers": step_seconds(ndim, n) for ndim in SHAPES for n in (0, 1, RECEIVERS)}
    for name, seconds in rows.items():
        print(name, f"{seconds * 1e6:.0f} us a step")
    save("wave_receivers", {"what": "seconds of a step on one core, by receivers", "steps": rows, **about()})


if __name__ == "__main__":
    main()

"""A B-scan: a model run once for every place of its antennas, the traces side by side as gprMax merges them.

Line sources, receivers and receiver arrays move along x; plane waves stay.

python examples/bscan.py examples/gpr.toml --traces 40 --step 0.02 -o bscan.h5
"""

import argparse
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from peergrid import Simulation, hold
from peergrid.models.fdtd import RadarModel, build
from peergrid.models.fdtd.results import from_rest
from peergrid.models.modelfile import read


def moved(model: RadarModel, distance: float) -> RadarModel:
    """The model with its antennas moved along x by so many metres."""

    def along(point):
        return point[0] + distance, point[1]

    return replace(
        model,
        sources=tuple(replace(s, position=along(s.position)) if s.kind == "line" else s for s in model.sources),
        receivers=tuple(replace(r, position=along(r.position)) for r in model.receivers),
        receiver_arrays=tuple(replace(a, first=along(a.first), last=along(a.last)) for a in model.receiver_arrays),
    )


parser = argparse.ArgumentParser(description="A B-scan of a model file, its antennas moved along x.")
parser.add_argument("model", type=Path)
parser.add_argument("--traces", type=int, default=40, help="how many places (40)")
parser.add_argument("--step", type=float, default=0.02, help="metres from one place to the next (0.02)")
parser.add_argument("-o", "--output", type=Path, default=Path("bscan.h5"))
asked = parser.parse_args()

model = read(asked.model)
scans = []
with hold() as devices:  # GPUs need not be set up for every trace
    for number in range(asked.traces):
        built = build(moved(model, number * asked.step))
        with Simulation(built.problem, built.steps, devices=devices) as simulation:
            simulation.run(built.steps)
            simulation.check()
            scans.append(simulation.traces())
        print(f"trace {number + 1} of {asked.traces}")

with h5py.File(asked.output, "w") as file:
    file.attrs.update({"Title": model.model.title, "dt": built.dt, "Iterations": built.steps + 1})
    file.attrs.update({"nrx": len(built.recorders), "rxsteps": (asked.step, 0.0, 0.0)})
    for number, recorder in enumerate(built.recorders, start=1):
        for component, name in recorder.traces.items():
            section = np.stack([from_rest(scan[name], built.units[component]) for scan in scans], axis=1)
            file[f"rxs/rx{number}/{component}"] = section  # one column for each place
        file[f"rxs/rx{number}"].attrs["Name"] = recorder.name
print(asked.output)

"""Radar in three dimensions beside gprMax: traces of the same rasterised models, and rates in turns.

    python benchmarks/gprmax3d.py --gprmax PYTHON [--what traces,speed] [--rounds 3] [--out gprmax3d.json]

PYTHON: the interpreter of an environment with gprMax 4.0.1. Each model is written as an input file and run by gprMax,
in both precisions; its media on edges become a `Domain`, which is run here. The relative L2 difference of each trace is
recorded. Rates are of stepping alone, 200³ cells with absorbers of 10 cells, float32, two threads each, one program
after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

import peergrid  # noqa: E402
from peergrid import Options, Simulation  # noqa: E402
from peergrid.models import fdtd3d  # noqa: E402
from peergrid.models.fdtd3d import (  # noqa: E402
    Absorber,
    BuiltDomain,
    Domain,
    Drive,
    ElectricDipole,
    Grading,
    MagneticDipole,
    Medium,
    Pole,
    Receiver,
    Slab,
    Stretch,
    TransmissionLine,
    VoltageSource,
)
from peergrid.models.fdtd3d.constants import ETA_0  # noqa: E402
from peergrid.models.fdtd3d.results import samples  # noqa: E402
from peergrid.models.waveforms import Gaussian, Ricker  # noqa: E402

SIDES = {f"{axis}{word}": f"{axis}{sign}" for axis in "xyz" for word, sign in (("minus", "-"), ("plus", "+"))}
RICKER, GAUSSIAN = Drive(Ricker(1.5e9)), Drive(Gaussian(3e9))
CUT = Drive(Ricker(1.5e9), 1e-11, 1.2e-9)
SPHERE = """#domain: 0.08 0.084 0.09
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 400
#material: 4 0.005 1 0 soil
#material: 9 0.02 2 3 ball
#box: 0 0 0 0.08 0.084 0.046 soil
#sphere: 0.04 0.042 0.03 0.01 ball
#waveform: ricker 1 1.5e9 w
#hertzian_dipole: z 0.04 0.042 0.056 w
#rx: 0.05 0.046 0.056
#rx: 0.03 0.05 0.03
"""
DISPERSIVE = """#domain: 0.06 0.06 0.07
#dx_dy_dz: 0.002 0.0024 0.0028
#time_window: 400
#material: 4 0.005 1 0 wet
#add_dispersion_debye: 2 3 1e-11 1.5 4e-11 wet
#material: 2 0.001 1 0 resonant
#add_dispersion_lorentz: 1 2 3e9 1e9 resonant
#material: 3 0.0 1.5 0.4 plasma
#add_dispersion_drude: 1 2e9 5e9 plasma
#box: 0 0 0 0.06 0.06 0.028 wet
#box: 0.04 0 0.028 0.06 0.06 0.042 resonant
#box: 0.0 0 0.028 0.01 0.06 0.042 plasma
#waveform: ricker 1 1.5e9 w
#magnetic_dipole: y 0.03 0.03 0.042 w
#hertzian_dipole: x 0.034 0.03 0.042 w 1e-11 1.2e-9
#voltage_source: y 0.026 0.036 0.042 50 w
#rx: 0.04 0.036 0.042
#rx: 0.02 0.024 0.016
#pml_cells: 6
"""
ANTENNA = """#domain: 0.06 0.06 0.07
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 500
#waveform: gaussian 1 3e9 w
#transmission_line: z 0.03 0.03 0.036 73 w
#edge: 0.03 0.03 0.022 0.03 0.03 0.036 pec
#edge: 0.03 0.03 0.038 0.03 0.03 0.052 pec
#plate: 0.01 0.01 0.012 0.05 0.05 0.012 pec
#rx: 0.04 0.036 0.036
#rx: 0.02 0.024 0.016
#pml_cells: 4 5 6 7 8 9
"""
PLANE = """#domain: 0.1 0.12 inf
#domain_mode: TE
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 400
#material: 4 0.005 1 0 soil
#box: 0 0 0 0.1 0.05 0.002 soil
#waveform: ricker 1 1.5e9 w
#hertzian_dipole: x 0.05 0.06 0.002 w
#voltage_source: x 0.03 0.06 0.002 0 w
#rx: 0.06 0.07 0.002
#pml_cells: 10 10 0 10 10 0
"""
FAST = """#domain: 0.4 0.4 0.4
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 60
#material: 4 0 1 0 soil
#box: 0 0 0 0.4 0.4 0.2 soil
#waveform: ricker 1 1.5e9 w
#hertzian_dipole: z 0.2 0.2 0.206 w
#rx: 0.22 0.2 0.206
#pml_cells: 10
"""
FIRST = "#pml_cfs: constant forward 0 0 constant forward 1 1 quartic forward 0 None\n"
TAPERED = "#pml_cfs: linear reverse 0 0.05 quartic forward 0 3 cubic forward 0 2\n"
MATCHED = "#pml_cfs: quartic forward 0 20 quartic forward 1 3 cubic forward 0 2\n"


NONE = Absorber()


@dataclass(frozen=True)
class Model:
    """An input file of gprMax, and what its lines about absorbers, sources and receivers mean here."""

    text: str
    sources: tuple[fdtd3d.domain.Source, ...]
    receivers: tuple[Receiver, ...]
    absorber: Absorber = NONE
    mode: fdtd3d.domain.Mode = "3D"


HALF_SPACE = (ElectricDipole("z", (20, 21, 28), RICKER),), (Receiver((25, 23, 28)), Receiver((15, 25, 15)))
MIXED = (
    (
        MagneticDipole("y", (15, 12, 15), RICKER),
        ElectricDipole("x", (17, 12, 15), CUT),
        VoltageSource("y", (13, 15, 15), RICKER, 50.0),
    ),
    (Receiver((20, 15, 15)), Receiver((10, 10, 6))),
)
FED = (TransmissionLine("z", (15, 15, 18), GAUSSIAN, 73.0),), (Receiver((20, 18, 18)), Receiver((10, 12, 8)))
ADDED = Stretch(Grading(0.0, 0.05, 1, reverse=True), Grading(0.0, 3.0, 4), Grading(0.0, 2.0, 3))
MULTIPLIED = Stretch(Grading(0.0, 20.0, 4), Grading(1.0, 3.0, 4), Grading(0.0, 2.0, 3))
MODELS = {
    "half space with a sphere, no absorbers": Model(SPHERE + "#pml_cells: 0\n", *HALF_SPACE),
    "half space with a sphere": Model(SPHERE + "#pml_cells: 8\n", *HALF_SPACE),
    "Debye, Lorentz and Drude media; dipoles, voltage source": Model(DISPERSIVE, *MIXED),
    "the same, MRIPML of two stretches": Model(
        DISPERSIVE + "#pml_formulation: MRIPML\n" + FIRST + TAPERED, *MIXED, Absorber((), "MRIPML", (Stretch(), ADDED))
    ),
    "transmission line and dipole over a plate": Model(ANTENNA, *FED),
    "the same, HORIPML of two stretches": Model(
        ANTENNA + FIRST + MATCHED, *FED, Absorber((), "HORIPML", (Stretch(), MULTIPLIED))
    ),
    "TEz, dipole and hard source": Model(
        PLANE,
        (ElectricDipole("x", (25, 30, 0), RICKER), VoltageSource("x", (15, 30, 0), RICKER, 0.0)),
        (Receiver((30, 35, 0)),),
        mode="TEz",
    ),
}


def solved(text: str, python: str, folder: Path, precision: str) -> tuple[dict[str, Any], Any, Path]:
    """What gprMax made of an input file: its grid, the media of edges, its output file."""
    (folder / "model.in").write_text(f"#title: model\n{text}")
    given = [
        python,
        str(ROOT / "benchmarks/gprmax_grid.py"),
        str(folder / "model.in"),
        str(folder / "grid.npz"),
        precision,
    ]
    threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(given, capture_output=True, text=True, env=os.environ | threads, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    found = np.load(folder / "grid.npz")
    return json.loads(str(found["about"])), found["ids"], folder / "model.h5"


def domain_of(model: Model, grid: dict[str, Any], ids: Any, dtype: Any) -> Domain:
    """gprMax's grid as a domain. The resistance of a voltage source is taken out of its media: it is added here."""
    media = []
    for given in grid["media"]:
        poles = (Pole(complex(a, b), complex(c, d), e) for a, b, c, d, e in given["poles"])
        media.append(Medium(given["name"], *given["numbers"], tuple(poles)))
    names = [medium.name for medium in media]
    for number, name in enumerate(names):
        if "VoltageSource" in name:
            ids[ids == number] = names.index(name.rsplit("+", 1)[0])
    cells, axis = list(grid["cells"]), "xyz".find(model.mode[-1])
    if axis >= 0:  # the plane that lives
        ids, cells[axis] = np.take(ids, [1], axis=1 + axis), 1
    slabs = []
    for direction, thickness, most in grid["slabs"]:
        spacing = grid["spacing"]["xyz".index(direction[0])]
        slabs.append((SIDES[direction], Slab(thickness, (0.8 * 5 / (ETA_0 * spacing * most)) ** 2)))
    return Domain(
        tuple(cells), tuple(grid["spacing"]), grid["dt"], grid["samples"] - 1, tuple(media), np.ascontiguousarray(ids),
        model.mode, dtype, replace(model.absorber, slabs=tuple(slabs)), model.sources, model.receivers,
    )  # fmt: skip


def differences(built: BuiltDomain, path: Path) -> dict[str, float]:
    """The relative L2 difference of E and of H at each receiver, as vectors, and of each line's voltage and current.

    A component that vanishes by symmetry is rounding alone, in both programs.
    """
    traces = peergrid.run(built.problem, steps=built.steps, devices="cpu:2", options=Options("async", depth=1)).traces
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    with h5py.File(path) as file:
        for number, recorder in enumerate(built.recorders, start=1):
            for output, parts in recorder.outputs.items():
                name = f"rxs/rx{number}/{output}"
                if parts and name in file:
                    here = pairs.setdefault(name[:-1], [])
                    here.append((samples(built, parts, traces), file[name][:]))
        for number, line in enumerate(built.lines, start=1):
            for output, name in (("Vtotal", line.voltage), ("Itotal", line.current)):
                there = f"tls/tl{number}/{output}"
                pairs[there] = [(samples(built, ((1.0, name),), traces), file[there][: built.steps + 1])]
    return {
        key: float(np.linalg.norm([a - b for a, b in found]) / np.linalg.norm([b for _, b in found]))
        for key, found in pairs.items()
    }


def compare(python: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, model in MODELS.items():
        found[name] = {}
        for precision in ("double", "single"):
            with tempfile.TemporaryDirectory() as folder:
                grid, ids, path = solved(model.text, python, Path(folder), precision)
                dtype = "float64" if precision == "double" else "float32"
                traces = differences(fdtd3d.build(domain_of(model, grid, ids, dtype)), path)
                found[name][precision] = {"worst": max(traces.values()), "traces": traces}
        print(name, {key: f"{value['worst']:.1e}" for key, value in found[name].items()}, flush=True)
    return found


def speed(python: str, rounds: int) -> dict[str, Any]:
    """Mcells/s of stepping alone, in turns."""
    model = Model(FAST, (ElectricDipole("z", (100, 100, 103), RICKER),), (Receiver((110, 100, 103)),))
    rates: dict[str, list[float]] = {"gprmax": [], "peergrid": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            grid, ids, _ = solved(model.text, python, Path(folder), "single")
        rates["gprmax"].append(200**3 * grid["samples"] / grid["seconds"] / 1e6)
        problem = fdtd3d.build(domain_of(model, grid, ids, "float32")).problem
        with Simulation(problem, steps=96, devices="cpu:2") as simulation:
            simulation.run(32)  # compiles what is not yet
            before = simulation.seconds
            simulation.run(64)
            rates["peergrid"].append(200**3 * 64 / (simulation.seconds - before) / 1e6)
            options = str(simulation.options)
        print({key: [round(rate) for rate in values] for key, values in rates.items()}, flush=True)
    ratio = median(a / b for a, b in zip(rates["peergrid"], rates["gprmax"], strict=True))
    return {"mcells_per_s": rates, "median_ratio": ratio, "options": options}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gprmax", required=True, help="the interpreter of an environment with gprMax")
    parser.add_argument("--what", default="traces,speed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    version = subprocess.run(
        [given.gprmax, "-c", "import gprMax; print(gprMax.__version__)"], capture_output=True, text=True
    )
    found: dict[str, Any] = {
        "about": about(("peergrid", "numpy", "numba", "llvmlite")),
        "gprmax": version.stdout.split()[-1],
    }
    parts: dict[str, Callable[[], Any]] = {
        "traces": lambda: compare(given.gprmax),
        "speed": lambda: speed(given.gprmax, given.rounds),
    }
    for word in given.what.split(","):
        found[word] = parts[word]()
        if given.out:
            given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

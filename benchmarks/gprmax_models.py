"""Models that gprMax ships, run whole from their input files in both programs: the differences of all traces.

    python benchmarks/gprmax_models.py --gprmax PYTHON --folder FOLDER [--only WORD] [--out gprmax_models.json]

PYTHON: the interpreter of an environment with gprMax 4.0.1. FOLDER: its models as `gprmax_expand.py` leaves them, `pkg`
of the package, `master` and `devel` of the repository. Both run in double precision. `#time_window` is cut to so many
samples; views and snapshots are left out; what is drawn at random without a seed gets one, and tests of objects a
receiver in their midst. For each receiver the relative L2 difference of E and of H as vectors, of each line that of
voltage and current, where they are not silent in both. Besides the files of gprMax there are the models of
`gprmax3d.py`, here read from their text.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from gprmax3d import MODELS  # noqa: E402
from record import about  # noqa: E402

from peergrid.gprmax import read  # noqa: E402
from peergrid.jobs import run_model  # noqa: E402

TESTS, EXAMPLES = "devel/reframe_tests/tests/src", "pkg/_examples"
SHIPPED = {
    f"{EXAMPLES}/gpr/basic/cylinder_Ascan_2D.in": 637,
    f"{EXAMPLES}/features/waveforms/gauspulse.in": 600,
    f"{EXAMPLES}/features/plane_waves/dielectric_sphere_tfsf.in": 200,
    f"{EXAMPLES}/gpr/materials/heterogeneous_soil.in": 150,
    f"{EXAMPLES}/gpr/antennas/gssi_1500/antenna_like_GSSI_1500_fs.in": 120,
    f"{TESTS}/2d_tests/2D_ExHyHz_hs.in": 600,
    f"{TESTS}/2d_tests/2D_EyHxHz.in": 600,
    f"{TESTS}/2d_tests/2D_EzHxHy.in": 600,
    "devel/examples/metal_test.in": 500,
    "devel/examples/pml_test_horipml.in": 500,
    "devel/examples/pml_test_mripml.in": 500,
    f"{TESTS}/source_tests/hertzian_dipole_fs.in": 150,
    f"{TESTS}/source_tests/magnetic_dipole_fs.in": 150,
    f"{TESTS}/source_tests/transmission_line_fs.in": 150,
    f"{TESTS}/material_tests/hertzian_dipole_dispersive.in": 150,
    f"{TESTS}/material_tests/magnetic_dipole_hs.in": 150,
    f"{TESTS}/geometry_tests/cone_geometry/non_axis_aligned_cone.in": 220,
    f"{TESTS}/geometry_tests/cylinder_geometry/cylinder_non_axis_aligned.in": 220,
    f"{TESTS}/geometry_tests/cylindrical_sector_geometry/cylindrical_sector_z_rigid.in": 220,
    f"{TESTS}/geometry_tests/ellipsoid_geometry/ellipsoid_full.in": 220,
    f"{TESTS}/geometry_tests/sphere_geometry/sphere_full.in": 220,
    f"{TESTS}/geometry_tests/triangle_geometry/triangle_y_small.in": 220,
    f"{TESTS}/geometry_tests/plate_geometry/plate_x_full.in": 220,
    f"{TESTS}/geometry_tests/edge_geometry/edge_z_small.in": 220,
    f"{TESTS}/geometry_tests/fractal_box_geometry/fractal_box_weighted.in": 220,
    f"{TESTS}/geometry_tests/add_grass_geometry/add_grass_small.in": 220,
}
"""Files, and the samples of a trace."""

WAVES = """#domain: 0.07 0.066 0.074
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 240
#pml_cells: 6
#material: 4 0.01 1 0 ball
#waveform: ricker 1 4e9 w
#sphere: 0.034 0.034 0.038 0.006 ball
#rx: 0.03 0.036 0.036
#rx: 0.016 0.034 0.036
#rx: 0.05 0.05 0.056
#plane_wave_{}: 0.022 0.022 0.024 0.046 0.044 0.052 {} w
"""
DIRECTIONS = ("vector 0 -1 0 40", "vector 2 1 0 90", "vector 1 2 3 40", "angles 36.7 63.4 10", "vector 1 -2 1 40")
"""A ball in plane waves."""

LAYERS = """#domain: 0.06 0.056 0.09
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 300
#pml_cells: 6
#material: 4 0.01 1 0 soil
#material: 3 0.02 1 0 wet
#add_dispersion_debye: 1 4 2e-11 wet
#waveform: ricker 1 4e9 w
#box: {} soil
#box: {} wet
#sphere: 0.03 0.028 0.044 0.004 pec
#rx: 0.03 0.036 0.036
#rx: 0.03 0.034 0.058
#rx: 0.014 0.034 0.036
#plane_wave_{}
"""
BENEATH, BETWEEN = "0 0 0.05 0.06 0.056 0.09", "0 0 0.044 0.06 0.056 0.05"
ALL = "0 0 0 0.06 0.056 0.09"
MET = {
    "plane wave onto a Debye layer over lossy soil": (
        BENEATH,
        BETWEEN,
        "axial: 0.02 0.02 0.026 0.044 0.04 0.064 30 z w",
    ),
    "plane wave in Debye soil": (BENEATH, ALL, "vector: 0.02 0.02 0.026 0.044 0.04 0.064 0 0 1 90 w wet"),
}
"""A conducting ball in a wave that meets layers, and in one through a medium with a pole."""

WIRES = """#domain: 0.07 0.066 0.08
#dx_dy_dz: 0.002 0.003 0.0025
#time_window: 240
#pml_cells: 6
#material: 4 0.01 1 0 soil
#waveform: ricker 1 4e9 w
#box: 0 0 0 0.07 0.066 0.03 soil
#thin_wire: 0.04 0.036 0.02 0.04 0.036 0.06 0.0004
#thin_wire: 0.02 0.018 0.04 0.02 0.048 0.04 0.0007
#hertzian_dipole: z 0.03 0.036 0.04 w
#rx: 0.048 0.036 0.036
#rx: 0.02 0.034 0.036
#rx: 0.04 0.039 0.05
"""

MONOPOLE = """#domain: 0.06 0.066 0.08
#dx_dy_dz: 0.002 0.003 0.0025
#time_window: 300
#pml_cells: 6
#material: 4 0.01 1 0 soil
#waveform: gaussiandot 1 3e9 w
#waveform: ricker 2 4e9 v
#box: 0 0 0.06 0.06 0.066 0.08 soil
#plate: 0 0 0.02 0.06 0.066 0.02 pec
#thin_wire: 0.03 0.033 0.02 0.03 0.033 0.045 0.0005
#magnetic_frill_source: z 0.03 0.033 0.02 50 w
#plate: 0.016 0 0.03 0.016 0.066 0.08 pec
#thin_wire: 0.016 0.021 0.05 0.026 0.021 0.05 0.0004
#magnetic_frill_source: x 0.016 0.021 0.05 75 v 1e-10 1e-9
#rx: 0.036 0.036 0.036
#rx: 0.04 0.042 0.07
"""

TIES = "cells whose centres lie exactly on a slanted face: rounding decides, of single precision in gprMax"
LATE = "gprMax starts some components of a wave towards lower x, y or z up to a cell late"
ONE = "gprMax sends all frequencies of the wave with the impedance of one"
EXPLAINED = {
    "plane wave in Debye soil": ONE,
    "plane wave, vector 1 -2 1 40": LATE,
    f"{TESTS}/geometry_tests/cone_geometry/non_axis_aligned_cone.in": TIES,
    f"{TESTS}/geometry_tests/cylinder_geometry/cylinder_non_axis_aligned.in": TIES,
}
"""Why models differ that do."""

UNSEEDED = re.compile(r"^(#fractal_box:(?: +\S+){13}|#add_surface_roughness:(?: +\S+){12}) *$", re.M)
NEAR = "\n#rx: 0.04 0.045 0.05\n"  # in tests of objects, whose own receivers hear nothing for long
LEFT_OUT = re.compile(r"^#(geometry_view|snapshot|geometry_objects_write|num_threads|omp_threads|messages):.*\n?", re.M)


def models(folder: Path) -> Iterator[tuple[str, str, Path | None]]:
    """Names, texts, and the folder of files that they name."""
    for name, model in MODELS.items():
        yield name, model.text.replace("0.002 soil", "inf soil"), None  # both cells of a TE plane
    yield "thin wires", WIRES, None
    yield "wires fed by coaxial lines", MONOPOLE, None
    for words in DIRECTIONS:
        yield f"plane wave, {words}", WAVES.format(*words.split(" ", 1)), None
    for name, words in MET.items():
        yield name, LAYERS.format(*words), None
    for file, samples in SHIPPED.items():
        text = LEFT_OUT.sub("", (folder / file).read_text())
        if "geometry_tests" in file:
            text += NEAR
        text = UNSEEDED.sub(r"\1 7", text)
        yield file, re.sub(r"^#time_window:.*", f"#time_window: {samples}", text, flags=re.M), (folder / file).parent


def compared(text: str, beside: Path | None, python: str) -> dict[str, Any]:
    """The differences of one model, by receiver and line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in beside.iterdir() if beside else ():
            if file.suffix in (".txt", ".json", ".h5") and file.stat().st_size < 1 << 24:
                shutil.copy(file, folder)
        (folder / "model.in").write_text(text)
        call = [python, "-m", "gprMax", "model.in", "-cpu_precision", "double", "--hide-progress-bars",
                "--log-level", "30", "--allow-underresolved"]  # fmt: skip
        threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=os.environ | threads)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        model = read(folder / "model.in").with_dtype("float64")
        run_model(model.without_pictures(), folder / "out", devices="cpu:2")
        found = differences(folder / "model.h5", folder / "out/results.h5")
    samples = model.steps + 1
    return {"cells": model.shape, "samples": samples, "worst": max(found.values()), "traces": found}


def differences(theirs: Path, ours: Path) -> dict[str, float]:
    """The relative L2 differences of the vectors at receivers, and of lines; of what is zero in both, 0."""
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    with h5py.File(theirs) as there, h5py.File(ours) as here:
        groups = {
            "rxs": ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz"), "tls": ("Vtotal", "Itotal"), "frills": ("Vtotal", "Itot"),
        }  # fmt: skip
        for group, names in groups.items():
            for one in there.get(group, ()):
                for name in names:
                    path = f"{group}/{one}/{name}"
                    if path in there:
                        key = path[:-1] if group == "rxs" else path
                        own = here[path][:]
                        pairs.setdefault(key, []).append((own, there[path][: len(own)]))
    heard = {key: [np.stack(one) for one in zip(*found, strict=True)] for key, found in pairs.items()}
    return {
        key: float(np.linalg.norm(own - expected) / np.linalg.norm(expected))
        for key, (own, expected) in heard.items()
        if own.any() or expected.any()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gprmax", required=True, help="the interpreter of an environment with gprMax")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", default="", help="models whose names have this in them")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    record = {"about": about(("peergrid", "numpy", "numba", "llvmlite")), "gprmax": "4.0.1", "models": found}
    for name, text, beside in models(given.folder):
        if given.only in name:
            found[name] = compared(text, beside, given.gprmax)
            found[name] |= {"explained": EXPLAINED[name]} if name in EXPLAINED else {}
            print(name, found[name]["cells"], f"{found[name]['worst']:.1e}", flush=True)
            if given.out:
                given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

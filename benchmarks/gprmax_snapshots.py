"""The price of snapshots of gprMax's input files on CPUs: whole runs with and without them, in turns.

Usage: benchmarks/gprmax_snapshots.py [--rounds 3]

120³ cells in single precision, absorbers of 10 cells, 200 steps; a snapshot of all six components in the whole domain
(41 MB) every 20 steps, and one of a slice (0.35 MB) as often. Seconds are of whole runs, results included.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from record import about, save

from peergrid.gprmax import read
from peergrid.jobs import run_model

MODEL = """#domain: 0.24 0.24 0.24
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 201
#material: 4 0 1 0 soil
#box: 0 0 0 0.24 0.24 0.12 soil
#waveform: ricker 1 1.5e9 w
#hertzian_dipole: z 0.12 0.12 0.126 w
#rx: 0.14 0.12 0.126
"""
REGIONS = {"none": "", "slice": "0 0.12 0 0.24 0.122 0.24", "whole": "0 0 0 0.24 0.24 0.24"}
EVERY = 20


def text(region: str) -> str:
    """The model with snapshots of a region."""
    steps = range(EVERY, 201, EVERY) if region else ()
    return MODEL + "".join(f"#snapshot: {region} 0.002 0.002 0.002 {step} s{step}\n" for step in steps)


def seconds(region: str) -> tuple[float, int]:
    """Seconds of a run with snapshots of a region, and their bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.in").write_text(text(region))
        began = time.perf_counter()
        run_model(read(folder / "model.in"), folder / "out", devices="cpu:2")
        return time.perf_counter() - began, sum(file.stat().st_size for file in (folder / "out").glob("*.vtkhdf"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    seconds("")  # compiles what is not yet
    taken: dict[str, list[float]] = {name: [] for name in REGIONS}
    sizes: dict[str, int] = {}
    for _ in range(rounds):
        for name, region in REGIONS.items():
            found, sizes[name] = seconds(region)
            taken[name].append(found)
            print(name, f"{found:.2f} s, {sizes[name] / 1e6:.1f} MB", flush=True)
    added = {
        name: median(a / b - 1 for a, b in zip(taken[name], taken["none"], strict=True)) for name in ("slice", "whole")
    }
    save("gprmax_snapshots", {**about(), "seconds": taken, "bytes": sizes, "added": added})


if __name__ == "__main__":
    main()

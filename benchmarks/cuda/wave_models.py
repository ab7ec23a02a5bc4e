"""Models of seismic waves as `peergrid run` takes them, on one GPU and on two: rates, and the same bits.

    python benchmarks/cuda/wave_models.py [--out FILE] [--cells 512] [--steps 400] [--seconds 55] [--kinds acoustic3d]
    python benchmarks/cuda/wave_models.py --bits 'cpu:2;cuda:0;cuda:0,1' [--cells 112] [--steps 60]

Grids of so many cells along each axis (TTI: three quarters of them), absorbing layers of 40 cells included, float32,
8th order, velocities (and Thomsen's parameters, and angles) in layers, a source and 2,500 receivers between nodes. The
first half of the steps warms up; times are those of stepping, with `overlap`. A rate counts all cells. With `--bits`
nothing is timed: fields and traces of all kinds are compared between devices and strategies.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import numpy as np  # noqa: E402
from record import about  # noqa: E402

from peergrid import Options, Simulation  # noqa: E402
from peergrid.models import BuiltModel, parse  # noqa: E402

MODEL = """
[model]
kind = "{kind}"
title = "{kind}"
[grid]
size = [{length}, {length}, {length}]
spacing = 10.0
steps = {steps}
[medium]
velocity = 1500.0
{medium}
[[layer]]
top = 400.0
velocity = 2200.0
{layer}
[[layer]]
top = 1200.0
velocity = 3000.0
[[source]]
position = [{middle}, {middle}, 53.0]
waveform = {{ kind = "ricker", frequency = 15.0 }}
"""
LINE = """
[[receiver_array]]
first = [103.0, {y}, 27.0]
last = [{last}, {y}, 27.0]
count = 50
"""
KINDS = {
    "acoustic3d": ("", ""),
    "vti3d": ("epsilon = 0.0\ndelta = 0.0", "epsilon = 0.2\ndelta = 0.1"),
    "tti3d": (
        "epsilon = 0.0\ndelta = 0.0\ntilt = 0.0\nazimuth = 0.0",
        "epsilon = 0.2\ndelta = 0.1\ntilt = 30.0\nazimuth = 20.0",
    ),
}


def model_text(kind: str, cells: int, steps: int) -> str:
    """A model file on a grid of so many cells along each axis."""
    length = (cells - 2 * 44 - 1) * 10.0
    lines = (LINE.format(y=103.0 + k * (length - 200) / 50, last=length - 97.0) for k in range(50))
    medium, layer = KINDS[kind]
    head = MODEL.format(kind=kind, length=length, middle=length / 2 + 3, steps=steps, medium=medium, layer=layer)
    return head + "".join(lines)


def measured(built: BuiltModel, devices: str) -> dict[str, Any]:
    """A run of a model on some devices: half of the steps warm up."""
    count, steps = devices.count(",") + 1, built.steps
    with Simulation(built.problem, steps, devices=devices, options=Options("overlap")) as run:
        run.run(steps // 2)
        before = run.seconds
        run.run(steps - steps // 2)
        seconds = run.seconds - before
        traces = np.array(list(run.traces().values()))
        notes, digest = run.notes, run.sha256()
    rate = built.problem.grid.box.size * (steps - steps // 2) / seconds / 1e9
    return {
        "kind": built.model.title, "devices": devices, "gpus": count, "shape": built.problem.grid.shape,
        "gcells_per_s": rate, "seconds": seconds, "receivers": len(traces),
        "loudest": float(abs(traces).max()), "sha256": digest, "notes": notes,
    }  # fmt: skip


def same_bits(kinds: Iterable[str], cells: int, steps: int, devices: Sequence[str], out: Path | None) -> int:
    """The cases in which the SHA-256 of fields and traces is not that of the first devices; prints and writes all."""
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        problem = parse(model_text(kind, cells, steps)).build().problem
        asked = [(spec, name) for spec in devices for name in (("overlap", "peer") if "cuda" in spec else ("overlap",))]
        for spec, strategy in asked:
            with Simulation(problem, steps, devices=spec, options=Options(strategy)) as run:
                run.run(steps)
                traces = np.array(list(run.traces().values()))
                digest = sha256(run.sha256().encode() + traces.tobytes()).hexdigest()
            rows.append({"kind": kind, "devices": spec, "strategy": strategy, "sha256": digest})
            rows[-1]["same"] = digest == next(row["sha256"] for row in rows if row["kind"] == kind)
            print(json.dumps(rows[-1]), flush=True)
            write(out, rows)
    return sum(not row["same"] for row in rows)


def write(out: Path | None, rows: list[dict[str, Any]]) -> None:
    """The record so far, where one is wanted."""
    if out:
        out.write_text(json.dumps({"about": about(), "rows": rows}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cells", type=int, default=512)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--bits", metavar="DEVICES", help="compare fields and traces between these, the first right")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--devices", default="cuda:0;cuda:0,1")
    parser.add_argument("--seconds", type=float, default=55.0, help="nothing is begun after so many")
    given = parser.parse_args()
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    kinds = given.kinds.split(",")
    if given.bits:
        raise SystemExit(1 if same_bits(kinds, given.cells, given.steps, given.bits.split(";"), given.out) else 0)
    for kind in kinds:
        cells = given.cells * 3 // 4 if kind == "tti3d" else given.cells
        built = parse(model_text(kind, cells, given.steps)).build()
        print(f"{kind} built after {time.monotonic() - began:.1f} s", flush=True)
        for devices in given.devices.split(";"):
            if time.monotonic() - began > given.seconds:
                continue
            rows.append(measured(built, devices))
            print(json.dumps(rows[-1]), flush=True)
            write(given.out, rows)


if __name__ == "__main__":
    main()

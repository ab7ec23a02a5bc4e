"""Radar in 3D on one GPU: rates beside one pass of the least traffic, and digests beside those of virtual devices.

    python benchmarks/cuda/radar3d.py [--size 512] [--only WORD,...] [--seconds 90] [--out radar3d.json]

The domains: vacuum; three layers without losses; the same with losses; each with absorbers of 10 cells on all sides (or
those of some axes, as in `layers:z`), a dipole and receivers, float32. `of_one_pass` is the rate over that at which a
copy moves what a step must read and write at least, absorbers and coefficients included. Digests are of small domains
with every kind of medium and source.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

import peergrid  # noqa: E402
from peergrid import Options, Problem  # noqa: E402
from peergrid.bench.measure import Case, copy_bandwidth, measure  # noqa: E402
from peergrid.bench.problems import noisy  # noqa: E402
from peergrid.models.fdtd3d import (  # noqa: E402
    PEC,
    SIDES,
    VACUUM,
    Absorber,
    Domain,
    Drive,
    ElectricDipole,
    MagneticDipole,
    Medium,
    Receiver,
    Slab,
    TransmissionLine,
    VoltageSource,
    build,
    debye,
    lorentz,
)
from peergrid.models.fdtd3d.constants import SPEED_OF_LIGHT  # noqa: E402
from peergrid.models.waveforms import Ricker  # noqa: E402
from peergrid.runtime.devices import parse_devices  # noqa: E402
from peergrid.stencil.cost import minimal_bytes  # noqa: E402

SPACING = 0.002
PULSE = Drive(Ricker(1.5e9))
WAYS = (("serial", 1), ("overlap", 1), ("overlap", 2), ("peer", 2))


def domain(cells: int, kind: str, sides: str = "xyz") -> Domain:
    """A cube: `vacuum`, or `layers` of vacuum and soil with their mean between, or those with losses (`lossy`)."""
    ids = np.zeros((6, *(cells + 1,) * 3), np.uint8)
    loss = 0.01 if kind == "lossy" else 0.0
    if kind != "vacuum":
        ids[:3, :, :, : cells // 2], ids[:3, :, :, cells // 2] = 1, 2
    middle = cells // 2
    return Domain(
        (cells,) * 3,
        (SPACING,) * 3,
        0.999 * SPACING / (SPEED_OF_LIGHT * sqrt(3)),
        4000,
        (VACUUM, Medium("soil", 4.0, loss), Medium("mean", 2.5, loss / 2)),
        ids,
        absorber=Absorber(tuple((side, Slab(10)) for side in SIDES if side[0] in sides)),
        sources=(ElectricDipole("z", (middle, middle, middle + 3), PULSE),),
        receivers=tuple(Receiver((middle + 2 * k, middle, middle + 3)) for k in range(1, 4)),
    )


def everything() -> Domain:
    """A small domain with dispersive and lossy media, every kind of source, and an absorber on some sides."""
    small = domain(40, "lossy")
    ids = small.ids.copy()
    ids[:3, 12:20, :, 22:30], ids[:3, 26:30, 26:30, 22:30] = 3, 4
    ids[2, 14, 14, 30:36], ids[3:, 4:9, 4:9, 4:9] = 5, 6
    media = (
        *small.media,
        Medium("wet", 4.0, 0.01, poles=(debye(2.0, 1e-11),)),
        Medium("resonant", 2.0, poles=(lorentz(1.0, 5e9, 1e9),)),
        PEC,
        Medium("iron", 1.0, 0.0, 2.0, 100.0),
    )
    sources = (
        *small.sources,
        MagneticDipole("x", (17, 19, 31), PULSE),
        VoltageSource("y", (19, 17, 32), PULSE, 50.0),
        VoltageSource("x", (19, 22, 32), PULSE, 0.0),
        TransmissionLine("z", (21, 25, 32), PULSE, 73.0),
    )
    slabs = tuple((side, Slab(cells)) for side, cells in zip(SIDES, (6, 0, 0, 5, 4, 7), strict=True))
    return Domain(**(vars(small) | {"ids": ids, "media": media, "sources": sources, "absorber": Absorber(slabs)}))


def same_bits(problem: Problem, steps: int, on: str) -> dict[str, Any]:
    """Digests under some strategies, beside that of a virtual device."""
    expected = peergrid.run(problem, steps=steps, devices="cpu:2", options=Options("async", depth=1)).sha256
    found = {}
    for strategy, depth in WAYS:
        for devices in on.split(";"):
            options = Options(strategy, depth=depth, block=1)  # type: ignore[arg-type]
            one = peergrid.run(problem, steps=steps, devices=devices, options=options)
            found[f"{devices} {strategy} {depth}"] = one.sha256
    return {"expected": expected, "found": found, "equal": set(found.values()) == {expected}}


def rates(kind: str, cells: int, spec: str, bandwidth: float) -> dict[str, Any]:
    devices = parse_devices(spec)
    made = build(domain(cells, *kind.split(":"))).problem
    traffic = minimal_bytes(made)
    case = Case(kind, partial(noisy, made), devices.count, "overlap", 1, 50, kind)
    (row,) = measure([case], devices, bandwidth)
    return {
        "domain": kind,
        "cells": made.grid.shape,
        "bytes_per_cell": traffic / prod(made.grid.shape),
        "gcells_per_s": row.gcells_per_s,
        "of_one_pass": row.of_copy,
        "spread": row.spread,
        "samples": row.samples,
        "notes": row.notes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--bits", default="cuda:0;cuda:0,1", help="devices whose digests are compared")
    parser.add_argument("--only", default="layers,bits,vacuum,lossy")
    parser.add_argument("--seconds", type=float, default=90.0, help="nothing is begun after so many")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began, bandwidth = time.monotonic(), copy_bandwidth(parse_devices(given.devices))
    circumstances = about(("peergrid", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"))
    found: dict[str, Any] = {"about": circumstances, "copy_bytes_per_s": bandwidth}
    for word in given.only.split(","):
        if time.monotonic() - began > given.seconds:
            break
        if word == "bits":
            found[word] = same_bits(build(everything()).problem, 60, given.bits)
        else:
            found[word] = rates(word, given.size, given.devices, bandwidth or 0.0)
        print(f"{time.monotonic() - began:.0f} s", word, json.dumps(found[word]), flush=True)
        if given.out:
            given.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

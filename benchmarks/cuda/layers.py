"""R ghost layers exchanged every R steps, without blocking on the chip: latency bought with computing them twice.

    python benchmarks/cuda/layers.py [--devices cuda:0,1] [--sizes 1024,4096] [--layers 1,2,4,8,16,32]
        [--strategies async,overlap] [--out layers.json]

Jacobi, each step a pass of its own (`block=1`), so that R alone changes: messages are R rows, the cells computed twice
are R (R - 1) rows of every R steps and border. Samples are those of `peergrid bench`, the layers of one size and
strategy alternately; one device is beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.bench.measure import Case, first, measure  # noqa: E402
from peergrid.bench.problems import jacobi  # noqa: E402
from peergrid.runtime.devices import Devices, parse_devices  # noqa: E402

STEPS = 320


def rows(size: int, strategy: Any, layers: list[int], devices: Devices) -> list[dict[str, Any]]:
    """One size: one device, then all of them with each number of layers."""
    make = partial(jacobi, size, size)
    cases = [
        Case(f"Jacobi, {size}²", make, devices.count, strategy, count, STEPS, "", group="layers", block=1)
        for count in layers
    ]
    (alone,) = measure([Case(f"Jacobi, {size}²", make, 1, strategy, 1, STEPS, "", block=1)], first(devices, 1), None)
    found = [alone, *measure(cases, devices, None)]
    bytes_of_row = 4 * size
    return [
        asdict(row)
        | {"message_bytes": row.options.depth * bytes_of_row if row.count > 1 else 0}
        | {"speed_up": alone.seconds_per_step / row.seconds_per_step}
        for row in found
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="cuda:0,1")
    parser.add_argument("--sizes", default="1024,4096")
    parser.add_argument("--layers", default="1,2,4,8,16,32")
    parser.add_argument("--strategies", default="async,overlap")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    devices, found = parse_devices(asked.devices), []
    layers = [int(count) for count in asked.layers.split(",")]
    for strategy in asked.strategies.split(","):
        for size in map(int, asked.sizes.split(",")):
            for row in rows(size, strategy, layers, devices):
                found.append(row)
                print(f"{row['series']} {strategy} {row['devices']} R = {row['options']['depth']}:", end=" ")
                print(f"{row['seconds_per_step'] * 1e6:.2f} µs a step, {row['speed_up']:.3f} ×", flush=True)
            if asked.out:
                report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "rows": found}
                asked.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

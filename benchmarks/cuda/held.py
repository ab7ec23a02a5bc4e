"""What a hold saves: seconds of a trace of a B-scan with `peergrid.hold` around all traces, and without.

    python benchmarks/cuda/held.py [--devices 'cuda:0;cuda:0,1'] [--traces 6] [--turns 3] [--out held.json]

A trace is a whole run of `examples/gpr.toml`, from a `Simulation` made to one closed; the model is built once. Each
turn makes so many traces in a hold, then as many without. The first of either is not counted: it makes what the others
find made.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import Simulation, hold  # noqa: E402
from peergrid.models.fdtd import Built, build  # noqa: E402
from peergrid.models.modelfile import read  # noqa: E402
from peergrid.runtime.devices import Devices, parse_devices  # noqa: E402

MODEL = "examples/gpr.toml"


def trace_seconds(built: Built, devices: Devices) -> float:
    """Seconds of one trace, preparing and closing included."""
    started = time.perf_counter()
    with Simulation(built.problem, built.steps, devices=devices) as simulation:
        simulation.run(built.steps)
        simulation.check()
        simulation.traces()
    return time.perf_counter() - started


def block(built: Built, devices: Devices, traces: int, held: bool) -> list[float]:
    """Seconds of each trace but the first, in a hold or not."""
    with hold(devices) if held else nullcontext():
        return [trace_seconds(built, devices) for _ in range(traces)][1:]


def rows(built: Built, devices: Devices, traces: int, turns: int) -> Iterator[dict[str, Any]]:
    """A row for traces in a hold, and one for those without."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(turns):
        for held, found in seconds.items():
            found += block(built, devices, traces, held)
    for held, found in seconds.items():
        each = {"median": median(found), "min": min(found), "max": max(found)}
        yield {"devices": str(devices), "held": held, "traces": len(found), "seconds_per_trace": each}


def line(row: dict[str, Any]) -> str:
    each = row["seconds_per_trace"]
    return (
        f"{row['devices']} {'held' if row['held'] else 'not held'}: {each['median']:.3f} s per trace "
        f"({each['min']:.3f} to {each['max']:.3f}, {row['traces']} traces)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cuda:0;cuda:0,1")
    parser.add_argument("--traces", type=int, default=6, help="in a row, two at least (6)")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    built = build(read(ROOT / MODEL))
    found: list[dict[str, Any]] = []
    for word in asked.devices.split(";"):
        for row in rows(built, parse_devices(word), asked.traces, asked.turns):
            print(line(row), flush=True)
            found.append(row)
            if asked.out:
                report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "model": MODEL}
                asked.out.write_text(json.dumps({**report, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

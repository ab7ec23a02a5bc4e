"""What each of several GPUs has of a grid, on the GPUs that there are: a forecast of what more of them would do.

    python benchmarks/cuda/shares.py [--of 8] [--devices 'cuda:0;cuda:0,1'] [--depths 8,4,1] [--only WORD]
        [--strategies persistent,peer] [--out shares.json]

Each GPU gets the rows that it would have of the whole grid on `--of` GPUs; two GPUs exchange as any neighbours do.
Samples are those of `peergrid bench`; depth 0: the default one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.bench.measure import Case, measure  # noqa: E402
from peergrid.bench.own import own_waves  # noqa: E402
from peergrid.bench.problems import jacobi, radar  # noqa: E402
from peergrid.runtime.devices import Devices, parse_devices  # noqa: E402

STEPS = 2000


def wholes(of: int) -> dict[str, tuple[int, Any, str | None]]:
    """The rows of each whole grid, what makes a problem of so many of its rows, and the field whose norms are asked
    for.
    """
    return {
        "Jacobi, 256² each": (256 * of, partial(_jacobi, columns=256), None),
        "Jacobi, 4096²": (4096, partial(_jacobi, columns=4096), None),
        "Jacobi, 17408²": (17408, partial(_jacobi, columns=17408), None),
        "Jacobi, 17408², norm of every step": (17408, partial(_jacobi, columns=17408), "u"),
        "waves, 4096²": (4096, partial(_waves, columns=4096), None),
        "radar, 4096²": (4096, partial(_radar, columns=4096), None),
    }


def _jacobi(rows: int, columns: int) -> Any:
    return jacobi(rows, columns)


def _waves(rows: int, columns: int) -> Any:
    return own_waves(rows, columns, lossy=False)


def _radar(rows: int, columns: int) -> Any:
    return radar(rows, columns, STEPS)


def cases(of: int, devices: Devices, depths: list[int], strategies: list[Any], only: str) -> Iterator[Case]:
    """Every grid, strategy and depth on so many devices."""
    for name, (rows, make, norm) in wholes(of).items():
        if only not in name:
            continue
        for strategy in strategies:
            for depth in depths:
                share = partial(make, rows // of * devices.count)
                yield Case(name, share, devices.count, strategy, depth, STEPS, name, norm=norm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", type=int, default=8)
    parser.add_argument("--devices", default="cuda:0;cuda:0,1")
    parser.add_argument("--depths", default="8,4,1")
    parser.add_argument("--strategies", default="persistent,peer,overlap,graph")
    parser.add_argument("--only", default="", help="only grids with this word in their name")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found: list[dict[str, Any]] = []
    for word in asked.devices.split(";"):
        devices = parse_devices(word)
        depths = [int(depth) for depth in asked.depths.split(",")]
        for case in cases(asked.of, devices, depths, asked.strategies.split(","), asked.only):
            (row,) = measure([case], devices, None)
            found.append(asdict(row))
            print(f"{row.series} {row.devices} {row.options.strategy} {row.options.depth}: ", end="")
            print(f"{row.seconds_per_step * 1e6:.3f} µs ± {row.spread / 2:.1%} {' '.join(row.notes)}", flush=True)
            if asked.out:
                report = {"about": about(("peergrid", "numpy", "cuda-core", "cuda-bindings")), "of": asked.of}
                asked.out.write_text(json.dumps({**report, "rows": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

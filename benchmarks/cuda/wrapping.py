"""Periodic planes on one and on several GPUs beside planes that do not wrap, and lines with several steps per pass.

    python benchmarks/cuda/wrapping.py [--only WORD,...] [--devices 2] [--seconds 300] [--out wrapping.json]

The cases of a group are measured in turns: `against` is the rate over that of the group's first case, `share` the same
for each device. Samples are those of `peergrid bench`; fields start from noise.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from breadth import gray_scott, lattice_boltzmann, line_problem, positive  # noqa: E402
from record import about  # noqa: E402

from peergrid import Grid, Problem  # noqa: E402
from peergrid.bench.measure import Case, copy_bandwidth, measure  # noqa: E402
from peergrid.errors import PeergridError  # noqa: E402
from peergrid.runtime.devices import Devices  # noqa: E402
from peergrid.schedule.strategies import StrategyName  # noqa: E402


@cache
def reaction(count: int, boundary: str) -> Problem:
    grid = Grid((8192 * count, 8192), boundary)  # type: ignore[arg-type]
    return positive(Problem.of(gray_scott(grid.field("u"), grid.field("v"), 0.035, 0.06)))


@cache
def lattice(count: int, boundary: str) -> Problem:
    grid = Grid((4096 * count, 4096), boundary)  # type: ignore[arg-type]
    return positive(Problem.of(lattice_boltzmann(*(grid.field(f"f{n}") for n in range(9)))))


@cache
def line(count: int, _: str) -> Problem:
    return line_problem(count << 26)


@dataclass(frozen=True)
class Group:
    """Cases measured in turns: devices, strategy and depth (0: the options that peergrid chooses) of each."""

    make: Callable[[int, str], Problem]
    boundary: str
    bytes: int  # of a cell that one pass moves
    cases: tuple[tuple[int, StrategyName, int], ...]


BOTH: tuple[tuple[int, StrategyName, int], ...] = ((1, "overlap", 0), (2, "overlap", 0), (2, "peer", 0))
GROUPS = {
    "line": Group(line, "fixed", 8, tuple((1, "overlap", depth) for depth in (1, 8, 16, 24, 32, 0))),
    "Gray-Scott periodic": Group(reaction, "periodic", 16, BOTH),
    "D2Q9 periodic": Group(lattice, "periodic", 72, BOTH),
    "Gray-Scott fixed": Group(reaction, "fixed", 16, BOTH),
    "D2Q9 fixed": Group(lattice, "fixed", 72, BOTH),
    "line split": Group(line, "fixed", 8, ((1, "overlap", 0), (2, "overlap", 0))),
    "Gray-Scott periodic, single steps": Group(reaction, "periodic", 16, ((1, "overlap", 1), (2, "overlap", 1))),
    "D2Q9 periodic, shorter passes": Group(lattice, "periodic", 72, tuple((1, "overlap", n) for n in (4, 3, 2, 1))),
}


def measured(name: str, group: Group, devices: Devices, bandwidth: float) -> Iterator[dict[str, Any]]:
    cases = [
        Case(name, lambda count=count: group.make(count, group.boundary), count, strategy, depth, 200, name)  # type: ignore[misc]
        for count, strategy, depth in group.cases
        if count <= devices.count
    ]
    try:
        rows = measure(cases, devices, bandwidth)
    except PeergridError as refused:
        yield {"group": name, "error": str(refused)}
        return
    for case, row in zip(cases, rows, strict=True):
        yield {
            "group": name,
            "devices": case.count,
            "strategy": case.strategy,
            "depth": row.options.depth,
            "asked": case.depth,
            "gcells_per_s": row.gcells_per_s,
            "of_one_pass": row.gcells_per_s * 1e9 * group.bytes / bandwidth / case.count,
            "against": row.against,
            "share": (row.against or 0) / case.count * cases[0].count,
            "host_seconds_per_step": row.host_seconds_per_step,
            "seconds_per_step": row.seconds_per_step,
            "spread": row.spread,
            "samples": row.samples,
            "options": asdict(row.options),
            "notes": row.notes,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only groups with one of these words in their name")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300.0, help="no group is begun after so many")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began, words = time.monotonic(), [word for word in given.only.split(",") if word]
    devices = Devices("cuda", tuple(range(given.devices)))
    bandwidth = copy_bandwidth(devices)
    assert bandwidth is not None
    found: list[dict[str, Any]] = []
    for name, group in GROUPS.items():
        if (words and not any(word in name for word in words)) or time.monotonic() - began > given.seconds:
            continue
        for row in measured(name, group, devices, bandwidth):
            found.append(row)
            print(_line(row), flush=True)
        print(f"  after {time.monotonic() - began:.0f} s", flush=True)
        if given.out:
            head = {"about": about(("numpy", "cuda-core", "nvidia-cuda-nvrtc")), "copy_bytes_per_s": bandwidth}
            given.out.write_text(json.dumps({**head, "rows": found}, indent=1) + "\n")


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['group']}: {row['error']}"
    return (
        f"{row['group']}, {row['devices']} × {row['strategy']}, depth {row['depth']}: {row['gcells_per_s']:.1f} "
        f"GCells/s, {row['of_one_pass']:.1%} of one pass, {row['share']:.1%} of the first case "
        f"(± {row['spread'] / 2:.1%}) {' '.join(row['notes'])}"
    )


if __name__ == "__main__":
    main()

"""Problems of many kinds, not Jacobi and radar alone: rates through `Simulation`, beside a copy in the same run.

    python benchmarks/cuda/breadth.py [--devices 'cuda:0;cuda:0,1'] [--only WORD,...] [--seconds 500]
        [--out breadth.json]

Every problem is measured at one step per pass and, where kernels make them, at several; on two devices those of 2D are
measured whose edges wrap, with twice the cells of a single one. `of_one_pass`: the rate over that at which a copy moves
`bytes`, the fewest that a cell and time step take when each step is a pass of its own. Fields start from noise. Samples
are those of `peergrid bench`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from problems3d import CASES, TIME_STEPS  # noqa: E402
from record import about  # noqa: E402

from peergrid import Grid, Problem, stencil  # noqa: E402
from peergrid.bench.measure import Case, copy_bandwidth, measure  # noqa: E402
from peergrid.bench.problems import noise, noisy  # noqa: E402
from peergrid.errors import PeergridError  # noqa: E402
from peergrid.models.wave import Medium, PointSource, Propagator, Ricker, Scheme, Shot  # noqa: E402
from peergrid.runtime.devices import Devices, parse_devices  # noqa: E402
from peergrid.stencil.lagged import lagged_fields  # noqa: E402

CUBE, PLANE = 512, 8192
WEIGHTS = (4 / 9, *(1 / 9,) * 4, *(1 / 36,) * 4)
MOVES = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
"""The nine velocities of D2Q9 in cells a step, and their weights."""


@stencil
def gray_scott(u: Any, v: Any, feed: float, kill: float) -> None:
    """Two substances that diffuse and react."""
    around = [f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f[0, 0] for f in (u, v)]
    reacted = u[0, 0] * v[0, 0] * v[0, 0]
    u.next[0, 0] = u[0, 0] + (0.16 * around[0] - reacted + feed * (1 - u[0, 0]))
    v.next[0, 0] = v[0, 0] + (0.08 * around[1] + reacted - (feed + kill) * v[0, 0])


@stencil
def lattice_boltzmann(f0: Any, f1: Any, f2: Any, f3: Any, f4: Any, f5: Any, f6: Any, f7: Any, f8: Any) -> None:
    """D2Q9: each population comes from the cell it left, then relaxes towards equilibrium."""
    fields = (f0, f1, f2, f3, f4, f5, f6, f7, f8)
    come = [f[-y, -x] for f, (y, x) in zip(fields, MOVES, strict=True)]
    density = sum(come[1:], come[0])
    vy, vx = (sum(m[axis] * c for m, c in zip(MOVES, come, strict=True) if m[axis]) / density for axis in (0, 1))
    square = 1.5 * (vy * vy + vx * vx)
    for f, here, weight, (y, x) in zip(fields, come, WEIGHTS, MOVES, strict=True):
        along = 3 * (y * vy + x * vx)
        f.next[0, 0] = here + 0.6 * (weight * density * (1 + along + 0.5 * along * along - square) - here)


@stencil
def three_points(u: Any) -> None:
    u.next[0] = u[0] + 0.25 * (u[-1] - 2 * u[0] + u[1])


def positive(problem: Problem) -> Problem:
    """The problem with positive noise, for densities and concentrations."""
    fields = {
        name: replace(field, init=np.float32(1) + np.float32(0.2) * noise(field.box.shape, seed, field.grid.dtype))
        for seed, (name, field) in enumerate(problem.fields.items())
    }
    return replace(problem, fields=MappingProxyType(fields))


def stored(problem: Problem) -> Problem:
    """The problem with its first values in memory, where several runs find them; waves of two time levels rotate only
    where nobody sees that these differ in cells that keep them.
    """
    if lagged_fields(problem):
        return problem
    fields = {
        name: field.with_values(field.first_values()) if field.made_by else field
        for name, field in problem.fields.items()
    }
    return replace(problem, fields=MappingProxyType(fields))


def gray_scott_problem(rows: int, columns: int) -> Problem:
    grid = Grid((rows, columns), "periodic")
    return positive(Problem.of(gray_scott(grid.field("u"), grid.field("v"), 0.035, 0.06)))


def boltzmann_problem(rows: int, columns: int) -> Problem:
    grid = Grid((rows, columns), "periodic")
    made = Problem.of(lattice_boltzmann(*(grid.field(f"f{n}") for n in range(9))))
    return positive(made)


def waves_problem(scheme: Scheme, **values: tuple[float, float]) -> Problem:
    """A shot on PLANE² cells, layers included; values: the least and the largest of each parameter of the medium."""
    shape = (PLANE - 2 * (scheme.layer + max(4, scheme.order // 2)),) * 2
    drawn = np.random.default_rng(1).random(shape[1])
    parameters = {name: np.broadcast_to(low + (high - low) * drawn, shape) for name, (low, high) in values.items()}
    propagator = Propagator(Medium(shape, 10.0, **parameters), scheme)
    return noisy(Shot(propagator, [PointSource((1e4, 1e4), Ricker(10.0))], [(2e4, 2e4)], 1000).problem)


def line_problem(cells: int) -> Problem:
    return noisy(Problem.of(three_points(Grid((cells,)).field("u"))))


def cube_problem(name: str) -> Problem:
    make, dtype = CASES[name]
    return noisy(make(CUBE, dtype))


@dataclass(frozen=True)
class Kind:
    """A problem: what makes it for so many devices, the bytes of a cell and time step, time steps of its step."""

    make: Callable[[int], Problem]
    bytes: int
    time_steps: int = 1
    several: bool = True  # whether devices beyond the first are measured


def _cubes() -> Iterator[tuple[str, Kind]]:
    traffic = {
        "acoustic": 16, "acoustic_prev": 16, "tti": 84, "tti_one_stage": 48, "box27": 8, "heat": 8, "yee_periodic": 48,
        "yee": 52, "maxwell": 56, "maxwell_open": 56,
    }  # fmt: skip
    for name, count in traffic.items():
        if name in CASES:
            make = partial(cube_problem, name)
            yield f"{name} {CUBE}³", Kind(lambda _, make=make: make(), count, TIME_STEPS.get(name, 1), several=False)


def _waves() -> Iterator[tuple[str, Kind]]:
    velocity, sponge, matched = (1500.0, 3000.0), Scheme(), Scheme(layer=10, absorber="cpml")
    tilted = {"epsilon": (0.1, 0.25), "delta": (0.0, 0.1), "tilt": (0.0, 0.6)}
    kinds: tuple[tuple[str, int, Scheme, dict[str, tuple[float, float]]], ...] = (
        ("acoustic", 20, sponge, {}),
        ("acoustic cpml", 20, matched, {}),
        ("density", 40, sponge, {"density": (1.0, 3.0)}),
        ("tti", 68, sponge, tilted),
    )
    for name, count, scheme, values in kinds:
        made = partial(waves_problem, scheme, velocity=velocity, **values)
        yield f"waves {name} {PLANE}²", Kind(lambda _, made=made: made(), count, several=False)


KINDS: dict[str, Kind] = {
    **dict(_cubes()),
    "three points 2^26": Kind(lambda count: line_problem(count << 26), 8),
    "Gray-Scott 8192²": Kind(lambda count: gray_scott_problem(8192 * count, 8192), 16),
    **dict(_waves()),
    "D2Q9 4096²": Kind(lambda count: boltzmann_problem(4096 * count, 4096), 72),
}


def rows_of(name: str, kind: Kind, devices: Devices, bandwidth: float) -> Iterator[dict[str, Any]]:
    """One step per pass, and the options that peergrid chooses."""
    problem = stored(kind.make(devices.count))
    for depth in (1, 0):
        case = Case(name, lambda: problem, devices.count, "overlap", depth, 200, name)
        try:
            (row,) = measure([case], devices, bandwidth)
        except PeergridError as refused:
            yield {"problem": name, "devices": str(devices), "depth": depth, "error": str(refused)}
            continue
        rate = row.gcells_per_s * kind.time_steps
        yield {
            "problem": name,
            "devices": str(devices),
            "asked": "one step per pass" if depth else "what suits",
            "gcells_per_s": rate,
            "of_one_pass": rate * 1e9 * kind.bytes / bandwidth / devices.count,
            "bytes": kind.bytes,
            "time_steps": kind.time_steps,
            "options": asdict(row.options),
            "samples": row.samples,
            "spread": row.spread,
            "notes": row.notes,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--only", default="", help="only problems with one of these words in their name")
    parser.add_argument("--seconds", type=float, default=500.0, help="no problem is begun after so many")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began, words = time.monotonic(), [word for word in given.only.split(",") if word]
    found: list[dict[str, Any]] = []
    bandwidth: float | None = None
    for spec in given.devices.split(";"):
        devices = parse_devices(spec)
        bandwidth = bandwidth or copy_bandwidth(devices)
        assert bandwidth is not None
        for name, kind in KINDS.items():
            wanted = (not words or any(word in name for word in words)) and (devices.count == 1 or kind.several)
            if not wanted or time.monotonic() - began > given.seconds:
                continue
            for row in rows_of(name, kind, devices, bandwidth):
                found.append(row)
                print(_line(row), flush=True)
                if given.out:
                    circumstances = about(("peergrid", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"))
                    head = {"about": circumstances, "copy_bytes_per_s": bandwidth}
                    given.out.write_text(json.dumps({**head, "rows": found}, indent=1) + "\n")


def _line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['problem']} {row['devices']}: {row['error']}"
    options = row["options"]
    said = f"depth {options['depth']}, block {options['block'] or options['depth']}, ± {row['spread'] / 2:.1%}"
    return (
        f"{row['problem']} {row['devices']}, {row['asked']}: {row['gcells_per_s']:.1f} GCells/s, "
        f"{row['of_one_pass']:.1%} of one pass ({said}) {' '.join(row['notes'])}"
    )


if __name__ == "__main__":
    main()

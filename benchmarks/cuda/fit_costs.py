"""Figures of `peergrid.predict` fitted to measured steps, and forecasts held to those that no fit saw.

    python benchmarks/cuda/fit_costs.py RECORD [RECORD ...] [--sweeps 4] [--fit] [--out forecasts.json]

RECORD: what `forecasts.py` wrote; where it has forecasts from before the measurements, those are compared. Or what this
script wrote: the same cases are predicted again. --fit: renew `src/peergrid/costs/figures.json` from the rows that may
be used for it, held close to what they were.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from functools import lru_cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda")]

from problems3d import acoustic_problem, heat_problem  # noqa: E402

from peergrid.bench.own import own_heat, own_waves  # noqa: E402
from peergrid.bench.problems import jacobi, radar  # noqa: E402
from peergrid.costs.families import FAMILIES, Family  # noqa: E402
from peergrid.costs.machine import Calls, Delays, Machine  # noqa: E402
from peergrid.costs.machines import LAUNCH, machine_named  # noqa: E402
from peergrid.predict.choice import CANDIDATES, ranked  # noqa: E402
from peergrid.predict.forecast import Forecast, Forecaster  # noqa: E402
from peergrid.runtime.cuda.memory.fields import Plan  # noqa: E402
from peergrid.schedule import Options  # noqa: E402
from peergrid.stencil import Problem  # noqa: E402

ALIKE = ("peer", "threads")  # strategies that one GPU carries out as others, too
TRIED = CANDIDATES  # that a trial carries out
MOST_CELLS = 1 << 29  # of a problem: its fields are made to describe it
DESCRIBED = 1 << 27  # cells of a problem whose memory is predicted here: its fields are made for that
LEAST = 64 << 20  # bytes
RECORDED = 800_000  # steps that runs of `forecasts.py` have room for
HELD = 0.003  # of the square of a figure's logarithm, beside squares of logarithms of errors
NEAR = 0.2  # errors from which on the loss grows by lines
MOST_SHARE = 1.2  # of memory and of instructions
LEAST_FIGURE = 1e-12
LONGEST = 0.7  # step of a figure's logarithm
HELD_GRIDS = [[n, n] for n in (512, 2048, 4096, 8192, 16384)]
STEP = 0.03  # of the logarithm of a figure, by which slopes are found
Vector = np.ndarray[Any, np.dtype[np.float64]]


@lru_cache(maxsize=2)
def problem(name: str, shape: tuple[int, ...]) -> Problem:
    n = shape[0]
    match name:
        case "Jacobi":
            return jacobi(*shape)
        case "radar":
            return radar(*shape, 1000)
        case "3D heat":
            return heat_problem(n)
        case "3D acoustic":
            return acoustic_problem(n)
        case "heat":
            return own_heat(*shape)
    return own_waves(*shape, lossy=False)


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a record of `forecasts.py`, or of `peergrid bench`: of that those of up to four GPUs on grids with
    which no forecast is compared, to fit costs of hosts and of links; and those of more GPUs, of radars and of grids
    that grow with the GPUs, to compare forecasts with.
    """
    if "benchmark" not in record:
        return [{"fit": False, "block": None, "host_seconds_per_step": math.nan, **row} for row in record["rows"]]
    found = []
    for row in record["rows"]:
        name = "radar" if "radar" in row["series"] else "Jacobi"
        held = record["benchmark"] == "fdtd" or row["count"] > 4 or row["series"].startswith("weak")
        alone = held and row["count"] == 1
        if (
            math.prod(row["shape"]) > MOST_CELLS
            or "norm" in row["series"]
            or "held" in row["series"]
            or alone
            or (row["shape"] in HELD_GRIDS and not held)
        ):
            continue
        options = {key: row["options"][key] for key in ("strategy", "depth", "block", "route")}
        found.append({**row, **options, "problem": name, "gpus": row["count"], "fit": not held})
    return found


class Rows:
    """Measured rows with what forecasts need."""

    def __init__(self, rows: list[dict[str, Any]], machine: Machine) -> None:
        self.rows = sorted(rows, key=lambda row: (row["problem"], row["shape"], row["gpus"], row["depth"]))
        self._machine = machine
        self._makers: dict[object, Forecaster] = {}

    def forecast(self, row: dict[str, Any], machine: Machine, families: dict[str, Family]) -> Forecast:
        key = row["problem"], tuple(row["shape"]), row["gpus"]
        if key not in self._makers:
            self._makers[key] = Forecaster(problem(*key[:2]), self._machine, row["gpus"])
        made = self._makers[key]
        changed = replace(made, machine=machine, families=families)
        changed.__dict__["works"] = made.works
        changed.__dict__["arrangements"] = made.arrangements
        return changed.forecast(
            Options(row["strategy"], depth=row["depth"], block=row["block"], route=row.get("route"))
        )

    def error(self, row: dict[str, Any], machine: Machine, families: dict[str, Family]) -> float:
        return math.log(self.forecast(row, machine, families).seconds_per_step / row["seconds_per_step"])


def fit(
    rows: Rows, machine: Machine, sweeps: int, records: list[str], launch: float
) -> tuple[Machine, dict[str, Family]]:
    """The machine's calls and delays and the figures of families that forecast the rows best.

    Least squares of the logarithms of errors in the logarithms of figures, by the method of Levenberg and Marquardt
    with Huber's weights; figures are held close to what they were.
    """
    keys = [("families", n, f.name) for n in FAMILIES for f in fields(Family)]
    keys += [("calls", "", f.name) for f in fields(Calls)] + [("delays", "", f.name) for f in fields(Delays)]
    first = np.log([_figure(machine, key) for key in keys])
    most = np.log([MOST_SHARE if key[2] in ("memory", "issue") else math.inf for key in keys])

    def built(logarithms: Vector) -> tuple[Machine, dict[str, Family]]:
        given = dict(zip(keys, np.exp(logarithms), strict=True))
        families = {n: Family(*(given["families", n, f.name] for f in fields(Family))) for n in FAMILIES}
        calls = Calls(**{f.name: given["calls", "", f.name] for f in fields(Calls)})
        delays = Delays(**{f.name: given["delays", "", f.name] for f in fields(Delays)})
        return replace(machine, calls=calls, delays=delays), families

    def errors(logarithms: Vector, numbers: Iterable[int]) -> Vector:
        made = built(logarithms)
        return np.array([rows.error(rows.rows[n], *made) for n in numbers])

    def loss(logarithms: Vector, found: Vector) -> float:
        return float(huber(found).sum() + HELD * ((logarithms - first) ** 2).sum())

    everything = np.arange(len(rows.rows))
    now, errors_now, damping = first, errors(first, everything), 1e-2
    touched = [everything] * len(keys)
    for sweep in range(sweeps):
        slopes = np.zeros((len(everything), len(keys)))
        for k in range(len(keys)):
            moved = now.copy()
            moved[k] += STEP
            slopes[touched[k], k] = (errors(moved, touched[k]) - errors_now[touched[k]]) / STEP
        touched = [everything[np.abs(slopes[:, k]) > 1e-6] for k in range(len(keys))] if not sweep else touched
        weights = np.minimum(1.0, NEAR / np.maximum(np.abs(errors_now), 1e-9))
        normal = slopes.T @ (weights[:, None] * slopes) + HELD * np.eye(len(keys))
        down = slopes.T @ (weights * errors_now) + HELD * (now - first)
        for _ in range(8):
            step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal) + HELD), down)
            tried = np.minimum(now + np.clip(step, -LONGEST, LONGEST), most)
            found = errors(tried, everything)
            if loss(tried, found) < loss(now, errors_now):
                now, errors_now, damping = tried, found, damping / 4
                break
            damping *= 4
        said = f"median {np.median(np.abs(errors_now)):.3f}, within 25 % {np.mean(np.abs(errors_now) < 0.223):.0%}"
        print(f"sweep {sweep}: loss {loss(now, errors_now):.3f}, {said}", flush=True)
        save(*built(now), records, launch)
    return built(now)


def _figure(machine: Machine, key: tuple[str, str, str]) -> float:
    kind, name, figure = key
    found: object = FAMILIES[name] if kind == "families" else getattr(machine, kind)
    return float(max(getattr(found, figure), LEAST_FIGURE))


def huber(errors: Vector) -> Vector:
    """Squares near zero, lines beyond: a few rows of another kind shall not decide."""
    size = np.abs(errors)
    return np.where(size < NEAR, size**2, NEAR * (2 * size - NEAR))


def _odd(row: dict[str, Any]) -> bool:
    """A row that says nothing of what it is of: a persistent kernel with tiles so high that they are read from afar."""
    return row["strategy"] == "persistent" and row["problem"] == "radar" and row["shape"][0] in (6144, 12288)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--machine", default="h200-x2")
    parser.add_argument("--sweeps", type=int, default=6)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--most", type=int, default=1 << 30, help="cells along an axis")
    parser.add_argument("--all", action="store_true", help="print every row")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    records = [json.loads(path.read_text()) for path in given.records]
    abouts = [record["about"] for record in records]
    measured = [row for record in records for row in rows_of(record)]
    rows = [row for row in measured if row.get("seconds_per_step") and not (row["fit"] and _odd(row))]
    machine = machine_named(given.machine)
    families = FAMILIES
    if given.fit:
        fitted = [row for row in rows if row["fit"] and (row["gpus"] > 1 or row["strategy"] not in ALIKE)]
        known = [
            record[key] for record in records for key in ("launch_seconds", "launch_seconds_after") if key in record
        ]
        names = [path.name for path in given.records]
        machine, families = fit(Rows(fitted, machine), machine, given.sweeps, names, mean(known) if known else LAUNCH)
    held = Rows([row for row in rows if not row["fit"] and row["shape"][0] <= given.most], machine)
    if not held.rows:
        return
    before = {
        _case(row): row["predicted"] for record in records for row in record.get("foretold", ()) if "depth" in row
    }
    found = []
    for row in held.rows:
        predicted = before.get(_case(row)) or held.forecast(row, machine, families).seconds_per_step
        found.append({k: row[k] for k in ("problem", "shape", "gpus", "strategy", "depth", "seconds_per_step")}
                     | {"predicted": predicted, "error": predicted / row["seconds_per_step"] - 1})  # fmt: skip
        if given.all:
            print(_said(found[-1], row["host_seconds_per_step"]))
    errors = sorted(abs(row["error"]) for row in found)
    said = {
        "cases": len(errors),
        "median_error": median(errors),
        "within_25_percent": sum(error <= 0.25 for error in errors) / len(errors),
        "choices": choices(found),
        "memory": list(memory(measured, machine, given.most)),
        "foretold_before": len(before),
        "seconds_to_choose": seconds_to_choose(records, machine),
    }
    print({key: said[key] for key in ("cases", "median_error", "within_25_percent", "seconds_to_choose")})
    print(said["choices"])
    print("memory", max((abs(row["error"]) for row in said["memory"]), default=0.0))
    if given.out:
        given.out.write_text(json.dumps({"about": abouts[0], **said, "rows": found}, indent=1) + "\n")


def choices(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The arrangements that predictions choose, beside the best of all measured: how much longer they take."""
    groups: dict[object, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["problem"], tuple(row["shape"]), row["gpus"]), []).append(row)
    losses, few = [], []
    for group in groups.values():
        candidates, best = _distinct(group), min(row["seconds_per_step"] for row in group)
        losses.append(candidates[0]["seconds_per_step"] / best - 1)
        few.append(min(row["seconds_per_step"] for row in candidates[:TRIED]) / best - 1)
    return {
        "cases": len(losses),
        "tried": TRIED,
        "within_3_percent": sum(loss <= 0.03 for loss in losses) / len(losses),
        "within_10_percent": sum(loss <= 0.1 for loss in losses) / len(losses),
        "within_3_percent_after_trial": sum(loss <= 0.03 for loss in few) / len(few),
        "within_10_percent_after_trial": sum(loss <= 0.1 for loss in few) / len(few),
        "worst_after_trial": max(few),
        "losses": losses,
    }


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, the one that is predicted to be the fastest first; of those that one GPU carries out alike the
    first.
    """
    found: dict[object, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["predicted"]):
        alike = round(row["predicted"] * 1e9) if row["gpus"] == 1 else row["strategy"]
        found.setdefault((row["depth"], alike), row)
    return list(found.values())


def memory(rows: list[dict[str, Any]], machine: Machine, most: int) -> Iterator[dict[str, Any]]:
    """Bytes predicted and taken, of runs that take more than `LEAST` bytes."""
    for row in rows:
        made_here = math.prod(row["shape"]) <= DESCRIBED and row["shape"][0] <= most
        if row["strategy"] == "memory" and made_here and max(row["bytes"]) >= LEAST:
            asked = Forecaster(problem(row["problem"], tuple(row["shape"])), machine, row["gpus"])
            plan = asked.arrangement(Options("overlap", depth=row["depth"], block=row["block"])).plan
            made = Plan(plan, RECORDED, asked.gpu)
            predicted = [made.taken(device) for device in range(row["gpus"])]
            error = max(predicted) / max(row["bytes"]) - 1
            named = {key: row[key] for key in ("problem", "shape", "gpus", "depth")}
            yield {**named, "bytes": max(row["bytes"]), "predicted": max(predicted), "error": error}


def seconds_to_choose(records: Sequence[dict[str, Any]], machine: Machine) -> float:
    """The time that ranking every strategy takes: the most of all cases of the records, or for a radar on two GPUs."""
    known = [row["seconds"] for record in records for row in record.get("foretold", ()) if row["strategy"] == "choice"]
    if known:
        return float(max(known))
    asked = Forecaster(problem("radar", (1024, 1024)), machine, 2)
    ranked(asked)
    began = time.perf_counter()
    ranked(Forecaster(asked.problem, machine, 2))
    return time.perf_counter() - began


def _case(row: dict[str, Any]) -> tuple[object, ...]:
    return row["problem"], tuple(row["shape"]), row["gpus"], row["strategy"], row["depth"]


def _said(row: dict[str, Any], host: float) -> str:
    named = f"{row['problem']:12s} {row['shape'][0]:6d} ×{row['gpus']} {row['strategy']:11s} {row['depth']:2d}"
    times = f"{row['seconds_per_step'] * 1e6:9.2f} {row['predicted'] * 1e6:9.2f} {row['error']:+7.1%}"
    return f"{named} {times}  {host * 1e6:7.2f}"


def save(machine: Machine, families: dict[str, Family], records: list[str], launch: float) -> None:
    """Replace the figures that `peergrid.predict` has; launch: seconds of one, as `runtime.cuda.calls` measures it."""
    path = ROOT / "src" / "peergrid" / "costs" / "figures.json"
    rounded = {name: {k: float(f"{v:.4g}") for k, v in asdict(family).items()} for name, family in families.items()}
    calls, delays = (
        {k: float(f"{v:.4g}") for k, v in asdict(part).items()} for part in (machine.calls, machine.delays)
    )
    text = {
        "calibrated_on": records,
        "machine": machine.name,
        "launch": float(f"{launch:.4g}"),
        "calls": calls,
        "delays": delays,
        "families": rounded,
    }
    path.write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main()

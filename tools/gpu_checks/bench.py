"""The suites of `peergrid bench`, and what they leave out: three dimensions, wide stencils, the timeline."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from gpu_checks.call import ROOT, call, peergrid
from gpu_checks.problems import cube, radius_four, relaxed
from gpu_checks.report import Case, Report

LIMIT = 900.0  # seconds of a suite: `ladder` took 441 on 1, 2 and 4 GPUs, and 8 are a third more rows
SAMPLES = 5
SECONDS = 0.1  # of a sample, about


def bench(report: Report, counts: list[int]) -> None:
    """Every suite on so many devices, then single figures."""
    every = _first(counts[-1])
    for name in ("jacobi", "fdtd", "ladder", "small"):
        report.run(f"bench {name} {every}", partial(suite, name, counts, report.path.parent))
    report.run(f"breadth {every}", partial(breadth, report.path.parent, every))
    if counts[-1] > 1:
        report.run(f"surveys {every}", partial(surveys, report.path.parent, every))
    report.run("timeline overlap", partial(timeline, report.path.parent / "timeline.json", every))
    for devices in dict.fromkeys(["cuda:0", every]):
        report.run(f"heat3d 512^3 {devices}", partial(rate, cube((512, 512, 512)), devices))
        report.run(f"radius4 8192^2 {devices}", partial(rate, radius_four(8192, 8192), devices))


def breadth(out: Path, devices: str) -> Case:
    """Problems of many kinds, on one GPU and on all."""
    several = f";{devices}" if "," in devices else ""
    file = out / "breadth.json"
    command = [sys.executable, str(ROOT / "benchmarks/cuda/breadth.py"), "--devices", f"cuda:0{several}"]
    done = call([*command, "--out", str(file)], LIMIT)
    print(done.out)
    rows = _rows(file)
    refused = [row["problem"] for row in rows if "error" in row]
    if done.code != 0 or refused:
        raise AssertionError(f"exit {done.code}, {len(rows)} rows, refused: {refused}: {done.err[-1500:]}")
    return {"cases": len(rows), "least_of_one_pass": round(min(row["of_one_pass"] for row in rows), 3)}


def surveys(out: Path, devices: str) -> Case:
    """A survey on one GPU and on all: the same bits, and how much faster."""
    file = out / "surveys.json"
    words = f"cuda:0/1/1;{devices}/1/{devices.count(',') + 1};{devices}"
    command = [sys.executable, str(ROOT / "benchmarks/cuda/surveys.py"), "--devices", words]
    done = call([*command, "--out", str(file)], LIMIT)
    print(done.out)
    rows = _rows(file)
    if done.code != 0 or len(rows) != 3:
        raise AssertionError(f"exit {done.code}, {len(rows)} rows: {done.err[-1500:]}")
    one, every, _ = rows
    return {
        "times_faster": round(one["seconds"] / every["seconds"], 2),
        "times_faster_from_trace_to_trace": round(one["seconds_per_trace"] / every["seconds_per_trace"], 2),
        "seconds_per_trace": round(one["seconds_per_trace"], 3),
    }


def user(report: Report, counts: list[int]) -> None:
    """Stencils as a user writes them run as fast as the same thing shipped, within 5 %."""
    report.run(f"bench own {_first(counts[-1])}", partial(suite, "own", counts, report.path.parent))
    for row in _rows(report.path.parent / "own.json"):
        if row["against"] != 1:
            report.run(f"{row['series']} on {row['devices']}", partial(_as_fast, row))


def _as_fast(row: dict[str, Any]) -> Case:
    share = round(row["against"], 3)
    if share < 0.95 and "heat: own heat" not in row["series"]:  # that one does more arithmetic than Jacobi
        raise AssertionError(f"{share:.1%} of the rate of what is shipped, spread {row['spread']:.1%}")
    return {"of_shipped": share, "gcells_per_s": round(row["gcells_per_s"], 1), "spread": round(row["spread"], 3)}


def _first(count: int) -> str:
    """The first so many GPUs."""
    return "cuda:" + ",".join(map(str, range(count)))


def suite(name: str, counts: list[int], out: Path) -> Case:
    """One suite on so many devices; its table is printed, its JSON and chart lie beside the report."""
    asked = ("--devices", _first(counts[-1]), "--counts", ",".join(map(str, counts)))
    done = peergrid("bench", name, *asked, "-o", str(out), limit=LIMIT)
    print(done.out)
    rows = _rows(out / f"{name}.json")
    if done.code != 0:
        raise AssertionError(f"exit {done.code} after {done.seconds:.0f} s, {len(rows)} rows: {done.err[-1500:]}")
    best = max(rows, key=lambda row: row["gcells_per_s"])
    return {"cases": len(rows), "best": best["series"], "gcells_per_s": round(best["gcells_per_s"], 1)}


def _rows(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["rows"] if path.exists() else []


def rate(problem: Any, devices: str) -> Case:
    """The rate with the options that suit the problem; the median of some samples."""
    from peergrid import Simulation

    with Simulation(problem, 100_000, devices=devices) as run:

        def sample(steps: int) -> float:
            started = time.perf_counter()
            run.run(steps)
            return (time.perf_counter() - started) / steps

        one_iteration = 2 * run.options.depth
        sample(4 * one_iteration)
        steps = one_iteration * min(500, max(1, int(SECONDS / sample(4 * one_iteration) / one_iteration)))
        seconds = [sample(steps) for _ in range(SAMPLES)]
        middle = median(seconds)
        rates = {"us_per_step": round(middle * 1e6, 2), "gcells_per_s": round(problem.grid.box.size / middle / 1e9, 2)}
        return {**rates, "depth": run.options.depth, "spread": round((max(seconds) - min(seconds)) / middle, 3)}


def timeline(path: Path, devices: str) -> Case:
    """What ran where in some steps of Jacobi, for Perfetto, and the communication that nothing hid."""
    from peergrid import Options, Simulation

    with Simulation(relaxed(17408, 17408), 40, devices=devices, options=Options("overlap")) as run:
        run.run(20)
        found = run.trace(10)
        exposed = run.exposed_communication()
    path.write_text(json.dumps(found.chrome()))
    return {"spans": len(found.spans), "exposed_communication": round(exposed or 0.0, 4)}

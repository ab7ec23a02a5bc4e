"""Choices of arrangements on GPUs: how long they take with the trial, and how good they are beside all arrangements.

    python benchmarks/cuda/chosen.py [--gpus 1] [--seconds 240] [--sizes 512,...] [--out chosen.json]

Every problem is chosen for twice, both times without any memory of the problem or of earlier trials: first its kernels
have to be compiled, then a cache has them. After that all strategies at all depths that are worth a look are carried
out in turns, `ROUNDS` times. The record is valid at any moment.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda"), str(ROOT)]

from forecasts import ALONE, MOST_STEPS, SAMPLE_SECONDS, layout_of, options_of, step_seconds, works  # noqa: E402
from record import about  # noqa: E402

from peergrid import hold  # noqa: E402
from peergrid.predict.choice import depths_of  # noqa: E402
from peergrid.predict.here import forecaster_here  # noqa: E402
from peergrid.resolve import resolve_options  # noqa: E402
from peergrid.runtime.cuda.device.driver import CudaDriver  # noqa: E402
from peergrid.runtime.cuda.executor import CudaExecutor  # noqa: E402
from peergrid.runtime.devices import Devices, parse_devices  # noqa: E402
from peergrid.schedule import Options, Schedule, one_iteration  # noqa: E402
from peergrid.schedule.strategies import STRATEGIES  # noqa: E402
from peergrid.stencil import Problem  # noqa: E402

ROUNDS, REST = 3, 0.15  # seconds before the samples of an arrangement: GPUs at their limit of power are clocked down
Arrangement = tuple[str, int]


def choices(problem: Problem, devices: Devices, cache: Path) -> dict[str, Any]:
    """The arrangement that a long run gets, and the seconds of choosing it: with compiling, and without."""
    found: dict[str, Any] = {}
    for key in ("seconds_with_compiling", "seconds"):
        shutil.rmtree(cache / "cubin" / "trials", ignore_errors=True)
        unknown = replace(problem)
        began = time.perf_counter()
        chosen = resolve_options(devices, unknown, 2 * MOST_STEPS, cache=cache)
        found[key] = time.perf_counter() - began
    options = chosen.options
    return found | {"strategy": options.strategy, "depth": options.depth, "notes": list(chosen.notes)}


def measured(
    problem: Problem, devices: Devices, depths: Sequence[int], cache: Path, driver: Any
) -> dict[Arrangement, list[float]]:
    """Samples of seconds of a step of every strategy at every depth, in turns; those of a depth on the same memory."""
    found: dict[Arrangement, list[float]] = {}
    with ExitStack() as stack:
        todo = list[tuple[CudaExecutor, Schedule]]()
        for depth in depths:
            options = options_of(problem, depth)
            plan = layout_of(problem, devices.count, options)
            made = CudaExecutor(plan, 2 * MOST_STEPS, devices.ordinals, cache=cache / "cubin", driver=driver)
            stack.enter_context(closing(made))
            for name, described in problem.fields.items():
                made.load(name, described.first_values(), 0)
            names = ALONE if devices.count == 1 else tuple(STRATEGIES)
            todo += [(made, one_iteration(plan, replace(options, strategy=name))) for name in names]
        for _ in range(ROUNDS):
            for executor, schedule in todo:
                time.sleep(REST)
                samples = step_seconds(executor, schedule, SAMPLE_SECONDS)["samples"]
                found.setdefault((schedule.options.strategy, schedule.options.depth), []).extend(samples)
    return found


def row_of(work: Any, devices: Devices, cache: Path, driver: Any) -> dict[str, Any]:
    """The choice for a problem beside everything that was tried."""
    problem = work.make()
    found = {"problem": work.name, "shape": problem.grid.shape, "gpus": devices.count}
    found |= choices(problem, devices, cache)
    asked = forecaster_here(problem, devices)
    assert asked is not None
    depths = sorted({*depths_of(asked), found["depth"]}, reverse=True)
    steps = {way: median(taken) for way, taken in measured(problem, devices, depths, cache, driver).items()}
    foretold = {way: asked.forecast(Options(way[0], depth=way[1])).seconds_per_step for way in steps}
    first, best = min(foretold, key=foretold.__getitem__), min(steps.values())
    tried = [[*way, steps[way], foretold[way]] for way in sorted(steps, key=steps.__getitem__)]
    return found | {
        "loss": steps[found["strategy"], found["depth"]] / best - 1,
        "loss_of_the_forecasts_first": steps[first] / best - 1,
        "tried": tried,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=240.0, help="no case is begun after so many")
    parser.add_argument("--sizes", default="512,1024,2560,8192,16384", help="cells along an axis")
    parser.add_argument("--out", type=Path, default=Path("chosen.json"))
    given = parser.parse_args()
    devices = parse_devices("cuda:" + ",".join(map(str, range(given.gpus))))
    driver = CudaDriver()
    found: dict[str, Any] = {"about": about(("peergrid", "numpy", "cuda-core", "nvidia-cuda-nvrtc")), "rows": []}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, hold(devices):
        for work in works(tuple(int(n) for n in given.sizes.split(",")), ()):
            if time.monotonic() - began > given.seconds:
                found.setdefault("not_reached", []).append(f"{work.name} {work.size}")
                continue
            row = row_of(work, devices, Path(folder), driver)
            found["rows"].append(row)
            found["within_3_percent"] = sum(one["loss"] <= 0.03 for one in found["rows"]) / len(found["rows"])
            found["worst"] = max(one["loss"] for one in found["rows"])
            found["most_seconds"] = max(one["seconds"] for one in found["rows"])
            given.out.write_text(json.dumps(found, indent=1, default=str))
            named = f"{row['problem']} {row['shape'][0]}: {row['strategy']} {row['depth']}"
            print(
                f"{time.monotonic() - began:6.1f} s {named}, loss {row['loss']:.1%} "
                f"(forecast's first {row['loss_of_the_forecasts_first']:.1%}), chosen in {row['seconds']:.3f} s, "
                f"{row['seconds_with_compiling']:.2f} s with compiling; {row['notes']}",
                flush=True,
            )
    print({key: found[key] for key in ("within_3_percent", "worst", "most_seconds")})


if __name__ == "__main__":
    main()

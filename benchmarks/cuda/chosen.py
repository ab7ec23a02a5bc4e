"""Choices of arrangements on GPUs: how long they take with the trial, and how good they are beside all arrangements.

    python benchmarks/cuda/chosen.py [--gpus 1] [--seconds 240] [--sizes 512,...] [--out chosen.json]

Every problem is chosen for twice, both times without any memory of the problem or of earlier trials: first its kernels
have to be compiled, then a cache has them. After that all strategies at all depths that can be the fastest are carried
out in turns, `ROUNDS` times, and the fastest and the chosen one `AGAIN` times. The record is valid at any moment.
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

from forecasts import ALONE, MOST_STEPS, SAMPLE_SECONDS, Work, layout_of, options_of, step_seconds, works  # noqa: E402
from record import about  # noqa: E402

from peergrid import hold  # noqa: E402
from peergrid.predict.choice import depths_of  # noqa: E402
from peergrid.predict.here import forecaster_here  # noqa: E402
from peergrid.resolve import resolve_options  # noqa: E402
from peergrid.runtime.cuda.executor import CudaExecutor  # noqa: E402
from peergrid.runtime.devices import Devices, parse_devices  # noqa: E402
from peergrid.schedule import Options, Schedule, one_iteration  # noqa: E402
from peergrid.schedule.strategies import STRATEGIES  # noqa: E402
from peergrid.stencil import Problem  # noqa: E402

ROUNDS, AGAIN = 2, 4  # turns of all arrangements; and of the fastest of these and the chosen one
REST = 0.15  # seconds before the samples of an arrangement: GPUs at their limit of power are clocked down
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
    problem: Problem, devices: Devices, depths: Sequence[int], chosen: Arrangement, cache: Path
) -> tuple[dict[Arrangement, float], dict[Arrangement, float]]:
    """Seconds of a step of every strategy at every depth, those of a depth on the same memory; and again of the fastest
    of them and the chosen one: that which was the fastest of many had luck, too.
    """
    with ExitStack() as stack:
        todo = list[tuple[CudaExecutor, Schedule]]()
        for depth in depths:
            options = options_of(problem, depth)
            plan = layout_of(problem, devices.count, options)
            made = CudaExecutor(plan, 2 * MOST_STEPS, devices.ordinals, cache=cache / "cubin")
            stack.enter_context(closing(made))
            for name, described in problem.fields.items():
                made.load(name, described.first_values(), 0)
            names = ALONE if devices.count == 1 else tuple(STRATEGIES)
            todo += [(made, one_iteration(plan, replace(options, strategy=name))) for name in names]
        steps = _in_turns(todo, ROUNDS)
        first = min(steps, key=steps.__getitem__)
        again = [one for one in todo if _named(one[1]) in (first, chosen)]
        return steps, _in_turns(again, AGAIN)


def _in_turns(todo: Sequence[tuple[CudaExecutor, Schedule]], rounds: int) -> dict[Arrangement, float]:
    """Seconds of a step of each, all of them once in a round."""
    found: dict[Arrangement, list[float]] = {}
    for _ in range(rounds):
        for executor, schedule in todo:
            time.sleep(REST)
            found.setdefault(_named(schedule), []).extend(step_seconds(executor, schedule, SAMPLE_SECONDS)["samples"])
    return {way: median(samples) for way, samples in found.items()}


def _named(schedule: Schedule) -> Arrangement:
    return schedule.options.strategy, schedule.options.depth


def row_of(work: Work, devices: Devices, cache: Path) -> dict[str, Any]:
    """The choice for a problem beside everything that was tried."""
    problem = work.make()
    found = {"problem": work.name, "shape": problem.grid.shape, "gpus": devices.count}
    found |= choices(problem, devices, cache)
    asked = forecaster_here(problem, devices)
    assert asked is not None
    depths = sorted({*depths_of(asked), found["depth"]}, reverse=True)
    chosen = found["strategy"], found["depth"]
    steps, again = measured(problem, devices, depths, chosen, cache)
    predicted = {way: asked.forecast(Options(way[0], depth=way[1])).seconds_per_step for way in steps}
    first, best = min(predicted, key=predicted.__getitem__), min(steps, key=steps.__getitem__)
    tried = [[*way, steps[way], predicted[way]] for way in sorted(steps, key=steps.__getitem__)]
    return found | {
        "loss": again[chosen] / again[best] - 1,
        "loss_of_the_forecasts_first": steps[first] / steps[best] - 1,
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
    found: dict[str, Any] = {"about": about(("peergrid", "numpy", "cuda-core", "nvidia-cuda-nvrtc")), "rows": []}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, hold(devices):
        for work in works(tuple(int(n) for n in given.sizes.split(",")), ()):
            if time.monotonic() - began > given.seconds:
                found.setdefault("not_reached", []).append(f"{work.name} {work.size}")
                continue
            row = row_of(work, devices, Path(folder))
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

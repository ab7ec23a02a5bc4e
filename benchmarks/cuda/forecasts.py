"""Steps of many arrangements measured, for what `peergrid.predict` says of them: cases to fit its costs, cases to hold
it to, and the memory that the driver reports.

    python benchmarks/cuda/forecasts.py [--gpus 1,2] [--seconds 180] [--tried 512,...] [--fitted 1024,...]
        [--only WORD,...] [--out forecasts.json] [--emulate]

First the host's speed is measured, then all cases to hold forecasts to are predicted for it and written down, then
everything is measured. Every problem and size is made once for each depth; all strategies are carried out on the same
memory, one after the other: a warm-up, then `SAMPLES` samples of at least `SAMPLE_SECONDS`. The record is valid at any
moment; `fit` says which rows may be used to fit costs. --emulate: tiny grids on kernels compiled as host C++, to try
the program.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "cuda"), str(ROOT)]

from problems3d import acoustic_problem, heat_problem  # noqa: E402
from record import about  # noqa: E402

from peergrid.bench.own import own_heat, own_waves  # noqa: E402
from peergrid.bench.problems import jacobi, noisy, radar  # noqa: E402
from peergrid.codegen.cuda.choose.balance import balanced  # noqa: E402
from peergrid.codegen.cuda.choose.steps import block_of, lengths, split_at  # noqa: E402
from peergrid.costs.machine import Machine  # noqa: E402
from peergrid.costs.machines import LAUNCH, nearest, with_host  # noqa: E402
from peergrid.errors import PeergridError  # noqa: E402
from peergrid.predict.choice import CANDIDATES, ranked  # noqa: E402
from peergrid.predict.forecast import Forecaster  # noqa: E402
from peergrid.runtime.cuda.calls import launch_seconds  # noqa: E402
from peergrid.runtime.cuda.device.devices import Devices  # noqa: E402
from peergrid.runtime.cuda.device.driver import CudaDriver  # noqa: E402
from peergrid.runtime.cuda.executor import CudaExecutor  # noqa: E402
from peergrid.runtime.cuda.lowering.kernels import Kernels  # noqa: E402
from peergrid.runtime.cuda.lowering.programs import Programs  # noqa: E402
from peergrid.runtime.cuda.memory.room import gpu_model, multiprocessors  # noqa: E402
from peergrid.schedule import Layout, Options, Schedule, layout, one_iteration  # noqa: E402
from peergrid.schedule.strategies import STRATEGIES, StrategyName  # noqa: E402
from peergrid.stencil import Problem  # noqa: E402

SAMPLES, SAMPLE_SECONDS, MOST_STEPS = 3, 0.012, 400_000
ALONE: tuple[StrategyName, ...] = ("serial", "async", "overlap", "graph", "persistent")
"""Strategies that one GPU carries out each in its own way."""
PROCESSES = 16  # that predict side by side
MULTI_PASS = 4  # steps of an exchange interval where a pass makes one


@dataclass(frozen=True)
class Work:
    """A problem of a size, whose steps are measured: to fit costs, or to hold forecasts to."""

    name: str
    size: int
    make: Callable[[], Problem]
    fit: bool
    strategies: tuple[StrategyName, ...] = tuple(STRATEGIES)

    @property
    def cells(self) -> int:
        return self.size**3 if "3D" in self.name else self.size**2


def cube(n: int) -> int:
    """The side of a cube with about as many cells as a square of n by n."""
    return max(24, round(n ** (2 / 3) / 8) * 8)


Made = list[tuple[Work, Problem]]


def works(tried: tuple[int, ...], fitted: tuple[int, ...]) -> list[Work]:
    """What is measured, in the order of the sizes given, so that a limit of time cuts off the last.

    tried, fitted: cells along an axis of squares, or of cubes with as many cells.
    """
    found: list[Work] = []
    for fit, sizes in ((False, tried), (True, fitted)):
        for n in sizes:
            m = cube(n)
            found.append(Work("Jacobi", n, partial(jacobi, n, n), fit))
            found.append(Work("radar", n, partial(radar, n, n, 1000), fit))
            found.append(Work("3D heat", m, lambda m=m: noisy(heat_problem(m)), fit))
            found.append(Work("3D acoustic", m, lambda m=m: noisy(acoustic_problem(m)), fit))
    for n in fitted:
        found.append(Work("heat", n, partial(own_heat, n, n), True, ("overlap",)))
        found.append(Work("waves", n, partial(own_waves, n, n, lossy=False), True, ("overlap",)))
    return found


def depths(problem: Problem) -> tuple[int, ...]:
    deep = lengths(problem)[0]
    return (1, deep if deep > 1 else MULTI_PASS)


def options_of(problem: Problem, depth: int, strategy: StrategyName = "overlap") -> Options:
    return Options(strategy, depth=depth, block=block_of(problem, depth))


def layout_of(problem: Problem, count: int, options: Options) -> Layout:
    partition = balanced(problem, count, options.depth, None, options.block)
    return layout(problem, partition, options, split_at(problem, partition))


def strategies(work: Work, count: int) -> tuple[StrategyName, ...]:
    return work.strategies if count > 1 else tuple(one for one in work.strategies if one in ALONE)


def precompile(todo: Made, counts: list[int], driver: Any, cache: Path) -> None:
    """The kernels of all problems, compiled side by side."""
    with closing(Devices(driver, (0,))) as one, closing(Programs(one, cache)) as programs:
        for work, problem in todo:
            for count, depth in product(counts, depths(problem)):
                ordinals = tuple(range(count))
                model, units = gpu_model(ordinals, driver), multiprocessors(ordinals, driver)
                for strategy in strategies(work, count):
                    options = options_of(problem, depth, strategy)
                    plan = layout_of(problem, count, options)
                    kernels = Kernels(plan, None, model, units, lambda a, b: True)
                    programs.expect([kernels.needed(one_iteration(plan, options))])
        programs.settle()


def predicted(work: Work, problem: Problem, count: int, machine: Machine) -> list[dict[str, Any]]:
    """The forecasts of all cases of a problem, and what a run would choose and in what time."""
    asked, found = Forecaster(problem, machine, count), []
    for depth, strategy in product(depths(problem), strategies(work, count)):
        made = asked.forecast(options_of(problem, depth, strategy), 2 * MOST_STEPS)
        row = {**_named(work, problem, count), "depth": depth, "strategy": strategy}
        found.append({**row, "predicted": made.seconds_per_step, "host": made.host_seconds_per_step})
    began = time.perf_counter()
    chosen = ranked(Forecaster(problem, machine, count))[:CANDIDATES]
    seconds = time.perf_counter() - began
    ways = [[one.options.strategy, one.options.depth, one.seconds_per_step] for one in chosen]
    return [*found, {**_named(work, problem, count), "strategy": "choice", "ways": ways, "seconds": seconds}]


def _named(work: Work, problem: Problem, count: int) -> dict[str, Any]:
    return {"problem": work.name, "shape": problem.grid.shape, "gpus": count}


def predict(todo: Made, counts: list[int], machine: Machine) -> Iterator[dict[str, Any]]:
    """The same of all problems, by processes side by side, which have the problems from this one."""
    global _task

    def _task(case: tuple[int, int]) -> list[dict[str, Any]]:
        return predicted(*todo[case[0]], case[1], machine)

    cases = [(n, count) for n in range(len(todo)) for count in counts]
    with get_context("fork").Pool(min(PROCESSES, max(1, len(cases)))) as pool:
        for rows in pool.imap(_asked, cases, chunksize=1):
            yield from rows


def _asked(case: tuple[int, int]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _task(case)
    return found


def host_seconds(count: int, cache: Path | None) -> float:
    """Seconds of a launch, measured by a process of its own: one that has spoken to a GPU cannot be forked."""
    if cache is None:
        return LAUNCH
    with get_context("fork").Pool(1) as pool:
        return pool.apply(launch_seconds, (tuple(range(count)), None, cache))


def step_seconds(executor: CudaExecutor, schedule: Schedule, seconds: float) -> dict[str, Any]:
    """Seconds of a step: samples, and what the busiest thread of the host spent on one."""
    done = 0

    def sample(times: int) -> float:
        nonlocal done
        began = time.perf_counter()
        executor.execute(schedule, times, done % MOST_STEPS)
        done += times * schedule.steps
        return (time.perf_counter() - began) / times / schedule.steps

    sample(2)
    first = sample(4)
    times = max(1, min(MOST_STEPS // schedule.steps // 2, int(seconds / first / schedule.steps)))
    sample(times)
    before = executor.host_seconds
    samples = [sample(times) for _ in range(SAMPLES)]
    spent = (executor.host_seconds - before) / SAMPLES / times / schedule.steps
    return {"seconds_per_step": median(samples), "samples": samples, "host_seconds_per_step": spent}


def spans_of(executor: CudaExecutor, schedule: Schedule) -> list[list[Any]]:
    """When each operation of one iteration ran: its number, device, queue, start and end."""
    found = executor.trace(schedule, 0)
    return [[s.op, s.queue.device, s.queue.name, s.start, s.end] for s in found][:60]


def measured(work: Work, problem: Problem, count: int, depth: int, driver: Any, cache: Path | None,
             seconds: float) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A row for each strategy, all on the same memory."""
    options = options_of(problem, depth)
    plan = layout_of(problem, count, options)
    ordinals = tuple(range(count))
    free = used(driver, ordinals)
    row = {**_named(work, problem, count), "depth": depth, "block": options.block, "fit": work.fit}
    with closing(CudaExecutor(plan, 2 * MOST_STEPS, ordinals, cache=cache, driver=driver)) as executor:
        for name, described in problem.fields.items():
            executor.load(name, described.first_values(), 0)
        for strategy in strategies(work, count):
            schedule = one_iteration(plan, replace(options, strategy=strategy))
            try:
                found = step_seconds(executor, schedule, seconds)
                if strategy == "overlap" and work.fit:
                    found["spans"] = spans_of(executor, schedule)
            except PeergridError as error:
                found = {"error": str(error)}
            yield {**row, "strategy": strategy, **found, "notes": list(executor.notes)}
        taken = [after - before for before, after in zip(free, used(driver, ordinals), strict=True)]
        yield {**row, "strategy": "memory", "bytes": taken}


def used(driver: Any, ordinals: tuple[int, ...]) -> list[int]:
    """Bytes taken on each GPU, as its driver reports."""
    found = []
    with closing(Devices(driver, ordinals)) as devices:
        for device in range(len(ordinals)):
            free, total = devices.on(device).memory()
            found.append(total - free)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="1")
    parser.add_argument("--seconds", type=float, default=180.0, help="no case is begun after so many")
    parser.add_argument("--tried", default="512,2048,4096,8192,16384", help="cells along an axis, to hold forecasts to")
    parser.add_argument("--fitted", default="1024,6144", help="the same, to fit costs to")
    parser.add_argument("--only", default="", help="only problems with one of these words in their name")
    parser.add_argument("--out", type=Path, default=Path("forecasts.json"))
    parser.add_argument("--emulate", action="store_true")
    given = parser.parse_args()
    began, counts = time.monotonic(), [int(n) for n in given.gpus.split(",")]
    cache = None if given.emulate else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peergrid"
    sizes = [tuple(int(n) for n in text.split(",") if n) for text in (given.tried, given.fitted)]
    named = [work for work in works(*sizes) if any(word in work.name for word in given.only.split(","))]
    launches = host_seconds(max(counts), cache)
    machine = with_host(nearest("NVIDIA H200", max(counts)), launches / LAUNCH)
    todo = [(work, work.make()) for work in named]
    found: dict[str, Any] = {"about": about(("peergrid", "numpy", "cuda-core", "nvidia-cuda-nvrtc")),
                             "launch_seconds": launches, "foretold": [], "rows": []}  # fmt: skip

    def say(what: str) -> None:
        given.out.write_text(json.dumps(found, default=str))
        print(f"{time.monotonic() - began:6.1f} s {what}", flush=True)

    say(f"{launches * 1e6:.2f} µs for a launch; {len(todo)} problems made")
    found["foretold"] = list(predict([one for one in todo if not one[0].fit], counts, machine))
    say(f"{len(found['foretold'])} forecasts written down")
    driver = emulated(max(counts)) if given.emulate else CudaDriver()
    if cache is not None:
        precompile(todo, counts, driver, cache)
        say("compiled")
    with closing(Devices(driver, tuple(range(max(counts))))):  # contexts stay: memory counts what runs take
        for work, problem in todo:
            if time.monotonic() - began > given.seconds:
                found.setdefault("not_reached", []).append(f"{work.name} {work.size}")
                continue
            for count, depth in product(counts, depths(problem)):
                for row in measured(work, problem, count, depth, driver, cache, 0 if given.emulate else SAMPLE_SECONDS):
                    found["rows"].append(row)
                    say(f"{work.name} {work.size} ×{count} {row['strategy']} {depth}: {_said(row)}")
    found["launch_seconds_after"] = launch_seconds(tuple(range(max(counts))), driver, cache)
    say(f"{len(found['rows'])} rows; {found['launch_seconds_after'] * 1e6:.2f} µs for a launch")


def _said(row: dict[str, Any]) -> str:
    if "seconds_per_step" in row:
        return f"{row['seconds_per_step'] * 1e6:.2f} µs"
    return str(row.get("error") or row["bytes"])


def emulated(gpus: int) -> Any:
    """A driver that runs kernels as host C++."""
    sys.path[:0] = [str(path) for path in (ROOT / "tests").rglob("*") if path.is_dir()]
    from host_driver import HostDriver  # type: ignore[import-not-found]

    return HostDriver(gpus=gpus, blocks=4)


if __name__ == "__main__":
    main()

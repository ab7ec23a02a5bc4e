"""Exchanges over a slow wire behind a device that is busy, and what more steps between two exchanges bring.

    python benchmarks/ranks_hidden.py [--delay 75] [--name MACHINE]

Two ranks on two hosts (network namespaces) of this machine, between which a wire delays every frame (`wire.py`).
Devices are of a kind that only takes time: a pass sleeps, as the host of a GPU does. Emulated, and recorded as such.
Hidden: the share of an exchange by which a step is not longer than without one; medians of several runs, and the best.
A step lasts from one interior's start to the next one's, at the mean of a run and on the slower rank. What comes once
in a run, and not in every step, is told apart: until the first interior starts, and from the last one's end until all
ranks are done, of which one may be a step behind.
Forecasts know of no step of two ranks that is busy: what a pass takes is measured on one device alone, and the network
by what an exchange adds to a step whose passes take no time, with and without the delay.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

from record import about, save

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "runtime"))

from launchers import MPICH, OPENMPI, Hosts, Mpi, two_hosts, veth  # noqa: E402

from peergrid import Grid, Options, Problem, stencil  # noqa: E402
from peergrid.costs.machine import Line, Machine  # noqa: E402
from peergrid.grid import Box  # noqa: E402
from peergrid.grid.partition import Partition  # noqa: E402
from peergrid.predict.kernels import Duration  # noqa: E402
from peergrid.predict.operations import Given, Timed  # noqa: E402
from peergrid.predict.simulation import simulate  # noqa: E402
from peergrid.predict.virtual import virtual_machine  # noqa: E402
from peergrid.runtime.cpu.executor import ThreadedExecutor  # noqa: E402
from peergrid.runtime.kernel import Pass  # noqa: E402
from peergrid.runtime.ranks.exchange_times import exchange_times  # noqa: E402
from peergrid.runtime.ranks.executor import RankedExecutor  # noqa: E402
from peergrid.runtime.ranks.messages import MpiMail  # noqa: E402
from peergrid.runtime.ranks.ranks import Ranks  # noqa: E402
from peergrid.schedule import Schedule, layout, one_iteration  # noqa: E402
from peergrid.schedule.passes.ranks import over_ranks  # noqa: E402

BUSY, STEP = 2e-3, 50e-6  # seconds that a device takes for a step
STEPS, WARM = 170, 4  # of a run behind busy devices; those at its beginning that do not count
SIZES = {"4 KiB": 512, "64 KiB": 8192}  # columns of float64
DEPTHS = (1, 2, 4, 8)
EXCHANGED = (8, 4 << 10, 64 << 10)  # bytes
SAMPLES = 3
ROWS, RUNS, SECONDS = 64, 7, 0.12


@stencil
def heat(u: Any, k: Any) -> None:
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


def problem(rows: int, columns: int) -> Problem:
    return Problem.of(heat(Grid((rows, columns), dtype="float64").field("u", 0.0), 0.1))


def sleeping(seconds: float, cells: int, memory: Any, work: Pass) -> None:
    """A pass of a device that takes so long for a step of so many cells, and computes nothing."""
    time.sleep(seconds * work.steps * work.box.size / cells)


@dataclass(frozen=True)
class Run:
    """Seconds: of a step, the mean of a run; until the first interior starts; from the last one's end to the run's."""

    step: float
    beginning: float
    end: float


class Stamped:
    """The pass of a device that is busy, with the moments at which interiors started and ended."""

    def __init__(self, columns: int) -> None:
        self._cells, self._moments = ROWS * columns, list[tuple[float, float]]()

    def __call__(self, memory: Any, work: Pass) -> None:
        began = time.perf_counter()
        sleeping(BUSY, self._cells, memory, work)
        if 2 * work.box.size > self._cells:
            self._moments.append((began, time.perf_counter()))

    def run(self, executor: Any, schedule: Schedule) -> Run:
        self._moments.clear()
        began = time.perf_counter()
        executor.execute(schedule, STEPS // schedule.steps, 0)
        ended, starts = time.perf_counter(), [start for start, _ in self._moments]
        step = (starts[-1] - starts[WARM]) / (len(starts) - 1 - WARM)
        return Run(step, starts[0] - began, ended - self._moments[-1][1])


def behind_busy_devices(comm: Any, columns: int) -> dict[str, list[Run]]:
    """Runs of a device without neighbours and of one with, in turns, each on the rank whose steps are longer."""
    found: dict[str, list[Run]] = {"alone": [], "both": []}
    with ExitStack() as opened:
        ready = {}
        for name, among in (("alone", None), ("both", comm)):
            executor, schedule = carried(among, columns, 1, kernel := Stamped(columns))
            opened.enter_context(closing(executor))
            executor.execute(schedule, WARM, 0)
            ready[name] = kernel, executor, schedule
        for _ in range(RUNS):
            for name, (kernel, executor, schedule) in ready.items():
                runs = Ranks(comm).allgather(kernel.run(executor, schedule))
                found[name].append(max(runs, key=lambda run: run.step))
    return found


def carried(comm: Any, columns: int, depth: int, kernel: Any) -> tuple[Any, Schedule]:
    """An executor and what it carries out; comm: of two ranks, or None for a device without neighbours."""
    count = 1 if comm is None else 2
    plan = layout(made := problem(count * ROWS, columns), Partition.over(made.grid, count), options(depth))
    schedule = one_iteration(plan, options(depth))
    if comm is None:
        executor: Any = ThreadedExecutor(plan, 1, kernel)
    else:
        ranks = Ranks(comm, (0, 1))
        inner = ThreadedExecutor(plan, 1, kernel, devices=ranks.mine, mail=MpiMail(ranks, made.grid.dtype))
        executor = RankedExecutor(inner, ranks)
    executor.prepare(schedule)
    return executor, schedule


def step_seconds(comm: Any, columns: int, depth: int, seconds: float) -> float:
    """Seconds of a step, beginning and end of a run among them, at the median of runs."""
    executor, schedule = carried(comm, columns, depth, partial(sleeping, seconds, ROWS * columns))
    times, samples = max(4, int(SECONDS / (seconds + 3e-4) / schedule.steps)), []
    with closing(executor):
        for _ in range(1 + SAMPLES):
            began = time.perf_counter()
            executor.execute(schedule, times, 0)
            samples.append((time.perf_counter() - began) / times / schedule.steps)
    return median(samples[1:])


def options(depth: int) -> Options:
    return Options("overlap", depth)


def exchange_in_a_step(comm: Any) -> float:
    """Seconds by which steps are longer that exchange 4 KiB and compute nothing: messages, and threads that wake."""
    found = [step_seconds(comm, 512, 1, 0.0) - step_seconds(None, 512, 1, 0.0) for _ in range(RUNS)]
    return max(0.0, median(found))


@cache
def passed(seconds: float) -> float:
    """Seconds of a pass of a device alone that sleeps for so many, with those of the threads that carry it out."""
    return 2 * step_seconds(None, 512, 2, seconds / 2)


def simulated(columns: int, depth: int, seconds: float, machine: Machine) -> float:
    """Seconds of a step of two ranks on paper."""
    plan = layout(made := problem(2 * ROWS, columns), Partition.over(made.grid, 2), options(depth))
    schedule = over_ranks(one_iteration(plan, options(depth)), (0, 1))

    def passes(device: int, steps: int, boxes: tuple[Box, ...]) -> tuple[Timed, ...]:
        took = sum(passed(seconds * steps * box.size / (ROWS * columns)) for box in boxes)
        return (Timed(Duration(0.0, took)),)  # devices that sleep do several things at once

    return simulate(schedule, Given(replace(machine, nodes=2), 8, passes, lambda op: "copy")).seconds / schedule.steps


def measured() -> dict[str, Any]:
    """All figures, on both ranks."""
    from mpi4py import MPI

    ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # sleeps end when they are due
    comm, found = MPI.COMM_WORLD, dict[str, Any]()
    times = exchange_times(comm, 2, EXCHANGED)
    found["exchange"] = {one.bytes: {"bare": one.bare, "messages": one.messages} for one in times.exchanges}
    for name, columns in SIZES.items():
        runs = behind_busy_devices(comm, columns)
        whole = next(one.messages for one in times.exchanges if one.bytes == columns * 8)
        found[name] = {one: [asdict(run) for run in some] for one, some in runs.items()} | {"exchange": whole}
    depths = {depth: [step_seconds(comm, 512, depth, STEP) for _ in range(RUNS)] for depth in DEPTHS}
    found["in a step"] = exchange_in_a_step(comm)
    machine = replace(virtual_machine(), network=Line(found["in a step"], times.bandwidth))
    found["depths"] = {
        depth: {"best": min(runs), "median": median(runs), "foretold": simulated(512, depth, STEP, machine)}
        for depth, runs in depths.items()
    }
    found["gain"] = found["depths"][1]["median"] / found["depths"][8]["median"]
    return found


@contextmanager
def delayed(delay: float, spaces: tuple[str, str]) -> Iterator[None]:
    """A wire with so many microseconds between two namespaces."""
    line = [sys.executable, str(HERE / "wire.py"), *spaces, str(delay)]
    wire = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    assert wire.stdout is not None
    told = wire.stdout.readline().strip()
    if not told.startswith("up"):
        raise OSError("the wire could not be laid: it asks for root and /dev/net/tun")
    print(f"the wire that delays is {told}", flush=True)
    for space in spaces:
        subprocess.run(["ip", "-n", space, "link", "set", "net0", "mtu", "9000"], check=True)
    try:
        yield
    finally:
        wire.kill()
        wire.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=75.0, help="microseconds that the wire adds to its own")
    parser.add_argument("--rank", action="store_true", help="what the launcher starts")
    parser.add_argument("--mpi", default="mpich,openmpi")
    parser.add_argument("--name", help="of the machine, in the names of its records; none: the usual one")
    parser.add_argument("--dry", action="store_true", help="record nothing")
    given = parser.parse_args()
    if given.rank:
        from mpi4py import MPI

        found = measured()
        if MPI.COMM_WORLD.rank == 0:
            print(json.dumps(found), flush=True)
        return
    results = over_both_wires(given.delay, given.mpi.split(","))
    for name, found in results.items():
        found["hidden"] = {
            size: hidden(found.get("without delay", {}).get(size), found["delayed"][size]) for size in SIZES
        }
        print(name, json.dumps(found, indent=1), flush=True)
        if not given.dry:
            about_it = about(("peergrid", "mpi4py", *(["mpich"] if name == "mpich" else [])))
            whole = "_".join(filter(None, ("ranks_hidden", name, given.name)))
            save(whole, {**about_it, "delay": given.delay, "results": found})


def over_both_wires(delay: float, mpis: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The figures by MPI and wire; without those of the wire that does not delay where the system has no such wires.
    Exits where no wire can delay.
    """
    results: dict[str, dict[str, Any]] = {mpi.name: {} for mpi in (MPICH, OPENMPI) if mpi.there and mpi.name in mpis}
    for wire, lay in (("without delay", veth), ("delayed", partial(delayed, delay))):
        with two_hosts(lay) as hosts:
            if hosts is not None:
                for mpi in (one for one in (MPICH, OPENMPI) if one.name in results):
                    results[mpi.name][wire] = carried_out(mpi, hosts)
            elif wire == "delayed":
                sys.exit("No wire that delays, for the reason above: nothing to measure.")
    return results


def carried_out(mpi: Mpi, hosts: Hosts) -> dict[str, Any]:
    """The figures of two ranks. Raises RuntimeError where they fail."""
    line = [*mpi.command(2, hosts), sys.executable, str(Path(__file__).resolve()), "--rank"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, env=mpi.environment(), check=False)
    told = next((line for line in done.stdout.splitlines() if line.startswith("{")), "")
    if not told:
        raise RuntimeError(done.stderr[-800:])
    found: dict[str, Any] = json.loads(told)
    return found


def hidden(before: dict[str, Any] | None, after: dict[str, Any]) -> dict[str, float]:
    """Shares of an exchange that do not show in a step: of all of it, where threads that wake count as exchange; and of
    what the wire's delay adds to `before`.
    """
    alone, both = steps(after, "alone"), steps(after, "both")
    shares = [1 - (long - short) / after["exchange"] for short, long in zip(alone, both, strict=True)]
    found = {"best": max(shares), "median": median(shares)}
    if before is not None:
        added = median(both) - median(steps(before, "both"))
        found["of the delay"] = 1 - added / (after["exchange"] - before["exchange"])
    return found


def steps(found: dict[str, Any], name: str) -> list[float]:
    """Seconds of a step in each run."""
    return [run["step"] for run in found[name]]


if __name__ == "__main__":
    main()

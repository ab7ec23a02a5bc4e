"""When things go wrong on GPUs: a lost signal has a name within seconds and does no harm to the next run; what does
not fit is refused before anything is allocated.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gpu_checks.call import ME, call, peergrid
from gpu_checks.report import Case, Report, carry_out

IN_TIME = 10.0  # seconds within which a lost signal must be named
STEPS = 32
SIZE = (1024, 768)
MODEL = """
[grid]
size = [{x}, {y}]
spacing = 0.001
steps = 20
[[source]]
kind = "line"
position = [{sx}, {sy}]
waveform = {{ kind = "ricker", frequency = 9e8 }}
[[receiver]]
position = [{sx}, {sy}]
"""


def faults(report: Report, counts: list[int]) -> None:
    """Signals lost and grids that are too large, all at once: each waits in a process of its own."""
    pairs = ["cuda:0,0", *(["cuda:0,1"] if counts[-1] > 1 else [])]
    cases: dict[str, Callable[[], Case]] = {
        f"lost {kind} {devices}": partial(_lost, kind, devices)
        for devices in pairs
        for kind in LOST
        if "word" not in kind or devices == "cuda:0,1"  # on one GPU events tie queues
    }
    cases["does not fit, nothing allocated"] = partial(_elsewhere, "fit", 60)
    cases |= {f"peergrid {command}, does not fit": partial(_refused, command) for command in ("run", "plan")}
    with ThreadPoolExecutor(len(cases)) as pool:
        for case in pool.map(carry_out, cases, cases.values()):
            report.add(case)


# Lost signals ---------------------------------------------------------------------------------------------------------


def _lost(kind: str, devices: str) -> Case:
    found = _elsewhere(f"lost:{kind}:{devices}", 60)
    if found["seconds"] >= IN_TIME:
        raise AssertionError(f"named only after {found['seconds']} s: {found['fault']}")
    return found


def _elsewhere(what: str, limit: float) -> Case:
    """A case in a process of its own, which prints what it found as its last line."""
    done = call([sys.executable, ME, "--under", what], limit)
    if done.code != 0:
        raise AssertionError(f"exit {done.code} after {done.seconds:.1f} s: {done.text[-1500:]}")
    found: Case = json.loads(done.out.strip().splitlines()[-1])
    return found


def lost(kind: str, devices: str) -> Case:
    """In this process: run with a signal missing, see it named; run again as it should be, see the right bits."""
    import numpy as np

    from peergrid import Grid, Options, Problem, Simulation, stencil
    from peergrid.errors import DeviceFault
    from peergrid.grid.partition import Partition
    from peergrid.runtime.cuda.executor import CudaExecutor
    from peergrid.runtime.devices import parse_devices
    from peergrid.schedule import layout

    @stencil
    def relax(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 0.25 * ((u[0, -1] + u[0, 1]) + (u[-1, 0] + u[1, 0]))

    grid = Grid(SIZE, boundary=("periodic", "fixed"))
    problem = Problem.of(relax(grid.field("u", np.random.default_rng(1).random(SIZE, dtype=np.float32))))
    chosen, (options, breaks, words) = parse_devices(devices), LOST[kind]
    plan = layout(problem, Partition.over(grid, 2), Options(**options))
    executor = CudaExecutor(plan, STEPS, chosen.ordinals)  # with the timeout that every run has
    executor.load("u", problem.fields["u"].global_array(), 0)
    started = time.perf_counter()
    try:
        breaks(executor, plan, Options(**options))
    except DeviceFault as fault:
        said = str(fault)
    else:
        raise AssertionError("the run ended as if nothing were missing")
    seconds = round(time.perf_counter() - started, 2)
    executor.close()
    if not re.search(words, said) or "'" not in said:
        raise AssertionError(f"said without the name: {said}")
    digests = []
    for where, kernel in (("cpu:1", "reference"), (devices, "compiled")):
        with Simulation(problem, STEPS, devices=where, options=Options(**options), kernel=kernel) as run:  # type: ignore[arg-type]
            run.run(STEPS)
            digests.append(run.sha256())
    if digests[0] != digests[1]:
        raise AssertionError(f"the next run gave {digests[1][:12]}, the CPU {digests[0][:12]}")
    return {"seconds": seconds, "fault": said, "next_run": digests[1][:12]}


def _without_raises(executor: Any, plan: Any, options: Any) -> None:
    """A schedule in which one flag is never raised."""
    from peergrid.schedule import one_iteration
    from peergrid.schedule.ops import SignalOp

    whole = one_iteration(plan, options)
    dropped = next(op.flag for op in whole.ops if isinstance(op, SignalOp))
    ops = tuple(op for op in whole.ops if not isinstance(op, SignalOp) or op.flag != dropped)
    executor.execute(replace(whole, ops=ops), 1, 0)


def _gone_astray(executor: Any, plan: Any, options: Any) -> None:
    """A schedule in which what one GPU writes for another is written elsewhere."""
    from peergrid.runtime.cuda.lowering.signals import ADDRESS, WRITE
    from peergrid.schedule import one_iteration
    from peergrid.schedule.ops import Flag

    schedule = one_iteration(plan, options)
    commands = executor._lower(schedule).buffers[0]
    writes = [row for words in commands.keep if getattr(words, "ndim", 1) == 2 for row in words if row[0] == WRITE]
    for row in [row for row in writes if row[ADDRESS] == writes[0][ADDRESS]]:
        row[ADDRESS] = executor._execution.flag(Flag(1, "nobody's"))
    executor.execute(schedule, 4, 0)


def _ahead_of_its_neighbours(executor: Any, plan: Any, options: Any) -> None:
    """Passes that exchange by themselves and wait for a pass of their neighbours that never was."""
    from peergrid.runtime.cuda.fused.chain import passed
    from peergrid.schedule import one_iteration

    executor._flag_values[passed(options.strategy)] = 1
    executor.execute(one_iteration(plan, options), 1, 0)


LOST: dict[str, tuple[dict[str, Any], Callable[[Any, Any, Any], None], str]] = {
    "flag": ({"strategy": "peer"}, _without_raises, r"'SignalWait flag .*' waited too long.*stood at 0"),
    "word": ({"strategy": "overlap"}, _gone_astray, r"'Wait .*' waited too long: 'Record .*came 0 times where 8"),
    "word between graphs": ({"strategy": "graph"}, _gone_astray, "'Wait .*' waited too long: 'Record .*came 0 times"),
    "pass": ({"strategy": "peer", "depth": 8}, _ahead_of_its_neighbours, "waited too long"),
    "persistent pass": ({"strategy": "persistent", "depth": 4}, _ahead_of_its_neighbours, "waited too long"),
}
"""What is lost: the options of the run, how to lose it, and what the error must say."""


# What does not fit ----------------------------------------------------------------------------------------------------


def fit() -> Case:
    """In this process: a grid larger than the GPU is refused, and the driver was asked for nothing."""
    import numpy as np

    from peergrid import Grid, Options, Problem, stencil
    from peergrid.errors import DoesNotFit
    from peergrid.grid.partition import Partition
    from peergrid.runtime.cuda.device.driver import CudaDriver
    from peergrid.runtime.cuda.executor import CudaExecutor
    from peergrid.schedule import layout

    class Watched(CudaDriver):
        asked = 0

        def allocate(self, count: int) -> int:
            self.asked += count
            return super().allocate(count)

    @stencil
    def copy(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = u[0, 0]

    grid = Grid((1 << 20, 1 << 18))
    plan = layout(Problem.of(copy(grid.field("u", np.float32(0)))), Partition.over(grid, 1), Options("async"))
    driver = Watched()
    try:
        CudaExecutor(plan, 1, (0,), driver=driver)
    except DoesNotFit as refusal:
        said = str(refusal)
    else:
        raise AssertionError("2 TiB were accepted")
    if driver.asked or not re.search(REFUSAL, said):
        raise AssertionError(f"{driver.asked} bytes allocated; said: {said}")
    return {"allocated": driver.asked, "said": said}


REFUSAL = r"needs .*[GM]iB.* free.* would fit"


def _refused(command: str) -> Case:
    """A model of twice the memory of a GPU, on the command line."""
    side = round((2 * _free_bytes() / 32) ** 0.5 / 1000, 2)  # metres: whole cells of a millimetre
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "big.toml"
        model.write_text(MODEL.format(x=side, y=side, sx=side / 2, sy=side / 2))
        done = peergrid(command, str(model), "--devices", "cuda:0", "--json", limit=60)
    if done.code != 3 or not re.search(REFUSAL, done.err) or done.out:
        raise AssertionError(f"exit {done.code} after {done.seconds:.1f} s: {done.text[-1000:]}")
    return {"exit": done.code, "seconds": round(done.seconds, 1), "said": done.err.strip()}


def _free_bytes() -> int:
    asked = ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", "-i", "0"]
    return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout) << 20

"""compute-sanitizer over the kernels: every tool is clean on small grids under every strategy, and finds what was
planted for it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_checks.call import ME, call
from gpu_checks.problems import cube, radar, relaxed
from gpu_checks.report import Case, Report, carry_out

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
LIMIT = 100.0  # seconds of one case
STEPS = 6
PLANTED = {
    "memcheck far": "int* q = p + 100000000; *q = 1;",
    "racecheck mirror": "__shared__ volatile int s[64]; const int i = threadIdx.x; s[i] = p[i]; p[i] = s[63 - i];",
    "racecheck same word": "__shared__ volatile int s; s = threadIdx.x; p[threadIdx.x] = s;",
    "synccheck odd threads": "if (threadIdx.x & 1) __syncthreads(); p[threadIdx.x] = 1;",
    "synccheck foreign mask": "if (threadIdx.x < 16) { __syncwarp(0xffff0000u); p[threadIdx.x] = 1; }",
    "initcheck unwritten": "p[0] = p[1000] + 1;",
}
"""Kernels of one block of 64 threads, each with the fault that the tool named first must report."""

CLEAN = "peergrid clean"
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")


def sanitize(report: Report, counts: list[int]) -> None:
    """All cases, several at a time."""
    _all(report, [*_planted(), *_clean()])


def planted(report: Report, counts: list[int]) -> None:
    """The planted faults alone."""
    _all(report, list(_planted()))


def _all(report: Report, cases: list[tuple[str, str]]) -> None:
    found = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(found).exists():
        report.run("compute-sanitizer", lambda: {"skipped": "not installed here"})
        return
    with ThreadPoolExecutor(max(1, min(16, (os.cpu_count() or 2) // 2))) as pool:
        for case in pool.map(lambda c: carry_out(" ".join(c), lambda: _case(found, *c)), cases):
            report.add(case)


def _planted() -> Iterator[tuple[str, str]]:
    yield from ((name.split()[0], f"planted:{name}") for name in PLANTED)


def _clean() -> Iterator[tuple[str, str]]:
    from peergrid.schedule.strategies import STRATEGIES

    yield from ((tool, f"clean:{strategy}") for tool in TOOLS for strategy in STRATEGIES)


def _case(program: str, tool: str, part: str) -> Case:
    command = [program, "--tool", tool, "--target-processes", "all", sys.executable, ME, "--under", part]
    done = call(command, LIMIT)
    found = [int(n) for n in SUMMARY.findall(done.text)]
    if not found:
        raise AssertionError(f"no summary, exit {done.code} after {done.seconds:.0f} s: {done.text[-1500:]}")
    clean = part.startswith("clean")
    if (max(found) == 0) != clean or (clean and CLEAN not in done.out):
        raise AssertionError(f"{max(found)} errors: {done.text[-2500:]}")
    return {"errors": max(found), **({} if clean else {"reported": _reported(done.text)})}


def _reported(text: str) -> str:
    """The first sentence of the tool's report."""
    lines = [line.removeprefix("=========").strip() for line in text.splitlines() if line.startswith("=========")]
    return next((said for said in lines if re.search(r"[Ee]rror|Race|[Hh]azard|[Uu]ninit|Invalid", said)), "")


# Under the tool -------------------------------------------------------------------------------------------------------


def clean(strategy: str) -> None:
    """In this process: small grids, two and three dimensions, one and several steps per pass, with norms and without.

    The last ones have rows longer than the guards around a field's memory, so that a read of one row too many shows.
    """
    from peergrid import Options, Simulation
    from peergrid.bench.own import shipped_waves

    small, rows = radar(60, 48, STEPS), shipped_waves(48, 1300, lossy=True)
    problems = [(small, 1, None), (small, 3, None), (cube((14, 12, 20)), 1, None), (rows, 1, None), (rows, 3, None)]
    problems += [(relaxed(160, 300), 4, None), (relaxed(160, 300), 4, "u")]
    if strategy == "persistent":  # so large that blocks take interior tiles and boundary tiles by turns
        problems.append((relaxed(640, 900), 3, None))
    for problem, depth, norm in problems:
        found = []
        for devices, kernel in (("cpu:1", "reference"), ("cuda:0,0", "compiled")):
            options = Options(strategy, depth)  # type: ignore[arg-type]
            with Simulation(problem, STEPS, devices=devices, options=options, kernel=kernel, norm=norm) as run:  # type: ignore[arg-type]
                run.run(STEPS)
                found.append((run.sha256(), run.norms().tobytes() if norm else b""))
        assert found[0] == found[1], f"other bits than the CPU's: {problem.grid.shape}, depth {depth}, norm of {norm}"
    print(CLEAN)


def plant(name: str) -> None:
    """In this process: launch one kernel with its fault."""
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    source = f'extern "C" __global__ void planted(int* p) {{ {PLANTED[name]} }}'
    options = ProgramOptions(arch=f"sm_{device.arch}", lineinfo=True)
    kernel = Program(source, "c++", options).compile("cubin").get_kernel("planted")
    status, memory = driver.cuMemAlloc(1 << 16)
    assert not int(status), status
    launch(stream, LaunchConfig(grid=1, block=64), kernel, int(memory))
    stream.sync()

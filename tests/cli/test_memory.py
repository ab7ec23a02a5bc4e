"""A model or a problem that cannot fit is refused before anything is allocated, with exit code 3."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest
from cli_call import MODEL, Call

from peergrid import DoesNotFit, Grid, Problem, Simulation, stencil


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_model_that_does_not_fit(call: Call, model: Path, command: str) -> None:
    model.write_text(MODEL.replace("[0.06, 0.04]", "[600.0, 400.0]"))
    answer = call(command, model, "--devices", "cpu:2")
    assert answer.code == 3
    assert re.match(r"The run needs 1\d,\d{3} GiB of memory and ", answer.err)
    assert re.search(r"use at most about [\d,]+ cells here", answer.err)
    assert answer.out == ""


def test_a_problem_that_does_not_fit() -> None:
    @stencil
    def halve(u):
        u.next[0, 0] = 0.5 * u[0, 0]

    grid = Grid((1 << 22, 1 << 22))
    with pytest.raises(DoesNotFit, match="The run needs 197,000 GiB of memory"):
        Simulation(Problem.of(halve(grid.field("u"))), 1, devices="cpu:2")


@pytest.mark.parametrize("command", ["run", "plan", "trace"])
def test_steps_count(call: Call, model: Path, command: str) -> None:
    model.write_text(MODEL.replace("steps = 30", "steps = 1000000000"))
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**30, limit[1]))
    try:
        answer = call(command, model, "--devices", "cpu:1")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert answer.code == 3
    assert answer.err.startswith(
        "The signals of sources and the records of receivers over 1,000,000,000 steps need 41 GiB of memory and "
    )
    assert re.search(r"use at most about [\d,]+ steps, or fewer receivers and sources\.", answer.err)


def test_the_estimate_covers_what_a_run_takes(tmp_path: Path) -> None:
    """Of the whole run, results and pictures included, in a process of its own: at most, and not twice as much."""
    (tmp_path / "model.toml").write_text(
        MODEL.replace("[0.06, 0.04]", "[1.5, 1.5]")
        .replace("lower = [0.0, 0.0]\nupper = [0.06, 0.02]", "lower = [0.0, 0.0]\nupper = [1.5, 0.7]")
        .replace("pictures = false", "pictures = true")
    )
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURED)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    taken, estimated = map(int, done.stdout.splitlines()[-1].split())
    assert 0.5 * estimated < taken < 1.1 * estimated


MEASURED = """
import re, sys
from pathlib import Path
import peergrid.cli, peergrid.runtime.cpu.kernel, peergrid.models.fdtd.gallery, peergrid.runtime.cpu.executor
from peergrid.models.modelfile import read

def most(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

sys.modules["peergrid.cli.summary"].MEASURED = 1 << 60
needed = read("model.toml").memory(computing=True, writing=True)
sys.argv = ["peergrid", "run", "model.toml", "--devices", "cpu:2"]
before = most("VmRSS")
try:
    peergrid.cli.main()
except SystemExit as done:
    assert not done.code
print(most("VmHWM") - before, needed.cells + needed.records)
"""

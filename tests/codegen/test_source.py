"""The source on demand: what is printed is what runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from stream_problems import values

from peergrid import Grid, Problem, UsageError
from peergrid.bench.problems import radar, relax
from peergrid.codegen import source
from peergrid.codegen.cpu.listing import source as for_cpus
from peergrid.codegen.cuda.choose.steps import several_steps, steps_per_pass
from peergrid.codegen.cuda.onestep import program
from peergrid.codegen.nvrtc import compile_cubin

GRID = Grid((300, 400))
PROBLEM = Problem.of(relax(GRID.field("u", values(GRID.shape, 1))))


def test_every_program_of_a_pass_once() -> None:
    found = source(radar(400, 600, 10), "cuda", steps=8)
    kernel = several_steps(radar(400, 600, 10), 8)
    assert kernel is not None
    programs = {launch.program.source for launch in kernel.launches(kernel.problem.grid.box, 1)}
    assert len(programs) == found.count('extern "C" __global__') == found.count("// 8 steps per pass, ")
    assert all(text in found for text in programs)


def test_as_many_steps_as_suit_unless_told() -> None:
    assert source(PROBLEM, "cuda") == source(PROBLEM, "cuda", steps_per_pass(PROBLEM))
    assert source(PROBLEM, "cuda", steps=1).endswith(program(PROBLEM, [[GRID.box]]).source)
    assert source(PROBLEM) == source(PROBLEM, "cpu") == for_cpus(PROBLEM)


def test_what_is_printed_compiles() -> None:
    pytest.importorskip("cuda.core")
    assert compile_cubin(source(PROBLEM, "cuda", steps=1), "sm_90", None)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="No kernel makes 40 steps of this problem in one pass"):
        source(PROBLEM, "cuda", steps=40)
    with pytest.raises(UsageError, match="cpu or cuda, got 'ptx'"):
        source(PROBLEM, "ptx")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="leave 'steps' out"):
        source(PROBLEM, "cpu", steps=4)


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from peergrid.codegen.nvrtc import compile_cubin
with ThreadPoolExecutor(6) as pool:
    print(len(set(pool.map(lambda n: compile_cubin('__global__ void f(int* p) { *p = 1; }', 'sm_90'), range(6)))))
"""


def test_threads_may_compile_first_at_the_same_time() -> None:
    pytest.importorskip("cuda.core")
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr

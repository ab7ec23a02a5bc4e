"""The source of kernels on demand; `test_source_of_run` shows that it is what runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from stream_problems import values

from peergrid import Grid, Problem, UsageError, source_of
from peergrid.bench.problems import relax
from peergrid.codegen.cuda.choose.steps import steps_per_pass
from peergrid.codegen.cuda.onestep import OneStepKernels

GRID = Grid((300, 400))
PROBLEM = Problem.of(relax(GRID.field("u", values(GRID.shape, 1))))


def test_what_is_said_of_a_run_on_gpus() -> None:
    text = source_of(PROBLEM, "cuda", steps=8, strategy="peer")
    assert text.startswith("// 8 steps per pass, strategy peer, 2 GPUs: ")
    assert len(re.findall(r"^// edge2d_peer: ", text, re.MULTILINE)) == 1


def test_as_many_steps_as_are_worth_it_unless_told() -> None:
    assert source_of(PROBLEM, "cuda") == source_of(PROBLEM, "cuda", steps_per_pass(PROBLEM))
    assert OneStepKernels.of(PROBLEM, [[GRID.box]]).source in source_of(PROBLEM, "cuda", steps=1)
    assert source_of(PROBLEM) == source_of(PROBLEM, "cpu")


def test_refusals() -> None:
    for given, sentence in (
        (("cuda", 40), "No kernel makes 40 steps of this problem in one pass"),
        (("ptx",), "cpu or cuda, got 'ptx'"),
        (("cpu", 4), "leave 'steps' out"),
        (("cpu", None, "peer"), "leave 'strategy' out"),
        (("cpu", None, None, 2), "leave 'gpus' out"),
        (("cuda", 1, "rings"), "A strategy is one of serial, .*, got 'rings'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            source_of(PROBLEM, *given)  # type: ignore[arg-type]


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

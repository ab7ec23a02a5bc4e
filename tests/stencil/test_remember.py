"""What is known about a problem lives as long as the problem, and no longer."""

from __future__ import annotations

import gc
import weakref

import numpy as np

from peergrid import Grid, Options, Problem, Simulation
from peergrid.bench.problems import relax
from peergrid.codegen.cuda.choose.steps import lengths
from peergrid.stencil.remember import remembered


def problem() -> Problem:
    return Problem.of(relax(Grid((24, 40)).field("u", np.ones((24, 40), np.float32))))


def test_an_answer_is_found_once_for_each_problem() -> None:
    asked: list[int] = []

    @remembered(most=2)
    def cells(given: Problem, times: int, plus: int = 0) -> int:
        asked.append(times)
        return given.grid.box.size * times + plus

    one, two = problem(), problem()
    assert [cells(one, 1), cells(one, 1), cells(one, 2, plus=3)] == [960, 960, 1923]
    assert asked == [1, 2]
    assert cells(two, 1) == 960
    assert asked == [1, 2, 1]
    assert [cells(one, 3), cells(one, 1)] == [2880, 960]  # the third answer took the first one's place
    assert asked == [1, 2, 1, 3, 1]


def test_a_problem_that_ran_is_gone_with_its_last_name() -> None:
    gc.collect()
    gc.disable()
    try:
        given = problem()
        gone = weakref.ref(given)
        with Simulation(given, 8, devices="cpu:2", options=Options("overlap", depth=4)) as run:
            run.run(8)
        del given, run
        assert gone() is None
    finally:
        gc.enable()


def test_kernels_for_gpus_keep_no_problem() -> None:
    given = problem()
    gone = weakref.ref(given)
    assert len(lengths(given)) > 1
    del given
    gc.collect()  # a kernel knows its problem, which remembers the kernel
    assert gone() is None

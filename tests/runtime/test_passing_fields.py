"""Fields whose values no later step needs: written to memory by the last pass alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peergrid import Options, Simulation, reduction
from peergrid.grid import Array, Grid
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.kernel import compile_kernel
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import allocate, fill
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, stencil
from peergrid.stencil.lagged import passing_fields


@stencil
def derive(u: Any, g: Any) -> None:
    g.next[0, 0, 0] = u[0, 0, 1] - u[0, 0, -1] + u[1, 0, 0] - u[0, -2, 0]


@stencil
def again(u: Any, g: Any) -> None:
    u.next[0, 0, 0] = 0.9 * u[0, 0, 0] + 0.01 * (g[0, 1, 1] - g[-1, 0, 0] + g[0, 0, -2])


@stencil
def grow(u: Any, g: Any) -> None:
    g.next[0, 0, 0] = 0.5 * g[0, 0, 0] + u[0, 0, 1]


@reduction("max")
def most(g: Any) -> Any:
    return g[0, 0, 0]


def noise(seed: int) -> Array:
    return np.random.default_rng(seed).random((15, 12, 37), dtype=np.float32)


def problem_of(first: Any = derive, begin: Any = None, reduced: bool = False) -> Problem:
    grid = Grid((15, 12, 37))
    u, g = grid.field("u", noise(1)), grid.field("g", noise(2) if begin is None else begin)
    return Problem.of([first(u, g), again(u, g)], reductions=[most(g)] if reduced else ())


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


def test_what_a_stage_stores_for_the_next_one_passes() -> None:
    assert passing_fields(problem_of()) == {"g"}
    assert not passing_fields(problem_of(grow))  # reads what it was before
    assert not passing_fields(problem_of(reduced=True))


@pytest.mark.parametrize(("depth", "begin"), [(1, None), (1, 0.25), (2, 0.25)])
def test_ends_have_the_bits_of_the_reference(depth: int, begin: float | None, compiled: Path) -> None:
    """Cells without an update keep what they begin with, or what they are set to."""
    ends = []
    for kernel in ("reference", "compiled"):
        options = Options("overlap", depth=depth)
        run = Simulation(problem_of(begin=begin), 9, devices="cpu:2", options=options, kernel=kernel, cache=compiled)
        found = []
        for steps in (4, 1, 4):
            run.run(steps)
            found += [run.gather(name).tobytes() for name in "ug"]
            if steps == 1:
                run.set("g", noise(5))
        ends.append(found)
    assert ends[0] == ends[1]


def test_a_pass_that_another_one_follows_leaves_them_out(compiled: Path) -> None:
    problem = problem_of()
    layout = Layout(problem, Partition(problem.grid, (1, 1, 1)), (1,))
    found = {}
    for left in (frozenset[str](), frozenset("g")):
        memory = allocate(layout, 0)
        for name, described in problem.fields.items():
            fill(layout, memory, name, described.global_array(), slot=0)
        kernel = compile_kernel(problem, compiled, left=left)
        kernel(memory, Pass(problem.grid.box, 0, 1, 0, 1, np.zeros((0, 1), np.float32)))
        found[len(left)] = {name: memory.block(name, 1).array for name in "ug"}
    assert found[0]["u"].tobytes() == found[1]["u"].tobytes()
    assert np.isfinite(found[0]["g"]).all()
    assert np.isnan(found[1]["g"]).all()


@stencil
def halve(u: Any, before: Any) -> None:
    before.next[0] = u[0]
    u.next[0] = 0.5 * u[0]


def test_one_that_shares_the_memory_of_another_keeps_it(compiled: Path) -> None:
    """Its first values, which nothing reads, must not go to both slots: one is where the other field begins."""
    grid, first = Grid(8), np.arange(8, dtype=np.float32)
    step = halve(grid.field("u", first), grid.field("before", 10.0))
    with Simulation(step, 3, devices="cpu:1", options=Options("serial", depth=1), cache=compiled) as run:
        run.run(1)
        assert np.array_equal(run.gather("u"), 0.5 * first)
        run.set("before", 7.0)
        run.run(1)
        assert np.array_equal(run.gather("u"), 0.25 * first)
        assert np.array_equal(run.gather("before"), 0.5 * first)

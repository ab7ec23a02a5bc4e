"""Regions that differ in fields, signals, parameters or scratch blocks alone share a function, and keep their bits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from executions import STEPS, carry_through
from executions import step_by_step as expected
from host_driver import COMPILER, HostDriver

from peergrid import Options
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.onestep import OneStepKernels
from peergrid.codegen.cuda.onestep.alike import alike
from peergrid.codegen.cuda.onestep.groups import groups, scratch_fields
from peergrid.grid import Grid, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import layout
from peergrid.stencil import Problem, Stage, Update, stencil

SHAPE = (24, 20, 40)
ROWS = replace(H200, wide_cube=1 << 30, wide_cells=1 << 30)


@stencil
def spread(u: Any) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] + 0.1 * (u[1, 0, 0] + u[-1, 0, 0] + u[0, 1, 0] + u[0, 0, -1] - 4 * u[0, 0, 0])


@stencil
def absorbed(u: Any, memory: Any, beat: Any, k: float) -> None:
    memory.next[0, 0, 0] = 0.5 * memory[0, 0, 0] + k * u[0, 0, 0] + beat.now
    u.next[0, 0, 0] = u[0, 0, 0] - 0.25 * memory[0, 0, 0]


@stencil
def returned(u: Any, memory: Any) -> None:
    """The memory is written again, so that it passes through a scratch block."""
    memory.next[0, 0, 0] = memory[0, 0, 0] + 0.125 * (u[1, 0, 0] - u[-1, 0, 0] + u[0, 2, 0])


def layered(ends: int = 2) -> Problem:
    """Layers at both ends of axes 0 and 2, each with a memory, a signal and a parameter of its own."""
    grid, noise = Grid(SHAPE), np.random.default_rng(3)
    u = grid.field("u", noise.uniform(0.1, 0.3, SHAPE))
    first, second = list[Update](), list[Update]()
    for axis in (0, 2):
        for end in range(ends):
            lo, hi = (0, 4) if end == 0 else (SHAPE[axis] - 4, SHAPE[axis])
            box = grid.box.with_axis(axis, lo, hi)
            memory = grid.field(f"memory.{axis}{'-+'[end]}", 0.1, within=box)
            beat = grid.signal(f"beat {axis} {end}", np.linspace(0, axis + end + 1, 8))
            first.append(absorbed(u, memory, beat, 0.1 + 0.2 * end + 0.05 * axis).within(box))
            second.append(returned(u, memory).within(box))
    apart = [Stage((one,)) for one in first]
    return Problem.of([spread(u), *apart, Stage(tuple(second))])


def test_layers_at_both_ends_share_functions() -> None:
    problem = layered()
    assert scratch_fields(problem)
    kernels = OneStepKernels.of(problem, [[problem.grid.box]], ROWS)
    one = OneStepKernels.of(layered(1), [[problem.grid.box]], ROWS)
    assert kernels.source.count("void row_") == one.source.count("void row_")
    assert len(kernels.rows) > len(one.rows)
    for number, group in enumerate(groups(problem)):
        some = [variant for variant in kernels.rows if variant.group == number]
        found = alike(kernels.arguments, group, some)
        assert [variant for each in found for variant in each.variants] == some


def test_other_arithmetic_has_another_function() -> None:
    grid = Grid(SHAPE)
    u = grid.field("u", 0.0)
    low, high = (grid.box.with_axis(0, lo, lo + 4) for lo in (0, 20))
    k = [grid.field(name, 0.0, within=box) for name, box in (("k-", low), ("k+", high))]
    beat = grid.signal("beat", np.ones(8))
    plain = absorbed(u, k[0], beat, 0.1).within(low)
    other = returned(u, k[1]).within(high)
    problem = Problem.of([Stage((plain, other))])
    kernels = OneStepKernels.of(problem, [[problem.grid.box]], ROWS)
    found = alike(kernels.arguments, groups(problem)[0], kernels.rows)
    assert all(len(each.variants) == 1 for each in found)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
@pytest.mark.parametrize("split", [(1, 1, 1), (2, 1, 1), (1, 1, 2)])
def test_same_bits_as_step_by_step(split: Index) -> None:
    problem, options = layered(), Options("overlap", depth=1, block=1)
    plan = layout(problem, Partition(problem.grid, split), options)
    driver = HostDriver(gpu=ROWS)
    with closing(CudaExecutor(plan, STEPS, tuple(range(plan.devices)), driver=driver, timeout=5.0)) as executor:
        assert carry_through(executor, options) == expected(problem)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
@pytest.mark.parametrize("split", [(1, 1, 1), (2, 1, 1), (1, 1, 2)])
def test_same_bits_where_cells_of_corners_are_made_one_after_another(split: Index) -> None:
    """A thread has 37 values there, elsewhere 29 at most."""
    problem, options = layered(), Options("overlap", depth=1, block=1)
    gpu = replace(ROWS, row_blocks=((6, 20, 0.01), (4, 30, 0.15)))
    kernels = OneStepKernels.of(problem, [[problem.grid.box]], gpu)
    assert 0 < len(kernels.rare) < len(kernels.rows)
    assert "void cell_" in kernels.source
    plan = layout(problem, Partition(problem.grid, split), options)
    driver = HostDriver(gpu=gpu)
    with closing(CudaExecutor(plan, STEPS, tuple(range(plan.devices)), driver=driver, timeout=5.0)) as executor:
        assert carry_through(executor, options) == expected(problem)


def test_threads_are_more_where_most_cells_need_few_registers() -> None:
    problem = layered()
    for values, share, blocks, rare in ((30, 0.05, 6, True), (30, 0.01, 4, False), (40, 0.0, 6, False)):
        gpu = replace(ROWS, row_blocks=((6, values, share), (4, 128, 0.15)))
        kernels = OneStepKernels.of(problem, [[problem.grid.box]], gpu)
        assert f"__launch_bounds__(128, {blocks}) rows_0(" in kernels.source
        assert any(variant.group == 0 for variant in kernels.rare) == rare

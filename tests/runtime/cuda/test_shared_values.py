"""Values that are used more than once: computed once in every back end, in text by their number, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from inorder import InOrderExecutor

from peergrid import Options, source_of
from peergrid.codegen.cpu.plan import stream_plan
from peergrid.codegen.cuda.choose.steps import block_of
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.grid import Array, Box, Dtype, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.kernel import CpuKernel
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.executor import Executor
from peergrid.schedule import Layout, layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.sources.cuda import texts_of_run
from peergrid.stencil import (
    Problem,
    Receiver,
    Stage,
    cos,
    equal,
    exp,
    log,
    maximum,
    minimum,
    sin,
    sqrt,
    stencil,
    tanh,
    where,
)  # fmt: skip
from peergrid.stencil.expr import Expr

needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="no C++ compiler here to run generated kernels on the host"
)
STEPS = 4
SERIAL = Options("serial")
SINGLE = (1, 1, 1)
WIDE = replace(H200, wide_cells=1, wide_columns=1)
OPERATIONS: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda a, b, c: 0.5 * a + b,
    lambda a, b, c: a * b,
    lambda a, b, c: a - b * a,
    lambda a, b, c: a / (1 + abs(b)),
    lambda a, b, c: minimum(a, b),
    lambda a, b, c: maximum(a, -b),
    lambda a, b, c: sqrt(abs(a)),
    lambda a, b, c: where((a < b) & ~equal(b, c), a, c),
    lambda a, b, c: where(a >= c, a <= b, c),
    lambda a, b, c: (a > 0) + (b > 0) * c,
)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Two stages that write two fields from a graph of operations, most of whose values are used several times."""
    axes = draw(st.sampled_from((1, 2, 2, 3)))
    shape = {1: (90,), 2: (30, 80), 3: (10, 11, 70)}[axes]
    grid = Grid(
        shape, draw(st.sampled_from(("fixed", "periodic", "reflecting"))), draw(st.sampled_from(("float32", "float64")))
    )
    rng = np.random.default_rng(5)
    fields = [grid.field(name, rng.standard_normal(shape)) for name in ("u", "v", "c")]
    profile = grid.profile("w", 0, rng.standard_normal(shape[0]))
    drawn = st.lists(st.tuples(*[st.integers(0, 7)] * 3, st.integers(0, len(OPERATIONS) - 1)), min_size=3, max_size=9)
    stages = [draw(drawn), draw(drawn)]
    updates = [graph(steps, axes)(*fields, profile, 0.75) for steps in stages]
    inside = updates[1].within(Box(tuple(n // 4 for n in shape), tuple(n // 2 for n in shape)))
    return Problem.of([Stage((updates[0],)), inside], Receiver("r", "u", tuple(n // 3 for n in shape)))


def graph(made: list[tuple[int, int, int, int]], axes: int) -> Any:
    """A stencil of drawn operations on the newest of its values."""

    def at(axis: int, by: int) -> Index:
        return tuple(by * (k == axis) for k in range(axes))

    @stencil
    def update(u: Any, v: Any, c: Any, w: Any, k: float) -> None:
        here = at(0, 0)
        pool = [
            u[here],
            v[here],
            u[at(0, -1)],
            v[at(axes - 1, 1)],
            c[here],
            w[at(0, 1)],
            k + u[at(axes - 1, -1)],
            c[here],
        ]
        for a, b, third, operation in made:
            pool.append(OPERATIONS[operation](pool[-1 - a], pool[-1 - b], pool[-1 - third]))
        u.next[here] = number(pool[-1])
        v.next[here] = number(pool[-2]) * 0.5 + number(pool[-1])

    return update


def number(value: Expr) -> Expr:
    return where(value, 1.0, 0.0) if value.is_condition else value


Found = list[Array]


def carried(executor: Executor, options: Options) -> Found:
    """The state after whole periods, and what receivers found."""
    load(executor)
    whole = one_iteration(executor.layout, options)
    times = STEPS // whole.steps
    executor.execute(whole, times, 0)
    slot = whole.final if times else 0
    return [*(executor.gather(name, slot) for name in executor.layout.problem.state), executor.traces()]


def by_numpy(problem: Problem, options: Options = SERIAL) -> Found:
    return carried(InOrderExecutor(plan_of(problem, options), STEPS), options)


def by_numba(problem: Problem, options: Options = SERIAL) -> Found:
    kernel = CpuKernel(problem, None, lambda box, steps: (stream_plan(problem, steps), (box,)))
    return carried(InOrderExecutor(plan_of(problem, options), STEPS, kernel), options)


def by_cuda(problem: Problem, options: Options = SERIAL, gpu: GpuModel = H200) -> Found:
    executor = CudaExecutor(plan_of(problem, options), STEPS, (0,), driver=HostDriver(gpu=gpu))
    try:
        return carried(executor, options)
    finally:
        executor.close()


def plan_of(problem: Problem, options: Options) -> Layout:
    return layout(problem, Partition(problem.grid, (1,) * problem.grid.ndim), options)


def same(one: Found, two: Found) -> bool:
    """Whether all bits agree but those of NaN, whose sign no standard fixes."""
    return all(
        np.array_equal(a, b, equal_nan=True)
        and np.array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))
        for a, b in zip(one, two, strict=True)
    )


@needs_compiler
@settings(max_examples=12, deadline=None, phases=(Phase.generate,))  # compilers make shrinking slow
@given(problems(), st.sampled_from(("serial", "overlap", "persistent")), st.sampled_from((1, 2)), st.booleans())
def test_same_bits(problem: Problem, strategy: StrategyName, depth: int, wide: bool) -> None:
    expected, options = by_numpy(problem), Options(strategy, depth, block_of(problem, depth))
    assert same(by_numba(problem), expected)
    assert same(by_cuda(problem, options, WIDE if wide else H200), expected)


def squared(times: int, shape: Index = (24, 40)) -> Problem:
    """A value that is squared so many times."""
    grid = Grid(shape)
    ahead = (*(0,) * (len(shape) - 1), 1)

    @stencil
    def square(u: Any) -> None:
        a = 0.5 * u[(0,) * len(shape)]
        for _ in range(times):
            a = a * a + 0.1 * u[ahead]
        u.next[(0,) * len(shape)] = a

    return Problem.of(square(grid.field("u", np.random.default_rng(1).random(shape))))


@pytest.mark.parametrize("shape", [(300,), (200, 300), (40, 50, 60)])
@pytest.mark.parametrize("way", ["cpu", "1 cuda", "2 cuda", "peer", "persistent"])
def test_text_grows_by_as_much_for_every_operation(way: str, shape: Index) -> None:
    if len(shape) != 2 and way in ("2 cuda", "peer", "persistent"):
        shape = (200, 300)
    sizes = [len(text(way, squared(times, shape))) for times in (16, 32, 48)]
    assert sizes[2] - sizes[1] < 1.1 * (sizes[1] - sizes[0]) < 16 * 2000


def text(way: str, problem: Problem) -> str:
    if way == "cpu":
        return source_of(problem)
    steps, strategy = (int(way[0]), "overlap") if way.endswith("cuda") else (2, way)
    devices = 2 if way == "peer" else 1
    plan = layout(problem, Partition(problem.grid, (devices, *SINGLE[1 : problem.grid.ndim])), Options(strategy, steps))
    return "".join(text for _, text in texts_of_run(plan, Options(strategy, steps), H200, lambda text, kernel: 150))


@needs_compiler
@pytest.mark.parametrize("times", [16, 60])
@pytest.mark.parametrize(("shape", "depth"), [((24, 40), 1), ((24, 40), 2), ((9, 10, 40), 1)])
def test_sixty_squarings_run(times: int, shape: Index, depth: int) -> None:
    problem = squared(times, shape)
    expected = by_numpy(problem)
    assert same(by_numba(problem), expected)
    assert same(by_cuda(problem, Options("overlap", depth)), expected)


def functions(shape: Index, dtype: Dtype) -> Problem:
    """Every function, of values of all sizes."""
    here, beside = (0,) * len(shape), (*(0,) * (len(shape) - 1), 1)

    @stencil
    def update(u: Any, v: Any, k: Any) -> None:
        waves = sin(u[here] + u[beside]) * cos(8 * v[here])
        u.next[here] = waves + tanh(v[beside]) - log(abs(u[here])) * k
        v.next[here] = exp(minimum(u[here], 3)) + abs(v[here]) ** k - 0.7 ** v[here]

    grid, rng = Grid(shape, "periodic", dtype), np.random.default_rng(2)
    return Problem.of(update(*(grid.field(name, rng.standard_normal(shape) * 3) for name in "uv"), 0.3))


@needs_compiler
@pytest.mark.parametrize(
    ("shape", "dtype", "depth", "gpu"),
    [((18, 64), "float64", 1, WIDE), ((18, 64), "float64", 2, H200), ((9, 8, 64), "float32", 1, WIDE)],
)
def test_functions_have_the_bits_of_the_reference(shape: Index, dtype: Dtype, depth: int, gpu: GpuModel) -> None:
    problem = functions(shape, dtype)
    expected, options = by_numpy(problem), Options("overlap", depth, block_of(problem, depth))
    assert not any(np.isnan(one).all() for one in expected[:2])
    assert same(by_numba(problem), expected)
    assert same(by_cuda(problem, options, gpu), expected)

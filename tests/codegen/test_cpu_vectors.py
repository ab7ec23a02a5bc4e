"""Updates in vectors: every operation, whole vectors and the cells after them, and fields that rotate in memory."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from stream_problems import SPACE, values
from table_problems import media
from test_cpu_kernel import DTYPES, check, in_tiles, same

from peergrid import Options, Simulation
from peergrid.codegen.cpu.lanes import VECTOR
from peergrid.codegen.cpu.plan import stream_plan
from peergrid.codegen.cpu.vectors import vector_code
from peergrid.grid import Box, Dtype, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.kernel import CpuKernel
from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import allocate, fill, rotating
from peergrid.runtime.reference import ReferenceKernel
from peergrid.schedule.layout import Layout
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem, equal, maximum, minimum, sqrt, stencil, where
from peergrid.stencil.expr import Unary

WIDTHS = (3, 16, 37)  # cells of a line: less than a vector, a whole number of them, some and a rest


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of compiled code for all tests."""
    return tmp_path_factory.mktemp("compiled")


def every(ndim: int) -> Any:
    """A stencil with every operation, on a grid with so many axes."""

    def at(behind: int, beside: int, along: int) -> Index:
        return (behind, beside, along)[3 - ndim :]

    here = at(0, 0, 0)

    @stencil
    def update(u: Any, v: Any, along: Any, down: Any, push: Any) -> None:
        ahead = v[at(2, -1, 1)]
        chosen = where(
            (u[here] < ahead) & ~equal(v[here], 0) | (u[at(0, 1, 0)] >= 1), minimum(u[here], ahead), -abs(ahead)
        )
        u.next[here] = chosen * along[here] + push.now / down[at(1, 0, 0)] + (u[here] > 0.25)
        regular = where((abs(ahead) > 1e-3) & (abs(ahead) < 99), ahead, 1.5)
        by_exponents = Unary("power_of_two", regular) - Unary("exponent", regular)
        v.next[here] = sqrt(maximum(v[here], u[at(0, 0, -1)] / 3)) - u[here] + by_exponents

    return update


def operations(shape: Index, dtype: Dtype) -> Problem:
    """Every operation, on numbers, zeros of both signs, infinities and NaN; profiles along two axes, a signal."""
    grid = Grid(shape, "periodic", dtype)
    u, v = values(shape, 1), values(shape, 2)
    special = (0.0, -0.0, np.inf, np.nan)
    for (one, two), cell in zip(product(special, special), np.ndindex(*shape), strict=False):
        u[cell], v[cell] = one, two
    along = grid.profile("along", len(shape) - 1, values(shape[-1:], 3))
    down = grid.profile("down", 0, values(shape[:1], 4))
    fields = grid.field("u", u), grid.field("v", v), along, down
    return Problem.of(every(len(shape))(*fields, grid.signal("push", [0.5, 0.25])))


@pytest.mark.parametrize("shape", [(37,), (700,), (9, 3), (9, 37), *((6, 5, width) for width in WIDTHS)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_has_the_bits_of_the_reference(compiled: Path, dtype: Dtype, shape: Index) -> None:
    problem = operations(shape, dtype)
    for steps, tile in ((1, 400), (3, 300 if len(shape) == 1 else 2)):
        with np.errstate(all="ignore"):
            check(problem, CpuKernel(problem, compiled, in_tiles(problem, tile)), (2, 1, 1)[: len(shape)], steps)


@pytest.mark.parametrize(
    ("triple", "cpu"), [("x86_64", "skylake-avx512"), ("x86_64", "haswell"), ("aarch64", "neoverse-n1")]
)
@pytest.mark.parametrize("count", [0, 5, 100])
def test_row_functions_compile_for_other_processors(triple: str, cpu: str, count: int) -> None:
    """Vectors of one number, of 64 and of 128 bytes; count: of entries in a table (0: other operations)."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(f"{triple}-unknown-linux-gnu").create_target_machine(cpu=cpu)
    for shape in ((600,), (8, 40), (4, 4, 40)):
        if count and len(shape) < 3:
            continue
        problem = media(shape, count=count) if count else operations(shape, "float64")
        assignments = problem.stages[0].updates[0].assignments
        for size in (problem.itemsize, VECTOR, 2 * VECTOR):
            code = vector_code(problem, assignments, {}, 1, wide=False, by_planes=False, vector=size)
            module = llvm.parse_assembly(code.text)
            module.verify()
            assert machine.emit_object(module)


@stencil
def choose(low: Any, high: Any, u: Any, v: Any) -> None:
    c = (0, 0, 0)
    low.next[c] = minimum(u[c], v[c])
    high.next[c] = maximum(u[c], v[c])


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_nan_are_chosen_as_by_numpy(compiled: Path, dtype: Dtype) -> None:
    special = (0.0, -0.0, 1.0, -np.inf, np.nan)
    pairs = (np.array(2 * side).reshape(2, 1, 25) for side in zip(*product(special, special), strict=True))
    grid = Grid((2, 1, 25), dtype=dtype)
    low, high = grid.field("low"), grid.field("high")
    problem = Problem.of(choose(low, high, *(grid.field(n, init) for n, init in zip("uv", pairs, strict=True))))
    check(problem, CpuKernel(problem, compiled, in_tiles(problem, 64)), (1, 1, 1), 1)


def test_lines_are_written_within_their_ends_alone(compiled: Path) -> None:
    """The masked vector at the end of a line touches nothing beyond it."""
    problem = SPACE["surge"]((9, 8, 41), ("fixed",) * 3, "float32")
    layout = Layout(problem, Partition(problem.grid, (1, 1, 1)), (1,))
    memory = allocate(layout, 0)
    for name in problem.fields:
        for slot in (0, 1):
            memory.block(name, slot).array[...] = 1.0
    traces = np.zeros((1, 4), np.float32)
    CpuKernel(problem, compiled, in_tiles(problem, 64))(memory, Pass(Box((2, 2, 3), (7, 6, 36)), 0, 1, 0, 1, traces))
    changed = memory.block("u", 1).array != 1.0
    assert changed[2:7, 2:6, 3:36].any()
    changed[2:7, 2:6, 3:36] = False
    assert not changed.any()


@pytest.mark.parametrize("name", ["async", "overlap", "threads"])
def test_fields_that_rotate_end_with_the_bits_of_the_reference(name: StrategyName, tmp_path: Path) -> None:
    problem = SPACE["surge"]((14, 9, 37), ("fixed", "periodic", "fixed"), "float32")
    assert rotating(Layout(problem, Partition(problem.grid, (2, 1, 1)), (1,))) == {"u.prev": "u"}
    ends = []
    for kernel in ("reference", "compiled"):
        run = Simulation(problem, 5, devices="cpu:2", options=Options(name, depth=1), kernel=kernel, cache=tmp_path)
        run.run(2)
        middle = run.gather("u.prev")
        run.run(3)
        ends.append((middle, run.gather("u"), run.gather("u.prev"), run.traces()["r"]))
    assert all(same(one, two) for one, two in zip(*ends, strict=True))


@stencil
def wave_1d(u: Any) -> None:
    u.next[0] = 1.5 * u[0] - u.prev[0] + 0.25 * (u[-1] + u[2])


@stencil
def wave_2d(u: Any) -> None:
    u.next[0, 0] = 1.5 * u[0, 0] - u.prev[0, 0] + 0.25 * (u[-1, 0] + u[0, 2])


@pytest.mark.parametrize("past_cache", [False, True])
@pytest.mark.parametrize("ndim", [1, 2])
def test_fields_rotate_in_all_dimensions(compiled: Path, ndim: int, past_cache: bool) -> None:
    shape = (150,) if ndim == 1 else (11, 70)
    u = Grid(shape, "periodic").field("u", values(shape, 1))
    problem = Problem.of(wave_1d(u) if ndim == 1 else wave_2d(u))
    layout = Layout(problem, Partition(problem.grid, (1,) * ndim), (1,))
    plan = stream_plan(problem, 1, past_cache, rotate=True)
    box = problem.grid.box
    tiles = [box.with_axis(ndim - 1, a, b) for a, b in pairwise((0, 33, 40, box.hi[-1]))]
    kernels = ReferenceKernel(problem), CpuKernel(problem, compiled, lambda _, steps: (plan, tuple(tiles)))
    ends = []
    for kernel in kernels:
        memory = allocate(layout, 0, rotating(layout))
        for name, described in problem.fields.items():
            fill(layout, memory, name, described.global_array(), slot=0)
        for step in range(3):
            for halo in layout.wrapped:
                block = memory.block(halo.field, step % 2)
                block.view(halo.target_box)[...] = block.view(halo.source_box)
            kernel(memory, Pass(box, step % 2, 1 - step % 2, step, 1, np.zeros((0, 3), np.float32)))
        ends.append([memory.block(name, slot).view(box) for name in problem.state for slot in (0, 1)])
    assert all(same(one, two) for one, two in zip(*ends, strict=True))


def test_fields_that_rotate_have_no_memory_of_their_own() -> None:
    problem = SPACE["surge"]((8, 8, 8), ("fixed",) * 3, "float32")
    once, twice = (Layout(problem, Partition(problem.grid, (2, 1, 1)), blocks) for blocks in ((1,), (2,)))
    memory = allocate(once, 0, rotating(once))
    for slot in (0, 1):
        assert np.shares_memory(memory.block("u.prev", slot).array, memory.block("u", 1 - slot).array)
    assert not rotating(twice)  # several steps read old values again
    assert not rotating(once, norm="u.prev")  # whose old values are compared with the new ones


def test_rows_lie_on_cache_lines() -> None:
    problem = SPACE["surge"]((8, 8, 21), ("fixed",) * 3, "float64")
    layout = Layout(problem, Partition(problem.grid, (1, 1, 1)), (1,))
    first = problem.stages[0].updates[0].box.lo[-1]
    for block in (*allocate(layout, 0).state["u"], allocate(layout, 0).block("c", 0)):
        assert block.array[1, 1, first:].ctypes.data % 64 == 0
        assert block.array.shape == block.box.shape

"""The generated kernel against the reference, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_problems import PLANE, SPACE, Maker, line

from peergrid.codegen.cpu import work
from peergrid.codegen.cpu.plan import StreamPlan, stream_plan
from peergrid.codegen.cpu.rows import RowCode
from peergrid.codegen.cpu.vectors import copy_code
from peergrid.grid import Array, Boundary, Box, Dtype, Grid
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.kernel import CpuKernel, TilePlanner, compile_kernel
from peergrid.runtime.kernel import Kernel, Pass
from peergrid.runtime.memory import DeviceMemory, allocate, fill, owned_receivers
from peergrid.runtime.reference import ReferenceKernel
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, Receiver, maximum, minimum, stencil

STEP = 1  # of the first step: signals and receivers do not start at 0
BOUNDARIES: tuple[Boundary, ...] = ("fixed", "periodic", "reflecting")
DTYPES: tuple[Dtype, ...] = ("float32", "float64")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of compiled code for all tests."""
    return tmp_path_factory.mktemp("compiled")


def in_tiles(problem: Problem, width: int, past_cache: bool = False) -> TilePlanner:
    """Tiles of at most that many cells along every axis across the stream."""

    def planner(box: Box, steps: int) -> tuple[StreamPlan, tuple[Box, ...]]:
        parts = [box]
        for axis in range(min(1, box.ndim - 1), box.ndim):
            parts = [piece for part in parts for piece in _slices(part, axis, width)]
        return stream_plan(problem, steps, past_cache), tuple(parts)

    return planner


def _slices(box: Box, axis: int, width: int) -> Iterator[Box]:
    for lo in range(box.lo[axis], box.hi[axis], width):
        yield box.with_axis(axis, lo, min(lo + width, box.hi[axis]))


def advance(kernel: Kernel, layout: Layout, device: int, box: Box, steps: int) -> tuple[DeviceMemory, Array]:
    """Memory and traces after one call on a device whose fields have their first values."""
    problem = layout.problem
    memory = allocate(layout, device)
    for name, described in problem.fields.items():
        fill(layout, memory, name, described.global_array(), slot=0)
    traces = np.full((len(problem.receivers), STEP + steps + 1), np.nan, problem.grid.dtype)
    kernel(memory, Pass(box, 0, 1, STEP, steps, traces, owned_receivers(layout, device)))
    return memory, traces


def same(one: Array, two: Array) -> bool:
    """Equal bits, and NaN in the same places (its sign means nothing)."""
    number = ~np.isnan(one)
    return bool((number == ~np.isnan(two)).all()) and one[number].tobytes() == two[number].tobytes()


def check(problem: Problem, kernel: Kernel, split: tuple[int, ...], steps: int, cut_rows: int = 0) -> None:
    """Every device's box (less some rows at its end), memory and traces compared whole."""
    layout = Layout(problem, Partition(problem.grid, split), (steps,))
    for device in range(layout.devices):
        box = layout.partition.owned(device)
        box = box.with_axis(0, box.lo[0], max(box.lo[0], box.hi[0] - cut_rows))
        right, right_traces = advance(ReferenceKernel(problem), layout, device, box, steps)
        found, found_traces = advance(kernel, layout, device, box, steps)
        for name in problem.state:
            for slot in (0, 1):
                assert same(right.block(name, slot).array, found.block(name, slot).array), (name, slot, device)
        assert same(right_traces, found_traces)


LEAST = {"wide": (5, 9), "lopsided": (3, 5)}  # cells along an axis that closes or reflects, and along a fixed one


@pytest.mark.parametrize("name", PLANE)
@settings(max_examples=40)
@given(data=st.data())
def test_planes(name: str, compiled: Path, data: st.DataObject) -> None:
    boundary = data.draw(st.tuples(st.sampled_from(BOUNDARIES), st.sampled_from(BOUNDARIES)))
    least = [LEAST.get(name, (3, 3))[kind == "fixed"] for kind in boundary]
    shape = data.draw(st.tuples(st.integers(least[0], 19), st.integers(least[1], 23)))
    problem = PLANE[name](shape, boundary, data.draw(st.sampled_from(DTYPES)))
    split = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (3, 2)]))
    planner = in_tiles(problem, data.draw(st.sampled_from([1, 3, 8, 100])), data.draw(st.booleans()))
    kernel = CpuKernel(problem, compiled, planner)
    check(problem, kernel, split, data.draw(st.integers(1, 5)), data.draw(st.integers(0, 2)))


@pytest.mark.parametrize("make", [line, PLANE["yee"], SPACE["cube"]])
def test_many_receivers_are_recorded_by_few_row_functions(
    make: Maker, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several of a cell, in any order; the tables are made of arrays, so that a million take seconds."""
    ndim = next(n for n in (1, 2, 3) if make in ({line}, set(PLANE.values()), set(SPACE.values()))[n - 1])
    one = make((12, 10, 9)[:ndim], ("fixed",) * ndim, "float32")
    asked: list[str] = []

    def counted(problem: Problem, field: str, *rest: Any, **options: Any) -> RowCode:
        asked.append(field)
        return copy_code(problem, field, *rest, **options)

    monkeypatch.setattr(work, "copy_code", counted)
    cells = np.random.default_rng(1).integers(0, one.grid.shape, (400, one.grid.ndim))
    whole = [name for name in one.state if one.fields[name].box == one.grid.box]
    fields = [whole[k % len(whole)] for k in range(len(cells))]
    found = zip(fields, map(tuple, cells.tolist()), strict=True)
    problem = Problem.of(one.stages, [Receiver(f"r{k}", *rest) for k, rest in enumerate(found)])
    check(problem, CpuKernel(problem, compiled, in_tiles(problem, 8)), (2,) + (1,) * (one.grid.ndim - 1), 3)
    assert len(asked) < 400


@settings(max_examples=40)
@given(
    extent=st.integers(4, 150),
    boundary=st.sampled_from(BOUNDARIES),
    dtype=st.sampled_from(DTYPES),
    devices=st.integers(1, 3),
    steps=st.integers(1, 5),
    width=st.sampled_from([1, 7, 64]),
    past_cache=st.booleans(),
)
def test_lines(
    compiled: Path,
    extent: int,
    boundary: Boundary,
    dtype: Dtype,
    devices: int,
    steps: int,
    width: int,
    past_cache: bool,
) -> None:
    problem = line((extent,), (boundary,), dtype)
    check(problem, CpuKernel(problem, compiled, in_tiles(problem, width, past_cache)), (devices,), steps)


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(SPACE)),
    shape=st.tuples(st.integers(4, 9), st.integers(4, 9), st.integers(4, 9)),
    boundary=st.tuples(*(st.sampled_from(BOUNDARIES),) * 3),
    dtype=st.sampled_from(DTYPES),
    split=st.sampled_from([(1, 1, 1), (2, 1, 1), (1, 2, 2)]),
    steps=st.integers(1, 4),
    width=st.sampled_from([2, 5, 64]),
    past_cache=st.booleans(),
)
def test_cubes(
    compiled: Path,
    name: str,
    shape: tuple[int, int, int],
    boundary: tuple[Boundary, Boundary, Boundary],
    dtype: Dtype,
    split: tuple[int, int, int],
    steps: int,
    width: int,
    past_cache: bool,
) -> None:
    problem = SPACE[name](shape, boundary, dtype)
    check(problem, CpuKernel(problem, compiled, in_tiles(problem, width, past_cache)), split, steps)


@stencil
def choose(low, high, u, v):
    low.next[0] = minimum(u[0], v[0])
    high.next[0] = maximum(u[0], v[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_nan_are_chosen_as_by_numpy(compiled: Path, dtype: Dtype) -> None:
    special = (0.0, -0.0, 1.0, -np.inf, np.nan)
    u, v = (np.array(side * 5) for side in zip(*product(special, special), strict=True))
    grid = Grid(len(u), dtype=dtype)
    low, high, one, two = (grid.field(n, init) for n, init in (("low", 0.0), ("high", 0.0), ("u", u), ("v", v)))
    problem = Problem.of(choose(low, high, one, two))
    check(problem, CpuKernel(problem, compiled, in_tiles(problem, 100)), (1,), 1)


def test_traces_without_room_are_refused(compiled: Path) -> None:
    problem = PLANE["plain"]((6, 7), ("fixed", "fixed"), "float32")
    layout = Layout(problem, Partition(problem.grid, (1, 1)), (2,))
    kernel = CpuKernel(problem, compiled, in_tiles(problem, 100))
    traces = np.zeros((1, 3), np.float32)
    with pytest.raises(IndexError, match=r"^The traces have room for 3 steps, got steps 2 to 4\.$"):
        kernel(allocate(layout, 0), Pass(problem.grid.box, 0, 1, 2, 2, traces, (0,)))


def test_one_kernel_serves_many_memories_and_slots(compiled: Path) -> None:
    """Addresses are kept for each memory and slot, and given up with them."""
    problem = PLANE["yee"]((12, 13), ("fixed", "fixed"), "float32")
    layout = Layout(problem, Partition(problem.grid, (1, 1)), (2,))
    kernels = ReferenceKernel(problem), CpuKernel(problem, compiled, in_tiles(problem, 100))
    for _ in range(3):
        ends = []
        for kernel in kernels:
            memory = allocate(layout, 0)
            for name, described in problem.fields.items():
                fill(layout, memory, name, described.global_array(), slot=0)
            traces = np.full((3, 8), np.nan, np.float32)
            for turn in range(4):
                kernel(memory, Pass(problem.grid.box, turn % 2, 1 - turn % 2, 2 * turn, 2, traces, (0, 1, 2)))
            ends.append((memory, traces))
        (right, right_traces), (found, found_traces) = ends
        assert all(same(right.block(n, 0).array, found.block(n, 0).array) for n in problem.state)
        assert same(right_traces, found_traces)
        assert np.isfinite(found_traces).all()


def test_scratch_memory_has_room_for_what_was_asked_for(compiled: Path) -> None:
    """Wherever it begins: a thread's memory serves passes of many sizes."""
    kernel = compile_kernel(PLANE["plain"]((6, 7), ("fixed", "fixed"), "float32"), compiled)
    for size in range(1000, 3000, 8):
        start = kernel._scratch(size)
        memory, _ = kernel._threads.kept
        assert start % 64 == 0
        assert start + size <= memory.ctypes.data + memory.nbytes

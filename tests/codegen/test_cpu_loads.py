"""Neighbours along a line, shifted together from aligned vectors, and lines that end where memory ends."""

from __future__ import annotations

import ctypes
import mmap
import re
from typing import Any

import numpy as np
import pytest
from test_cpu_kernel import DTYPES

from peergrid.codegen.cpu.native import compile_function
from peergrid.codegen.cpu.rows import RowCode, Write
from peergrid.codegen.cpu.vectors import vector_code
from peergrid.grid import Array, Dtype, Grid
from peergrid.stencil import Problem, stencil
from peergrid.stencil.expr import Read

LEFT, RIGHT = 5, 3  # cells read to both sides
ROWS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@stencil
def beside(u: Any, v: Any) -> None:
    v.next[0, 0, 0] = sum((k + 7) * u[0, 0, k] for k in range(-LEFT, RIGHT + 1))


def code_of(problem: Problem, *, shifting: bool) -> RowCode:
    return vector_code(problem, problem.stages[0].updates[0].assignments, {}, 1, shifting)


def problem_of(update: Any, dtype: Dtype = "float32") -> Problem:
    grid = Grid((60, 1, 60), dtype=dtype)
    return Problem.of(update(grid.field("u"), grid.field("v")))


class Fenced:
    """Memory between two pages that may not be touched."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, 3 * mmap.PAGESIZE)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + mmap.PAGESIZE
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (self.start - mmap.PAGESIZE, self.start + mmap.PAGESIZE):
            assert protect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0

    def array(self, cells: int, dtype: str, *, at_end: bool) -> Array:
        size = cells * np.dtype(dtype).itemsize
        place = mmap.PAGESIZE + (mmap.PAGESIZE - size if at_end else 0)
        return np.frombuffer(self._map, dtype, cells, place)


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("width", [3, 8, 16, 29, 32, 45])
@pytest.mark.parametrize("dtype", DTYPES)
def test_shifted_neighbours_are_those_of_the_line_and_nothing_beyond_it_is_read(
    dtype: Dtype, width: int, at_end: bool
) -> None:
    code = code_of(problem_of(beside, dtype), shifting=True)
    memory = Fenced()
    u = memory.array(LEFT + width + RIGHT, dtype, at_end=at_end)
    u[...] = np.random.default_rng(1).random(u.size)
    v = np.zeros(width, dtype)
    first = {"u": u.ctypes.data + LEFT * u.itemsize, "v": v.ctypes.data}
    named = [operand.field for operand in code.operands if isinstance(operand, Read | Write)]
    pointers = np.array([first[name] for name in named], np.int64)
    compiled = compile_function(code.text, "rows", None)
    ROWS(compiled.address)(pointers.ctypes.data, np.zeros_like(pointers).ctypes.data, 1, width)
    expected = np.zeros(width, dtype)
    for k in range(-LEFT, RIGHT + 1):
        expected = expected + v.dtype.type(k + 7) * u[LEFT + k : LEFT + k + width]
    assert v.tobytes() == expected.tobytes()


def test_only_where_several_are_needed_and_the_processor_does_it_in_one_instruction() -> None:
    shifted = code_of(problem_of(beside), shifting=True).text
    assert shifted.count("shufflevector <16 x i32> %l") == LEFT + RIGHT
    assert "shufflevector <16 x i32> %l" not in code_of(problem_of(beside), shifting=False).text


def test_cache_lines_of_the_foremost_planes_are_asked_for_the_farther_ahead_the_fewer_planes() -> None:
    one, two = (vector_code(p := problem_of(beside), p.stages[0].updates[0].assignments, {}, n).text for n in (1, 2))
    assert re.findall(r"%f\d+\.x, i64 (\d+)", one) == ["2304"] * 2  # a plane of each field: 36 vectors ahead
    assert re.findall(r"%f\d+\.x, i64 (\d+)", two) == ["1152"] * 4
    assert one.count("i32 1, i32 3, i32 1)") == 1  # that which is written

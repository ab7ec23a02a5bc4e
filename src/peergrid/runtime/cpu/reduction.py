"""Reductions by compiled code: the values of expressions by CPU kernels, their leaves by reduce.ll."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from peergrid.codegen.cpu import common
from peergrid.codegen.reductions import Doubles, neutral
from peergrid.grid import Array
from peergrid.runtime.cpu.kernel import compile_kernel
from peergrid.runtime.reductions import Arithmetic, Leaves
from peergrid.runtime.reference_reduction import values_by
from peergrid.stencil import Problem
from peergrid.stencil.reduction import ReductionKind

CODES: dict[ReductionKind, int] = {"sum": 0, "mean": 0, "l2": 1, "max": 2, "min": 3}  # of reduce.ll


def compiled_reductions(problem: Problem, cache: Path | None) -> Arithmetic:
    """The arithmetic of a problem's reductions; cache: as in `compile_kernel`."""
    return values_by(partial(compile_kernel, cache=cache), problem), compiled_leaves(problem, cache)


def compiled_leaves(problem: Problem, cache: Path | None) -> Leaves:
    """The results of leaves of the grid's type."""
    add_up = common.reduce(problem.grid.dtype, cache)

    def leaves(kind: ReductionKind, values: Array, first: int) -> Doubles:
        found = np.empty(len(values))
        rows = (values.ctypes.data, *values.strides, *values.shape)
        add_up(CODES[kind], neutral(kind), *rows, first, found.ctypes.data)
        return found

    return leaves

"""Reductions by compiled code: the values of expressions by CPU kernels, their leaves by reduce.ll."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from peergrid.codegen.cpu import common
from peergrid.codegen.reductions import Doubles, neutral
from peergrid.grid import Array
from peergrid.runtime.cpu.kernel import compile_kernel
from peergrid.runtime.reductions import Leaves, Reductions
from peergrid.runtime.reference_reduction import values_by
from peergrid.schedule import Layout
from peergrid.stencil.reduction import ReductionKind

CODES: dict[ReductionKind, int] = {"sum": 0, "mean": 0, "l2": 1, "max": 2, "min": 3}  # of reduce.ll


def compiled_reductions(layout: Layout, total_steps: int, cache: Path | None, *, shared: bool = False) -> Reductions:
    """The reductions of a run; cache: as in `compile_kernel`; shared: as `Reductions` has it."""
    values = values_by(partial(compile_kernel, cache=cache), layout.problem)
    return Reductions(layout, total_steps, values, compiled_leaves(layout, cache), shared=shared)


def compiled_leaves(layout: Layout, cache: Path | None) -> Leaves:
    """The results of leaves of the grid's type."""
    add_up = common.reduce(layout.problem.grid.dtype, cache)

    def leaves(kind: ReductionKind, values: Array, first: int) -> Doubles:
        found = np.empty(len(values))
        rows = (values.ctypes.data, *values.strides, *values.shape)
        add_up(CODES[kind], neutral(kind), *rows, first, found.ctypes.data)
        return found

    return leaves

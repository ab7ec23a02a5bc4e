"""The product compiled for processors, as a kernel of peergrid's executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba

from peergrid.grid import Array, Box
from peergrid.runtime.memory import DeviceMemory
from peergrid.sparse.matrix import CsrMatrix
from peergrid.sparse.problem import FIELD
from peergrid.sparse.sliced import NONE, SLICE, SlicedMatrix


@dataclass(frozen=True)
class ProductKernel:
    """A `Kernel` for `products`: the rows of a box."""

    matrix: CsrMatrix | SlicedMatrix

    def __call__(
        self,
        memory: DeviceMemory,
        box: Box,
        source: int,
        target: int,
        step: int,
        steps: int,
        traces: Array,
        recorded: tuple[int, ...],
    ) -> None:
        known, made = memory.block(FIELD, source), memory.block(FIELD, target)
        a, b = box.lo[0], box.hi[0]
        matrix = self.matrix
        vector, origin, rows = known.array, known.box.lo[0], made.view(box)
        if isinstance(matrix, SlicedMatrix):
            multiply_slices(matrix.starts, matrix.columns, matrix.values, vector, origin, rows, a)
        else:
            multiply(matrix.starts[a : b + 1], matrix.columns, matrix.values, vector, origin, rows)


@numba.njit(nogil=True)
def multiply(starts: Any, columns: Any, values: Any, vector: Any, origin: int, rows: Any) -> None:
    """rows[i] = the sum of the nonzeros of row i times their elements of the vector, which begins at `origin`."""
    for i in range(len(rows)):
        total = values.dtype.type(0)
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * vector[columns[k] - origin]
        rows[i] = total


@numba.njit(nogil=True)
def multiply_slices(starts: Any, columns: Any, values: Any, vector: Any, origin: int, rows: Any, first: int) -> None:
    """The same of slices, for the rows from `first` on."""
    for i in range(len(rows)):
        row = first + i
        total = values.dtype.type(0)
        for k in range(starts[row // SLICE] + row % SLICE, starts[row // SLICE + 1], SLICE):
            if columns[k] != NONE:
                total += values[k] * vector[columns[k] - origin]
        rows[i] = total

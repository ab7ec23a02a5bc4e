"""The product compiled for processors, as a kernel of peergrid's executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba

from peergrid.grid import Array, Box
from peergrid.runtime.memory import DeviceMemory
from peergrid.sparse.matrix import CsrMatrix
from peergrid.sparse.problem import FIELD


@dataclass(frozen=True)
class ProductKernel:
    """A `Kernel` for `products`: the rows of a box."""

    matrix: CsrMatrix

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
        multiply(matrix.starts[a : b + 1], matrix.columns, matrix.values, known.array, known.box.lo[0], made.view(box))


@numba.njit(nogil=True)
def multiply(starts: Any, columns: Any, values: Any, vector: Any, origin: int, rows: Any) -> None:
    """rows[i] = the sum of the nonzeros of row i times their elements of the vector, which begins at `origin`."""
    for i in range(len(rows)):
        total = values.dtype.type(0)
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * vector[columns[k] - origin]
        rows[i] = total

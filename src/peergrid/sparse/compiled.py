"""The product compiled for processors, as a kernel of peergrid's executors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np

from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import DeviceMemory
from peergrid.sparse.matrix import CsrMatrix, Numbers
from peergrid.sparse.problem import FIELD
from peergrid.sparse.sliced import NONE, SLICE, SlicedMatrix

PLACE = np.uint64  # unsigned, so that indices need no test for negative values


@dataclass(frozen=True, eq=False)
class ProductKernel:
    """A `Kernel` for `products`: the rows of a box."""

    matrix: CsrMatrix | SlicedMatrix

    def __call__(self, memory: DeviceMemory, part: Pass) -> None:
        box = part.box
        known, made = memory.block(FIELD, part.source), memory.block(FIELD, part.target)
        compiled = multiply_slices if isinstance(self.matrix, SlicedMatrix) else multiply
        vector, origin = known.array, PLACE(known.box.lo[0])
        compiled(*self._parts, vector, origin, made.view(box), PLACE(box.lo[0]))

    @cached_property
    def _parts(self) -> tuple[Numbers, Numbers, Numbers]:
        """Starts, columns and values as the compiled product takes them."""
        matrix = self.matrix
        return matrix.starts.astype(PLACE), matrix.columns.astype(np.uint32, copy=False), matrix.values


@numba.njit(nogil=True)
def multiply(starts: Any, columns: Any, values: Any, vector: Any, origin: Any, rows: Any, first: Any) -> None:
    """rows[i] = the sum of the nonzeros of row `first` + i times their elements of the vector, from `origin` on."""
    for i in range(PLACE(len(rows))):
        total = values.dtype.type(0)
        for k in range(starts[first + i], starts[first + i + PLACE(1)]):
            total += values[k] * vector[PLACE(columns[k]) - origin]
        rows[i] = total


@numba.njit(nogil=True)
def multiply_slices(starts: Any, columns: Any, values: Any, vector: Any, origin: Any, rows: Any, first: Any) -> None:
    """The same for slices."""
    each = PLACE(SLICE)
    for i in range(PLACE(len(rows))):
        row = first + i
        total = values.dtype.type(0)
        for k in range(starts[row // each] + row % each, starts[row // each + PLACE(1)], each):
            if columns[k] != NONE:
                total += values[k] * vector[PLACE(columns[k]) - origin]
        rows[i] = total

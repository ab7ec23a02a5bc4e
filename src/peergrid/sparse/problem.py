"""The product of a matrix with a vector as a problem: the reads and writes of rows, for schedules.

A vector is a field with two slots; a product reads one and writes the other. The halo of a device is the part of the
vector that its rows may read and it does not own: if nonzeros lie near the diagonal some cells at each end, as many as
the distance of the farthest nonzero, else the whole vector.
"""

from __future__ import annotations

import numpy as np

from peergrid.arguments import check_kind
from peergrid.errors import UsageError
from peergrid.grid import Grid
from peergrid.grid.partition import Partition, balanced_cuts
from peergrid.sparse.matrix import CsrMatrix, Numbers
from peergrid.sparse.sliced import SlicedMatrix
from peergrid.stencil import Cell, Problem, stencil

FIELD = "vector"


def products(matrix: CsrMatrix | SlicedMatrix, vector: Numbers) -> Problem:
    """The problem whose step is one product. The update declares the reads; `compiled` computes the product."""
    grid = Grid((matrix.rows,), boundary="reflecting", dtype=str(matrix.values.dtype))
    left, right = matrix.reach

    @stencil
    def within_reach(vector: Cell) -> None:
        vector.next[0] = vector[-left] + vector[right]

    return Problem.of(within_reach(grid.field(FIELD, vector)))


def check_matrix(matrix: object) -> None:
    """Raise UsageError for what is no matrix of this package."""
    check_kind("matrix", matrix, (CsrMatrix, SlicedMatrix), "a CsrMatrix, which CsrMatrix.of makes, or a SlicedMatrix")


def as_vector(matrix: CsrMatrix | SlicedMatrix, vector: Numbers) -> Numbers:
    """A vector in the matrix' type. Raises UsageError if it is not real, or if its length is not the number of rows."""
    check_matrix(matrix)
    check_kind("vector", vector, np.ndarray, "a NumPy array")
    if vector.dtype.kind not in "biuf":
        raise UsageError(f"A vector of real numbers is expected, got {vector.dtype}.")
    if vector.shape != (matrix.rows,):
        raise UsageError(f"A vector of {matrix.rows} numbers is expected, as the matrix has rows; got {vector.shape}.")
    found: Numbers = np.ascontiguousarray(vector, matrix.values.dtype)
    return found


def split(problem: Problem, matrix: CsrMatrix | SlicedMatrix, devices: int) -> Partition:
    """Rows for each device, with about as many nonzeros."""
    if devices > matrix.rows:
        return Partition.over(problem.grid, devices)  # which refuses it
    return Partition.slabs(problem.grid, balanced_cuts(matrix.lengths + 1, devices))

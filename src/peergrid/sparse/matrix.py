"""Square sparse matrices in compressed rows (CSR), from Matrix Market files and from SciPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from peergrid.arguments import brief, check_array
from peergrid.errors import UsageError, extra

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class CsrMatrix:
    """A square matrix in compressed rows: the nonzeros of row i are `values[starts[i]:starts[i + 1]]`, with the
    `columns` at the same indices.

    A row is added up in the order in which its nonzeros are stored. Rows are numbered in 32 bits.
    """

    starts: Numbers
    columns: Numbers
    values: Numbers

    def __post_init__(self) -> None:
        for name in ("starts", "columns"):
            check_array(name, getattr(self, name), 1, "iu", "whole numbers")
        check_array("values", self.values, 1, "fiu", "numbers")
        rows = len(self.starts) - 1
        if rows < 1 or self.values.dtype not in (np.float32, np.float64):
            raise UsageError(
                f"A matrix with at least one row of float32 or float64 is expected, got {rows} rows of "
                f"{self.values.dtype}; convert its values."
            )
        if len(self.columns) != len(self.values) or self.starts[0] != 0 or self.starts[-1] != len(self.values):
            raise UsageError(
                f"The rows of a matrix are expected to have {len(self.values)} nonzeros together, as there are values; "
                f"got {len(self.columns)} columns, and rows from {self.starts[0]} to {self.starts[-1]}."
            )
        if np.any(np.diff(self.starts) < 0):
            raise UsageError("The starts of a matrix' rows are expected to rise; they do not.")
        if len(self.columns) and not 0 <= self.columns.min() <= self.columns.max() < rows:
            raise UsageError(
                f"The columns of a square matrix of {rows} rows lie from 0 to {rows - 1}, got "
                f"{self.columns.min()} to {self.columns.max()}."
            )

    @classmethod
    def of(cls, matrix: Any) -> CsrMatrix:
        """From a SciPy matrix or array of any format, or a dense array. Raises UsageError if it is not square."""
        from scipy import sparse

        try:
            found = sparse.csr_array(matrix)
        except (TypeError, ValueError):
            raise UsageError(f"A square matrix of SciPy or NumPy is expected, got {brief(matrix)}.") from None
        if len(found.shape) != 2 or found.shape[0] != found.shape[1]:
            raise UsageError(f"A square matrix is expected, got one of shape {found.shape}.")
        if found.dtype.kind not in "fiub":
            raise UsageError(f"A matrix of real numbers is expected, got {found.dtype}.")
        single = found.dtype == np.float32
        values = found.data.astype(np.float32 if single else np.float64)
        return cls(found.indptr.astype(np.int64), found.indices.astype(np.uint32), values)

    @property
    def rows(self) -> int:
        """The number of rows, and of columns."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> Numbers:
        """Nonzeros of each row."""
        found: Numbers = np.diff(self.starts)
        return found

    @property
    def nonzeros(self) -> int:
        """Stored values."""
        return len(self.values)

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The largest distances of a nonzero from the diagonal, to its left and to its right."""
        away = self.columns - np.repeat(np.arange(self.rows), self.lengths)
        return max(0, -int(away.min(initial=0))), max(0, int(away.max(initial=0)))


def read_matrix(file: Path | str) -> CsrMatrix:
    """Read a Matrix Market file, plain or compressed. Raises UsageError for another file, or a matrix that is not
    square.
    """
    try:
        from scipy.io import mmread
    except ImportError:
        raise UsageError(f"Matrix Market files are read by SciPy: {extra('sparse')}.") from None
    try:
        found = mmread(str(file))
    except (OSError, ValueError, OverflowError) as error:
        raise UsageError(f"'{file}' should be a Matrix Market file, but it cannot be read: {error}.") from None
    return CsrMatrix.of(found)

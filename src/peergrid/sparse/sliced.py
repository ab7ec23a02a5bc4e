"""Sliced ELLPACK: slices of 32 rows, all as long as the longest, whose k-th nonzeros lie side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peergrid.arguments import check_kind
from peergrid.sparse.matrix import CsrMatrix, Numbers

SLICE = 32
NONE = np.uint32(0xFFFFFFFF)
"""The column of a place that holds no nonzero."""


@dataclass(frozen=True, eq=False)
class SlicedMatrix:
    """A square matrix; nonzero k of row i lies at `starts[i // 32] + 32 k + i % 32`, shape (slices + 1,) of starts.

    lengths: of rows; reach: as in `CsrMatrix`. Entries without a nonzero have the column `NONE`. Made by `of`; the
    method is that of A. Monakov, A. Lokhmotov and A. Avetisyan (HiPEAC 2010).
    """

    starts: Numbers
    columns: Numbers
    values: Numbers
    lengths: Numbers
    reach: tuple[int, int]

    @classmethod
    def of(cls, matrix: CsrMatrix) -> SlicedMatrix:
        """The same matrix; its rows are added up in the same order."""
        check_kind("matrix", matrix, CsrMatrix, "a CsrMatrix, which CsrMatrix.of makes")
        lengths, slices = matrix.lengths, -(-matrix.rows // SLICE)
        padded = np.zeros(slices * SLICE, np.int64)
        padded[: matrix.rows] = lengths
        starts = np.concatenate([[0], np.cumsum(SLICE * padded.reshape(slices, SLICE).max(axis=1))])
        columns = np.full(starts[-1], NONE, np.uint32)
        values = np.zeros(starts[-1], matrix.values.dtype)
        row = np.repeat(np.arange(matrix.rows), lengths)
        number = np.arange(matrix.nonzeros) - np.repeat(matrix.starts[:-1], lengths)
        places = starts[row // SLICE] + number * SLICE + row % SLICE
        columns[places], values[places] = matrix.columns, matrix.values
        return cls(starts, columns, values, lengths, matrix.reach)

    @property
    def rows(self) -> int:
        """Rows, and columns."""
        return len(self.lengths)

    @property
    def nonzeros(self) -> int:
        """The number of stored values, without padding."""
        return int(self.lengths.sum())

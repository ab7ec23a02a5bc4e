"""Sparse matrices to measure products with."""

from __future__ import annotations

import numpy as np

from peergrid.sparse import CsrMatrix

BANDS = {"near the diagonal": 4096, "anywhere": 0}
"""Where columns lie: within so many around the diagonal, or anywhere (0)."""


def drawn(rows: int, width: int, band: int, dtype: str) -> CsrMatrix:
    """Rows of `width` nonzeros at columns within a band around the diagonal, or anywhere (0), in rising order."""
    random = np.random.default_rng(1)
    near = random.integers(0, band or rows, (rows, width)) + (np.arange(rows)[:, np.newaxis] - band // 2 if band else 0)
    columns = np.sort(np.clip(near, 0, rows - 1), axis=1).ravel().astype(np.uint32)
    values = random.random(rows * width, dtype=np.dtype(dtype)) / np.dtype(dtype).type(width)
    return CsrMatrix(np.arange(rows + 1) * width, columns, values)

"""Sparse matrices to measure products with."""

from __future__ import annotations

import numpy as np

from peergrid.sparse import CsrMatrix

BANDS = {"near the diagonal": 4096, "anywhere": 0}
"""Where columns lie: within so many around the diagonal, or anywhere (0)."""


def drawn(rows: int, width: int, band: int, dtype: str) -> CsrMatrix:
    """Rows of `width` nonzeros in a window of `band` columns around the diagonal, or anywhere (0); one lies in each
    `width`-th of it, so that no column comes twice.
    """
    random, span = np.random.default_rng(1), band or rows
    each = span // width
    first = np.clip(np.arange(rows) - span // 2, 0, rows - span)
    columns = first[:, np.newaxis] + np.arange(width) * each + random.integers(0, each, (rows, width))
    values = random.random(rows * width, dtype=np.dtype(dtype)) / np.dtype(dtype).type(width)
    return CsrMatrix(np.arange(rows + 1) * width, columns.ravel().astype(np.uint32), values)

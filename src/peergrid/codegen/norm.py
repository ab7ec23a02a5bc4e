"""The norm of every step: the squared change of a field, summed over all cells in a fixed order.

The tree is fixed in the coordinates of the grid, not of tiles, strips or devices: squares of four neighbours along a
row are added one after another, row by row, in blocks of 24 rows and 8 columns that begin at multiples of 24 and 8; the
two halves of a block are added; blocks of 24 rows are summed across in double precision by a tree of 256 leaves (leaf k
takes every 256th block from the k-th on); the host adds the results, one number for each 24 rows, in order. Devices
whose boxes begin at multiples of 24 rows together give what one device gives.

Kernels that keep 2, 3 or 4 rows of a field in registers, each in its place, come to the end of a block at the same
register always: so the kernel's text knows where sums end, without a test in each row.
"""

from __future__ import annotations

import numpy as np

NORM_ROWS, NORM_COLUMNS = NORM_ALIGN = 24, 8
NORM_LEAVES = 256


def total(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The norms of some steps from the sums of their rows, shape (steps, ceil(grid rows / 24)), of all devices."""
    return np.sqrt(np.add.accumulate(rows, axis=1)[:, -1])

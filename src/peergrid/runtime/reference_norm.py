"""The sums of squared changes that define correct results: plain NumPy, by the tree of `codegen.norm`.

Squares are added by fused multiply-adds, which round once. NumPy has none: they are made of exact products and sums
whose last addition rounds to odd, after S. Boldo and G. Melquiond, Emulation of FMA and Correctly Rounded Sums: Proved
Algorithms Using Rounding to Odd, IEEE Transactions on Computers 57 (2008).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.norm import NORM_COLUMNS, NORM_LEAVES, NORM_ROWS
from peergrid.grid import Array

Doubles = NDArray[np.float64]
SPLITTER = float(2**27 + 1)  # halves the 53 bits of a number in double precision (T. J. Dekker, 1971)


@np.errstate(over="ignore", invalid="ignore")
def reference_sums(before: Array, after: Array) -> Doubles:
    """The sum of every band of rows; before, after: shape (rows, columns), from the first row of a band on."""
    rows, across = before.shape
    bands, blocks = -(-rows // NORM_ROWS), -(-across // NORM_COLUMNS)
    change = np.zeros((bands * NORM_ROWS, blocks * NORM_COLUMNS), before.dtype)
    change[:rows, :across] = after - before
    cells = change.reshape(bands, NORM_ROWS, blocks, 2, NORM_COLUMNS // 2)
    halves = np.zeros((bands, blocks, 2), before.dtype)
    for row in range(NORM_ROWS):
        for column in range(NORM_COLUMNS // 2):
            halves = add_square(cells[:, row, :, :, column], halves)
    return _across((halves[..., 0] + halves[..., 1]).astype(np.float64))


def add_square(value: Array, total: Array) -> Array:
    """value² + total, rounded once; where squares neither overflow nor lose bits to underflow."""
    if value.dtype == np.float32:
        square = value.astype(np.float64) ** 2  # exactly
        return _odd(*_sum(square, total.astype(np.float64))).astype(np.float32)
    square, lost = _square(value.astype(np.float64))
    small, tiny = _sum(total.astype(np.float64), lost)
    large, rest = _sum(square, small)
    return large + _odd(*_sum(tiny, rest))


def _across(blocks: Doubles) -> Doubles:
    """The sums of rows of blocks, by a tree whose leaf k takes every so many blocks from the k-th on."""
    bands, count = blocks.shape
    rounds = -(-count // NORM_LEAVES)
    leaves = np.zeros((bands, rounds * NORM_LEAVES))
    leaves[:, :count] = blocks
    found = np.add.accumulate(leaves.reshape(bands, rounds, NORM_LEAVES), axis=1)[:, -1]
    while found.shape[1] > 1:
        half = found.shape[1] // 2
        found = found[:, :half] + found[:, half:]
    return found[:, 0]


def _sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """a + b as the nearest number and what it lacks (D. E. Knuth)."""
    total = a + b
    given = total - a
    return total, (a - (total - given)) + (b - given)


def _square(value: Doubles) -> tuple[Doubles, Doubles]:
    """value² as the nearest number and what it lacks (G. W. Veltkamp, T. J. Dekker)."""
    scaled = SPLITTER * value
    high = scaled - (scaled - value)
    low = value - high
    square = value * value
    return square, ((high * high - square) + 2 * (high * low)) + low * low


def _odd(total: Doubles, lacking: Doubles) -> Doubles:
    """total + lacking rounded to odd: exact, or of the two numbers around it the one whose last bit is set."""
    even = np.ascontiguousarray(total).view(np.int64) & 1 == 0
    inexact = (lacking != 0) & np.isfinite(lacking) & even
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, lacking)), total)

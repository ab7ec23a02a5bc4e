"""The sums of squared changes that the norm of every step begins with. Compiled by `jit.compile_norm`.

Plain loops on purpose: this text is what Numba compiles. The tree of sums is the one of `codegen.norm`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.jit import fused
from peergrid.codegen.norm import NORM_COLUMNS, NORM_LEAVES, NORM_ROWS

HALF = NORM_COLUMNS // 2


def add_rows(
    before: NDArray[Any], after: NDArray[Any], across: int, first: int, end: int, halves: NDArray[Any]
) -> None:
    """The squared changes of some rows to the sums of half blocks, cell by cell in order."""
    for y in range(first, end):
        for half in range(across // HALF):
            total = halves[half]
            for x in range(half * HALF, half * HALF + HALF):
                change = after[y, x] - before[y, x]
                total = fused(change, change, total)
            halves[half] = total
        for x in range(across // HALF * HALF, across):
            change = after[y, x] - before[y, x]
            halves[x // HALF] = fused(change, change, halves[x // HALF])


def sums(before: NDArray[Any], after: NDArray[Any], across: int, bands: NDArray[np.float64]) -> None:
    """The sum of every band of rows, from the first `across` cells of each row; rows begin with the first of a band."""
    rows = before.shape[0]
    blocks = -(-across // NORM_COLUMNS)
    for band in range(bands.shape[0]):
        halves = np.zeros(2 * blocks, before.dtype)
        add_rows(before, after, across, band * NORM_ROWS, min((band + 1) * NORM_ROWS, rows), halves)
        leaves = np.zeros(NORM_LEAVES, np.float64)
        for block in range(blocks):
            leaves[block % NORM_LEAVES] += np.float64(halves[2 * block] + halves[2 * block + 1])
        left = NORM_LEAVES // 2
        while left > 0:
            for leaf in range(left):
                leaves[leaf] += leaves[leaf + left]
            left //= 2
        bands[band] = leaves[0]

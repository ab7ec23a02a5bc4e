"""The results of leaves of a reduction. Compiled by `jit.compile_reduce`.

Plain loops on purpose: this text is what Numba compiles. The order of operations is that of `codegen.reductions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.reductions import CLASSES, NEIGHBOURS

SUM, SQUARES, LARGEST, SMALLEST = range(4)


def combine(kind: int, one: float, two: float) -> float:
    if kind == LARGEST:
        return one if (one > two) | (one != one) else two
    if kind == SMALLEST:
        return one if (one < two) | (one != one) else two
    return one + two


def gather(kind: int, line: NDArray[Any], first: int, found: NDArray[np.float64]) -> None:
    """The classes of a leaf, from its cells, of which the first has place `first`."""
    at, place, count = 0, first % CLASSES, line.shape[0]
    while at < count:
        length = min(count - at, CLASSES - place)
        if kind == SQUARES:
            for x in range(length):
                value = np.float64(line[at + x])
                found[place + x] += value * value
        elif kind == SUM:
            for x in range(length):
                found[place + x] += np.float64(line[at + x])
        else:
            for x in range(length):
                found[place + x] = combine(kind, found[place + x], np.float64(line[at + x]))
        at, place = at + length, 0


def leaves(kind: int, neutral: float, values: NDArray[Any], first: int, results: NDArray[np.float64]) -> None:
    """The result of a leaf of each row; values: shape (rows, cells)."""
    found = np.empty(CLASSES, np.float64)
    for row in range(values.shape[0]):
        found[:] = neutral
        gather(kind, values[row], first, found)
        for lane in range(CLASSES // NEIGHBOURS):
            one = combine(kind, found[4 * lane], found[4 * lane + 1])
            found[lane] = combine(kind, one, combine(kind, found[4 * lane + 2], found[4 * lane + 3]))
        left = CLASSES // NEIGHBOURS // 2
        while left > 0:
            for lane in range(left):
                found[lane] = combine(kind, found[lane], found[lane + left])
            left //= 2
        results[row] = found[0]

"""The order in which a reduction combines the values of cells, the same on all devices.

It is fixed in the coordinates of the grid, not of devices, tiles or thread blocks. A *row* is a line of cells along the
last axis; rows are numbered over the whole grid. Every row is cut into *leaves* of 1024 cells, which begin at multiples
of 1024. In a leaf, each of 128 classes combines the cells whose place is that class modulo 128, in order; then four
neighbouring classes, (0, 1) with (2, 3); then the 32 results by halves: the upper sixteen with the lower, the upper
eight with the lower, and so on. Leaves are numbered row by row, and 64 leaves from a multiple of 64 on are combined by
halves in the same way to a *group*. The groups are combined one after another. Cells that do not count (outside the
reduction's box, or of no leaf) stand for the neutral value, which changes no result.

Values are converted to double precision first, whatever the grid's type; sums of squares take a product, rounded, and a
sum, rounded. A warp reads a leaf with full vector loads, a thread block makes a group, and no order ever depends on
which of them is quicker. Devices may own parts of a leaf or a group: whoever puts the results together is given smaller
pieces there, the values of the cells or the results of the leaves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from peergrid.stencil.reduction import ReductionKind

LEAF, CLASSES, NEIGHBOURS, GROUP = 1024, 128, 4, 64
Doubles = NDArray[np.float64]


def neutral(kind: ReductionKind) -> float:
    """The value that changes no result."""
    return {"max": -np.inf, "min": np.inf}.get(kind, 0.0)


def leaves(kind: ReductionKind, values: NDArray[np.floating], first: int) -> Doubles:
    """The results of one leaf of each row; values: shape (rows, cells), of which the first has place `first`."""
    rows, count = values.shape
    cells = np.full((rows, LEAF), neutral(kind))
    cells[:, first : first + count] = values if kind != "l2" else np.square(values.astype(np.float64))
    found = np.full((rows, CLASSES), neutral(kind))
    for row in range(LEAF // CLASSES):
        found = combine(kind, found, cells[:, row * CLASSES : (row + 1) * CLASSES])
    pairs = combine(kind, found[:, 0::2], found[:, 1::2])
    return halved(kind, combine(kind, pairs[:, 0::2], pairs[:, 1::2]))


def groups(kind: ReductionKind, found: Doubles) -> Doubles:
    """The results of groups, from those of their leaves, shape (groups, 64)."""
    return halved(kind, found)


def total(kind: ReductionKind, found: Doubles, cells: int) -> float:
    """The reduction, from the results of all groups in order, from those of `cells` cells; zero is positive."""
    with np.errstate(all="ignore"):
        result = neutral(kind)
        ufunc = {"max": np.maximum, "min": np.minimum}.get(kind, np.add)
        result = float(ufunc.accumulate(np.concatenate(([result], found)))[-1]) + 0.0
        if kind == "mean":
            result /= cells
        return float(np.sqrt(result)) if kind == "l2" else float("nan") if result != result else result


def combine(kind: ReductionKind, one: Doubles, two: Doubles) -> Doubles:
    """Two results in one, element by element; NaN where either is."""
    with np.errstate(all="ignore"):
        return {"max": np.maximum, "min": np.minimum}.get(kind, np.add)(one, two)


def halved(kind: ReductionKind, found: Doubles) -> Doubles:
    """The results along axis 1, a power of two of them, combined by halves."""
    while found.shape[1] > 1:
        half = found.shape[1] // 2
        found = combine(kind, found[:, :half], found[:, half:])
    return found[:, 0]

"""The sums of squared changes by compiled code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu import common
from peergrid.codegen.norm import NORM_COLUMNS, NORM_ROWS
from peergrid.grid import Array
from peergrid.runtime.norms import Sums


def compiled_sums(dtype: str, cache: Path | None) -> Sums:
    """The sums of fields of a type; cache: as in `compile_kernel`."""
    add_up = common.norm(dtype, cache)

    def sums(before: Array, after: Array) -> NDArray[np.float64]:
        rows, across = before.shape
        bands = np.empty(-(-rows // NORM_ROWS))
        halves = np.empty(2 * -(-across // NORM_COLUMNS), dtype)
        fields = (before.ctypes.data, _pitch(before), after.ctypes.data, _pitch(after))
        add_up(*fields, rows, across, bands.ctypes.data, len(bands), halves.ctypes.data)
        return bands

    return sums


def _pitch(values: Array) -> int:
    """Cells from row to row in memory."""
    return values.strides[0] // values.itemsize

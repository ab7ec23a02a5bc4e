"""The sums of squared changes by compiled code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from peergrid.codegen.cpu.jit import compile_norm
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Array
from peergrid.runtime.norms import Sums


def compiled_sums(dtype: str, cache: Path | None) -> Sums:
    """The sums of fields of a type; cache: as in `compile_kernel`."""
    add_up = compile_norm(dtype, cache)

    def sums(before: Array, after: Array) -> NDArray[np.float64]:
        bands = np.empty(-(-len(before) // NORM_ROWS))
        add_up(_whole_rows(before), _whole_rows(after), before.shape[1], bands)
        return bands

    return sums


def _whole_rows(values: Array) -> Array:
    """Values with what lies between their rows in memory, which compiled code reads faster than strided rows."""
    pitch = values.strides[0] if len(values) > 1 else values.shape[1] * values.itemsize
    return as_strided(values, (len(values), pitch // values.itemsize), (pitch, values.itemsize))

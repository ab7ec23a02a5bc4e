"""Tensor maps for kernels on the host: what `fibres.cpp` reads of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def tensor_map(address: int, extents: Sequence[int], strides: Sequence[int], box: Sequence[int]) -> NDArray[np.uint64]:
    """As of the driver, in words of its own; what the driver refuses is an error."""
    assert not any(one % 16 for one in (address, *strides)), "alignment"
    assert all(0 < size <= 256 for size in box), "box"
    assert all(extents), "extents"
    found = np.zeros(16, np.uint64)
    found[:8] = (address, *extents, *strides, *box[:2])
    return found

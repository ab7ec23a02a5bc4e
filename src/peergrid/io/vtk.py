"""Images of cells in VTKHDF, which ParaView opens."""

from __future__ import annotations

from collections.abc import Sequence

import h5py
import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def add_cells(file: h5py.File, shape: Sequence[int], origin: Doubles, spacing: Doubles) -> h5py.Group:
    """The group of an image of so many cells along x, y and z; its `CellData` take values of shape (z, y, x).

    origin: of the first cell's lower corner, metres; spacing: of cells.
    """
    group = file.create_group("VTKHDF")
    group.attrs["Version"] = (2, 0)
    group.attrs.create("Type", np.bytes_("ImageData"))
    group.attrs["WholeExtent"] = [end for n in shape for end in (0, n)]
    group.attrs["Origin"], group.attrs["Spacing"] = origin, spacing
    group.attrs["Direction"] = np.eye(3).ravel()
    return group

"""Arrays of materials from files: checked before values are read; nothing in them is executed, and no link followed."""

from __future__ import annotations

import tokenize
import warnings
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.files import check_plain, reason
from peergrid.io.hdf5 import LARGEST, UNREADABLE, own_dataset, reading

SMALL = 1 << 20  # values that are read for any grid, as later checks have better messages

Voxels = NDArray[np.integer[Any]]


def load_voxels(file: Path, dataset: str, cells: tuple[int, int], path: str) -> Voxels:
    """A two-dimensional array of whole numbers from `.npy` or HDF5, not larger than the grid.

    cells: of the grid; path: of the shape in the model. Raises UsageError.
    """
    try:
        check_plain(file, LARGEST)
        if file.suffix == ".npy":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about old versions of the format
                found = np.load(file, mmap_mode="r", allow_pickle=False)
            return np.array(_checked(found, file, cells, path))
        with reading(file) as opened:
            return np.asarray(_checked(own_dataset(opened, dataset), file, cells, path)[...])
    except UsageError:
        raise
    except KeyError:
        raise UsageError(
            f"{path}.dataset is expected to name an array in '{file}', got '{dataset}'; correct it."
        ) from None
    except (*UNREADABLE, tokenize.TokenError) as error:
        raise UsageError(
            f"{path}.file is expected to be a readable .npy or HDF5 file, got '{file}': {reason(error)}; correct it."
        ) from None


def _checked(found: Any, file: Path, cells: tuple[int, int], path: str) -> Any:
    """Check an array before its values are read. Raises UsageError if it has no whole numbers, or does not fit the
    grid.
    """
    if not hasattr(found, "dtype"):
        raise ValueError("an archive of several arrays")
    if len(found.shape) != 2 or found.dtype.kind not in "iu":
        raise UsageError(
            f"{path}.file is expected to hold a two-dimensional array of whole numbers, '{file}' holds "
            f"{len(found.shape)} dimensions of {found.dtype}."
        )
    if prod(found.shape) > max(SMALL, prod(cells)):
        raise UsageError(
            f"{path} is expected to lie inside the grid of {cells[0]} by {cells[1]} cells, '{file}' holds "
            f"{found.shape[0]} by {found.shape[1]}; crop the array."
        )
    return found

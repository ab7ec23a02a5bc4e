"""Arrays from files of several formats: NumPy, HDF5, Zarr, SEG-Y."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError, extra
from peergrid.files import check_plain, reason

LARGEST = 1 << 40  # bytes


def read_array(file: Path, dataset: str, what: str) -> NDArray[Any]:
    """The numbers in a file, by its suffix; dataset: the array's name in HDF5 and Zarr; what: its use, for messages.

    .npy, .h5 and .hdf5, .zarr (a folder), .sgy and .segy (a trace is a line along the last axis). Raises UsageError if
    the file has none.
    """
    formats: Mapping[str, Callable[[Path, str], NDArray[Any]]] = {
        ".npy": _npy, ".h5": _hdf5, ".hdf5": _hdf5, ".zarr": _zarr, ".sgy": _segy, ".segy": _segy,
    }  # fmt: skip
    read = formats.get(file.suffix.lower())
    if read is None:
        raise UsageError(f"{what} is expected in a file that ends in {', '.join(formats)}, got '{file.name}'.")
    try:
        if file.suffix != ".zarr":
            check_plain(file, LARGEST)
        found = read(file, dataset)
    except ImportError:
        raise UsageError(
            f"{what} in '{file.name}' needs a library that is not installed; {extra('seismic')}."
        ) from None
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        named = f" with an array '{dataset}'" if dataset else ""
        raise UsageError(
            f"{what} is expected in '{file}'{named}; it cannot be read: {reason(error)}; correct the path or the file."
        ) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iuf":
        raise UsageError(f"{what} is expected to be an array of numbers, got something else in '{file.name}'.")
    return found


def _npy(file: Path, _: str) -> NDArray[Any]:
    found: NDArray[Any] = np.load(file, allow_pickle=False)
    return found


def _hdf5(file: Path, dataset: str) -> NDArray[Any]:
    with h5py.File(file, "r") as opened:
        names = list[str]()
        opened.visititems(lambda name, one: names.append(name) if isinstance(one, h5py.Dataset) else None)
        return np.asarray(opened[_only(dataset, names)])


def _zarr(file: Path, dataset: str) -> NDArray[Any]:
    import zarr

    opened: Any = zarr.open(str(file), mode="r")
    if hasattr(opened, "shape"):
        return np.asarray(opened[...])
    names = sorted(name for name, one in opened.members(max_depth=None) if hasattr(one, "shape"))
    return np.asarray(opened[_only(dataset, names)][...])


def _only(dataset: str, names: list[str]) -> str:
    """The array with the given name, or else the only one, in any group."""
    if dataset or len(names) == 1:
        return dataset or names[0]
    raise ValueError(f"it has {', '.join(names[:8]) or 'nothing'}; name one of them as dataset")


def _segy(file: Path, _: str) -> NDArray[Any]:
    import segyio

    try:
        with segyio.open(str(file), "r") as opened:
            return np.asarray(segyio.tools.cube(opened))
    except (ValueError, RuntimeError):  # a section, no cube
        with segyio.open(str(file), "r", ignore_geometry=True) as opened:
            return np.asarray(opened.trace.raw[:])

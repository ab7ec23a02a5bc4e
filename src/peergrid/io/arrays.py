"""Arrays from files of several formats, NumPy, HDF5, Zarr and SEG-Y: looked at before their values are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError, extra
from peergrid.files import check_plain, reason
from peergrid.io.hdf5 import LARGEST, own_dataset, reading
from peergrid.io.rule import shown

Looked = Callable[[Any], NDArray[Any]]
"""An array as its library opens it → its values, in memory, once its shape and type are seen to be as expected."""


def read_array(file: Path, dataset: str, what: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The numbers in a file, by its suffix, of a shape; axes of length 1 are left out if there are too many.

    dataset: the array's name in HDF5 and Zarr; what: its use, for messages. .npy, .h5 and .hdf5, .zarr (a folder),
    .sgy and .segy (a trace is a line along the last axis, inline numbers go with the first). Raises UsageError if
    the file has none.
    """
    formats: Mapping[str, Callable[[Path, str, Looked], NDArray[Any]]] = {
        ".npy": _npy, ".h5": _hdf5, ".hdf5": _hdf5, ".zarr": _zarr, ".sgy": _segy, ".segy": _segy,
    }  # fmt: skip
    read = formats.get(file.suffix.lower())
    if read is None:
        raise UsageError(f"{what} is expected in a file that ends in {', '.join(formats)}, got '{shown(file.name)}'.")
    if dataset and read not in (_hdf5, _zarr):
        raise UsageError(
            f"{what}.dataset is for HDF5 and Zarr, whose files have several arrays, got '{shown(dataset)}' with "
            f"'{shown(file.name)}'; leave it out."
        )
    try:
        if read is not _zarr:
            check_plain(file, LARGEST)
        with warnings.catch_warnings(action="ignore"):  # about old or odd versions of a format
            return read(file, dataset, lambda found: _looked(found, file, what, shape))
    except UsageError:
        raise
    except ImportError:
        raise UsageError(
            f"{what} in '{file.name}' needs a library that is not installed; {extra('seismic')}."
        ) from None
    except Exception as error:  # libraries raise of many kinds on damaged files
        named = f" with an array '{shown(dataset)}'" if dataset else ""
        raise UsageError(
            f"{what} is expected in '{file}'{named}; it cannot be read: {shown(reason(error), 200)}; correct the path "
            "or the file."
        ) from None


def _looked(found: Any, file: Path, what: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """The values of an array, read once its type and shape are known to be right."""
    if getattr(getattr(found, "dtype", None), "kind", "") not in ("i", "u", "f"):
        raise UsageError(f"{what} is expected to be an array of numbers, got something else in '{file.name}'.")
    kept = tuple(n for n in found.shape if n > 1) if len(found.shape) > len(shape) else tuple(found.shape)
    if kept != shape or prod(found.shape) != prod(shape):
        remedy = "transpose it, or " if sorted(kept) == sorted(shape) else ""
        raise UsageError(
            f"{what} is expected to have a value for each node, shape {shape}, got {kept} in '{file.name}'; {remedy}"
            "correct grid.size and grid.spacing, or the file."
        )
    values = np.array(found[...]).reshape(shape)
    if not np.isfinite(values).all():
        raise UsageError(f"{what} is expected to be finite at every node, got NaN or infinity in '{file.name}'.")
    return values


def _npy(file: Path, _: str, looked: Looked) -> NDArray[Any]:
    return looked(np.load(file, mmap_mode="r", allow_pickle=False))


def _hdf5(file: Path, dataset: str, looked: Looked) -> NDArray[Any]:
    with reading(file) as opened:
        names = list[str]()
        opened.visititems(lambda name, one: names.append(name) if isinstance(one, h5py.Dataset) else None)
        return looked(_named(dataset, names, lambda name: own_dataset(opened, name)))


def _zarr(file: Path, dataset: str, looked: Looked) -> NDArray[Any]:
    import zarr

    opened: Any = zarr.open(str(file), mode="r")
    if hasattr(opened, "shape"):
        return looked(opened)
    names = sorted(name for name, one in opened.members(max_depth=None) if hasattr(one, "shape"))
    return looked(_named(dataset, names, lambda name: opened[name]))


def _named(dataset: str, names: list[str], opened: Callable[[str], Any]) -> Any:
    """The array with the given name, or else the only one, in any group. Raises ValueError with their names."""
    if dataset or len(names) == 1:
        with suppress(KeyError):
            return opened(dataset or names[0])
    raise ValueError(f"it has {', '.join(names[:8]) or 'nothing'}; name one of them as dataset")


def _segy(file: Path, _: str, looked: Looked) -> NDArray[Any]:
    import segyio

    try:
        with segyio.open(str(file), "r") as opened:
            cube = np.asarray(segyio.tools.cube(opened))  # the first axis is that along which traces are sorted
            crossed = opened.sorting == segyio.TraceSortingFormat.CROSSLINE_SORTING
            return looked(np.swapaxes(cube, 0, 1) if crossed else cube)
    except (ValueError, RuntimeError):  # a section, no cube
        with segyio.open(str(file), "r", ignore_geometry=True) as opened:
            return looked(np.asarray(opened.trace.raw[:]))

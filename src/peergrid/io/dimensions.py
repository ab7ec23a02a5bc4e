"""Metadata of arrays in HDF5 files for other programs: dimension scales and units for xarray and netCDF, and an image
over time for VTK and ParaView (VTKHDF 2.0). Nothing is written twice: images refer to the same arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import h5py
import numpy as np

AXES = "xyz"
IMAGE = "VTKHDF"


def add_axes(file: h5py.File, spacing: Sequence[float], shape: Sequence[int]) -> None:
    """Coordinates of nodes along each axis, in metres, as dimension scales `x`, `y`, `z`."""
    for name, step, count in zip(AXES, spacing, shape, strict=False):
        file[name] = np.arange(count) * step
        make_scale(file[name], "m")


def make_scale(dataset: h5py.Dataset, unit: str) -> None:
    """Make an array the coordinates of a dimension."""
    dataset.make_scale(dataset.name.removeprefix("/"))
    dataset.attrs["units"] = unit


def attach(dataset: h5py.Dataset, names: Sequence[str], unit: str | None = None) -> None:
    """Name the dimensions of an array, each by a dimension scale of the file; unit: of the values, if known."""
    for dimension, name in zip(dataset.dims, names, strict=True):
        dimension.attach_scale(dataset.file[name])
        dimension.label = name
    if unit is not None:
        dataset.attrs["units"] = unit


def add_image(file: h5py.File, names: Sequence[str], spacing: Sequence[float]) -> None:
    """An image over time of arrays, shape (time, nodes along x, y, ...), which VTK interprets as (time, z, y, x).

    Its directions make the last axis of an array the last of the grid, so that nothing is transposed.
    """
    if not names:
        return
    count, *shape = file[names[0]].shape
    ndim = len(shape)
    group = file.create_group(IMAGE)
    group.attrs["Version"] = (2, 0)
    group.attrs.create("Type", np.bytes_("ImageData"))
    extent = [*shape[::-1], 1, 1][:3]  # of the fastest axis first
    group.attrs["WholeExtent"] = [end for n in extent for end in (0, n - 1)]
    group.attrs["Origin"] = np.zeros(3)
    group.attrs["Spacing"] = np.array([*spacing[::-1], spacing[0], spacing[0]][:3])
    axes = [*reversed(range(ndim)), *range(ndim, 3)]  # of the grid, for each of the image
    group.attrs["Direction"] = np.eye(3)[axes].T.ravel()
    steps = group.create_group("Steps")
    steps.attrs["NSteps"] = count
    steps["Values"] = file["time"][:]
    for name in names:
        steps[f"PointDataOffsets/{name}"] = np.arange(count)
        group[f"PointData/{name}"] = file[name]

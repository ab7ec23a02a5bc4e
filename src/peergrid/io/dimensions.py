"""Metadata of arrays in HDF5 files for other programs: dimension scales and units for xarray and netCDF, and an image
over time for VTK and ParaView (VTKHDF 2.0). Nothing is written twice: images refer to the same arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import h5py
import numpy as np

AXES = "xyz"
IMAGE = "VTKHDF"


def add_axes(
    file: h5py.File,
    axes: Sequence[str],
    spacing: Sequence[float],
    shape: Sequence[int],
    origin: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Coordinates of nodes along each axis, in metres, as dimension scales with the names of the axes.

    origin: metres of the first node along each axis.
    """
    for name, step, count, first in zip(axes, spacing, shape, origin, strict=False):
        file[name] = first + np.arange(count) * step
        make_scale(file[name], "m")


def add_times(file: h5py.File, samples: int, dt: float) -> None:
    """The seconds of samples as the dimension scale `time`."""
    file["time"] = np.arange(samples) * dt
    make_scale(file["time"], "s")


def add_numbers(file: h5py.File, counts: Mapping[str, int]) -> None:
    """Numbers from 0 as dimension scales, of traces or receivers for example; counts: how many there are, by name."""
    for name, count in counts.items():
        file[name] = np.arange(count)
        make_scale(file[name], "1")


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


def add_image(
    file: h5py.File, names: Sequence[str], axes: Sequence[str], spacing: Sequence[float], origin: Sequence[float]
) -> None:
    """An image over time of arrays, shape (time, nodes along `axes`), which VTK interprets as (time, z, y, x).

    Its directions take the axes of an array to those of the grid, so that nothing is transposed.
    """
    if not names:
        return
    count, *shape = file[names[0]].shape
    along = [AXES.index(name) for name in axes]
    group = file.create_group(IMAGE)
    group.attrs["Version"] = (2, 0)
    group.attrs.create("Type", np.bytes_("ImageData"))
    extent = [*shape[::-1], 1, 1][:3]  # of the fastest axis first
    group.attrs["WholeExtent"] = [end for n in extent for end in (0, n - 1)]
    place = np.zeros(3)
    place[along] = origin
    group.attrs["Origin"] = place
    group.attrs["Spacing"] = np.array([*spacing[::-1], spacing[0], spacing[0]][:3])
    order = [*reversed(along), *(axis for axis in range(3) if axis not in along)]  # of space, for each of the image
    group.attrs["Direction"] = np.eye(3)[order].T.ravel()
    steps = group.create_group("Steps")
    steps.attrs["NSteps"] = count
    steps["Values"] = file["time"][:]
    for name in names:
        steps[f"PointDataOffsets/{name}"] = np.arange(count)
        group[f"PointData/{name}"] = file[name]

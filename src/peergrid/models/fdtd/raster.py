"""From shapes to the map of materials, cell by cell; later shapes cover earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.models.fdtd.materials import CellMap
from peergrid.models.fdtd.shapes import Region, Shape, Voxels


def rasterise(
    extent: tuple[int, int],
    spacing: tuple[float, float],
    background: int,
    shapes: Sequence[Shape],
    index: Mapping[str, int],
) -> CellMap:
    """The material of each cell, shape `extent`.

    background: the index of the material that fills the rest; index: of each material by name.
    Raises UsageError where a shape covers no cell, or a file of voxels cannot be used.
    """
    cells = np.full(extent, background, dtype=np.uint16)
    for number, shape in enumerate(shapes, start=1):
        path = f"shape[{number}]"
        if isinstance(shape, Voxels):
            _place(cells, spacing, shape, index, path)
        elif not _fill(cells, spacing, shape, index[shape.material]):
            raise UsageError(
                f"{path} ('{shape.kind}') is expected to cover at least one cell centre of the grid, it covers none; "
                f"move it into the grid, enlarge it, or use a smaller grid.spacing."
            )
    return cells


def _fill(cells: CellMap, spacing: tuple[float, float], shape: Region, material: int) -> bool:
    """Fill the cells of one shape; whether there were any."""
    windows = [
        slice(*_window(low, high, step, count))
        for low, high, step, count in zip(*shape.bounds, spacing, cells.shape, strict=True)
    ]
    x, y = (
        (np.arange(w.start, w.stop, dtype=np.float64) + 0.5) * step for w, step in zip(windows, spacing, strict=True)
    )
    inside = shape.covers(x[:, None], y[None, :])
    cells[windows[0], windows[1]][inside] = material
    return bool(inside.any())


def _window(low: float, high: float, step: float, count: int) -> tuple[int, int]:
    """The cells whose centres may lie between two coordinates, with one to spare on each side."""
    first = int(np.floor(np.clip(low / step - 1, 0, count)))
    last = int(np.ceil(np.clip(high / step + 1, 0, count)))
    return first, max(first, last)


def _place(cells: CellMap, spacing: tuple[float, float], shape: Voxels, index: Mapping[str, int], path: str) -> None:
    numbers = _load(Path(shape.file), shape.dataset, path)
    if numbers.size and numbers.max() >= len(shape.materials):
        raise UsageError(
            f"{path}.file is expected to hold numbers below {len(shape.materials)} (one for each of {path}.materials), "
            f"it holds {numbers.max()}; name more materials."
        )
    start = [round(o / step) for o, step in zip(shape.origin, spacing, strict=True)]
    stop = [a + n for a, n in zip(start, numbers.shape, strict=True)]
    if min(start) < 0 or any(b > n for b, n in zip(stop, cells.shape, strict=True)):
        raise UsageError(
            f"{path} is expected to lie inside the grid of {cells.shape[0]} by {cells.shape[1]} cells, its cells reach "
            f"from {tuple(start)} to {tuple(stop)}; change {path}.origin or crop the array."
        )
    table = np.array([index[name] for name in shape.materials], dtype=np.uint16)
    target = cells[start[0] : stop[0], start[1] : stop[1]]
    target[numbers >= 0] = table[numbers[numbers >= 0]]


def _load(file: Path, dataset: str, path: str) -> NDArray[np.integer[Any]]:
    """A two-dimensional array of whole numbers from `.npy` or HDF5; nothing in the file is executed."""
    try:
        array = np.load(file, allow_pickle=False) if file.suffix == ".npy" else _load_hdf5(file, dataset)
    except KeyError:
        raise UsageError(
            f"{path}.dataset is expected to name an array in '{file}', got '{dataset}'; correct it."
        ) from None
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{path}.file is expected to be a readable .npy or HDF5 file, got '{file}': {reason}; correct it."
        ) from None
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise UsageError(
            f"{path}.file is expected to hold a two-dimensional array of whole numbers, '{file}' holds "
            f"{array.ndim} dimensions of {array.dtype}."
        )
    return array


def _load_hdf5(file: Path, dataset: str) -> NDArray[Any]:
    with h5py.File(file, "r") as opened:
        found = opened[dataset]
        if not isinstance(found, h5py.Dataset):
            raise KeyError(dataset)
        values: NDArray[Any] = found[...]
        return values

"""From shapes to the map of materials, cell by cell; later shapes cover earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from peergrid.errors import UsageError
from peergrid.models.fdtd.materials import CellMap
from peergrid.models.fdtd.shapes import Region, Shape, Voxels
from peergrid.models.fdtd.voxels import load_voxels


def rasterise(
    extent: tuple[int, int],
    spacing: tuple[float, float],
    background: int,
    shapes: Sequence[Shape],
    index: Mapping[str, int],
) -> CellMap:
    """The material of each cell, shape `extent`.

    background: the index of the material that fills the rest; index: of each material by name.
    Raises UsageError if a shape covers no cell, or a file of voxels is not valid.
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
    """Fill the cells of one shape; returns whether there were any."""
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
    """The cells whose centres may lie between two coordinates, and one more on each side."""
    first = int(np.floor(np.clip(low / step - 1, 0, count)))
    last = int(np.ceil(np.clip(high / step + 1, 0, count)))
    return first, max(first, last)


def _place(cells: CellMap, spacing: tuple[float, float], shape: Voxels, index: Mapping[str, int], path: str) -> None:
    numbers = load_voxels(Path(shape.file), shape.dataset, (cells.shape[0], cells.shape[1]), path)
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

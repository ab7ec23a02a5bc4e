"""Cells from files that `#geometry_objects_write` of gprMax, or another program, has written.

Files of gprMax have, beside the media of cells, those of every component and which of them are fixed: these are used as
they are. Other files have cells alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.files import reason
from peergrid.gprmax.items import Dispersion, IgnoredCommand, Material
from peergrid.gprmax.library import Database
from peergrid.gprmax.media import Media, with_poles
from peergrid.gprmax.objects import Voxels
from peergrid.gprmax.raster import BIT, NOTHING, Ids, Offset, Raster
from peergrid.gprmax.shapes import Frame
from peergrid.gprmax.table import read as read_items
from peergrid.gprmax.text import commands
from peergrid.io.hdf5 import UNREADABLE, own_dataset, reading
from peergrid.io.rule import shown
from peergrid.models.fdtd3d import Medium

FIXED: tuple[tuple[int, Offset], ...] = (
    (0, (0, 0, 0)), (0, (0, 1, 0)), (0, (0, 1, 1)), (0, (0, 0, 1)),
    (1, (0, 0, 0)), (1, (0, 0, 1)), (1, (1, 0, 1)), (1, (1, 0, 0)),
    (2, (0, 0, 0)), (2, (1, 0, 0)), (2, (1, 1, 0)), (2, (0, 1, 0)),
    (3, (0, 0, 0)), (3, (1, 0, 0)), (4, (0, 0, 0)), (4, (0, 1, 0)), (5, (0, 0, 0)), (5, (0, 0, 1)),
)  # fmt: skip
"""The subject of the layers of `/rigidE` and `/rigidH`: the component, and its node's distance from the cell's."""


def insert(frame: Frame, item: Voxels, media: Media, raster: Raster) -> None:
    """Fill the domain with the cells of a file, as far as they lie in it. Raises UsageError, one sentence with the
    line.
    """
    with _opened(item) as file:
        _insert(file, frame, item, media, raster)


def beyond(frame: Frame, item: Voxels) -> tuple[str, ...]:
    """A note if some cells of a file lie beyond the domain. Raises UsageError for a file of another kind."""
    with _opened(item) as file:
        shape = own_dataset(file, "data").shape
    lo = frame.inside(item.command, frame.node(item.at))
    if any(a + n > m for a, n, m in zip(lo, shape, frame.cells, strict=False)):
        return (f"{item.command.where}: cells of '{item.file.name}' beyond the domain are left out.",)
    return ()


@contextmanager
def _opened(item: Voxels) -> Iterator[h5py.File]:
    try:
        with reading(item.file) as file:
            yield file
    except UsageError:
        raise
    except (*UNREADABLE, KeyError) as error:
        cause = reason(error) if isinstance(error, OSError) else f"{error}"
        raise item.command.fault(
            "to name an HDF5 file of cells", f"'{item.file.name}': {cause}", "correct the path or the file"
        ) from None


def _insert(file: h5py.File, frame: Frame, item: Voxels, media: Media, raster: Raster) -> None:
    spacing = np.asarray(file.attrs.get("dx_dy_dz", ()), np.float64)
    if spacing.shape != (3,) or not np.allclose(spacing, frame.spacing, rtol=1e-6, atol=0):
        raise item.command.fault(
            f"to name a file of cells of {frame.spacing} m", f"{spacing.tolist()}", "write one with this spacing"
        )
    cells = own_dataset(file, "data")
    lo = frame.inside(item.command, frame.node(item.at))
    shape = cells.shape
    whole = all(name in file for name in ("ID", "rigidE", "rigidH"))
    if len(shape) != 3 or any(a >= m for a, m in zip(lo, frame.cells, strict=True)):
        raise item.command.fault(
            f"to reach into the domain of {frame.cells} cells", f"{shape} cells from node {lo}", "move it"
        )
    count = tuple(min(n, m - a) for a, n, m in zip(lo, shape, frame.cells, strict=True))
    numbers = _numbers(file, item, media)
    part = tuple(slice(0, n) for n in count)
    solid = _model_numbers(cells[part], numbers)
    used = [int(number) for number in np.unique(solid) if number != NOTHING]
    fillings = media.fillings(used, item.smooth and not whole)
    if not whole:
        raster.fill_each(lo, solid, fillings)
        return
    nodes = own_dataset(file, "ID")
    if nodes.shape != (6, *(n + 1 for n in cells.shape)):
        raise ValueError(f"/ID has shape {nodes.shape}")
    ids = _model_numbers(nodes[(slice(None), *(slice(0, n + 1) for n in count))], numbers)
    bits = np.zeros(count, np.uint32)
    layers = [(name, layer) for name, layers in (("rigidE", 12), ("rigidH", 6)) for layer in range(layers)]
    for (name, layer), key in zip(layers, FIXED, strict=True):
        fixed = own_dataset(file, name)
        if fixed.shape != ((12 if name == "rigidE" else 6), *cells.shape):
            raise ValueError(f"/{name} has shape {fixed.shape}")
        bits |= np.where(fixed[(layer, *part)] != 0, BIT[key], np.uint32(0))
    raster.insert(lo, solid, ids, bits)


def _numbers(file: h5py.File, item: Voxels, media: Media) -> Ids:
    """The model's numbers of a file's media, with NOTHING after the last."""
    if item.materials.suffix == ".json":
        database, keys = Database(item.materials), own_dataset(file, "material_keys")
        if keys.ndim != 1 or keys.shape[0] >= NOTHING or keys.dtype.kind not in "SO":
            raise ValueError("/material_keys are no list of names")
        found = [database.medium(key.decode() if isinstance(key, bytes) else str(key)) for key in keys[:].tolist()]
    else:
        found = listed(item.materials)
    label = item.materials.stem
    return np.array([*(media.known(medium, label) for medium in found), NOTHING], np.uint16)


def listed(file: Path) -> list[Medium]:
    """The media of a list of `#material` lines, in order. Raises UsageError, one sentence with the file and line."""
    made: dict[str, Medium] = {}
    for item in read_items(commands(file), file.parent):
        if isinstance(item, Material):
            made[item.name] = item.medium
        elif isinstance(item, Dispersion):
            for name in item.materials:
                if name not in made:
                    raise item.command.fault("to name a material above", f"'{shown(name)}'", "correct it")
                made[name] = with_poles(item.command, made[name], item.poles)
        elif not isinstance(item, IgnoredCommand):
            raise UsageError(f"'{file.name}' is expected to list materials alone, got other commands; take them out.")
    return list(made.values())


def _model_numbers(found: NDArray[Any], numbers: Ids) -> Ids:
    """Numbers of a file as those of the model; -1 as NOTHING."""
    if found.dtype.kind not in "iu":
        raise ValueError("media are no whole numbers")
    if found.size and (int(found.min()) < -1 or int(found.max()) >= len(numbers) - 1):
        raise ValueError(f"media {found.min()} to {found.max()}, of which {len(numbers) - 1} are named")
    taken: Ids = numbers[found]
    return taken

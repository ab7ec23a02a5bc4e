"""Files of a model's geometry: cells for `#geometry_objects_read`, here and in gprMax 4, and views for ParaView."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.files import replacing
from peergrid.gprmax.assemble import Plan, rasterised
from peergrid.gprmax.items import OWN, Saved, SnapshotFile, View
from peergrid.gprmax.library import SCHEMA, entry
from peergrid.gprmax.raster import BIT, Ids, Raster
from peergrid.gprmax.shapes import Frame
from peergrid.gprmax.text import check_names
from peergrid.gprmax.voxels import FIXED
from peergrid.grid import Dtype, Index
from peergrid.io.hdf5 import creating
from peergrid.io.vtk import add_cells
from peergrid.models.fdtd3d import Medium
from peergrid.models.survey import Wanted

MOST_EDGES = 1 << 28
"""Of a view of edges."""

LINE = 3
"""VTK's number of a cell that is a line."""


def write(plan: Plan, dtype: Dtype, folder: Path, wanted: Wanted = lambda _: True) -> tuple[Path, ...]:
    """Write the wanted geometry files of a model into a folder; the model is rasterised again for them. Returns all,
    also those that are not wanted.
    """
    items = [item for item in plan.items if isinstance(item, View | Saved)]
    writing = [item for item in items if any(wanted(folder / name) for name in item.files)]
    if writing:
        media, raster = rasterised(plan, dtype)
        for item in writing:
            _write(folder, item, plan, raster, media.all)
    return tuple(folder / name for item in items for name in item.files)


def check(plan: Plan) -> None:
    """Raises UsageError, one sentence with the line, for a file that cannot be written, or not beside another."""
    writing = (item for item in plan.items if isinstance(item, View | Saved | SnapshotFile))
    check_names((item.command, name) for item in writing for name in item.files)
    for item in plan.items:
        if isinstance(item, Saved) and item.files[0] in OWN:
            raise item.command.fault("to have another name than results", f"'{item.name}'", "rename it")
        if isinstance(item, View | Saved):
            lo, hi = _region(plan.frame, item)
        if isinstance(item, View):
            strides = plan.frame.stride(item.command, item.step)
            if item.edges:
                _check_edges(item, strides, 3 * prod(b - a + 1 for a, b in zip(lo, hi, strict=True)))


def _check_edges(item: View, strides: Index, count: int) -> None:
    if max(strides) > 1:
        raise item.command.fault("to have samples a cell apart, as edges are", f"{strides}", "correct them, or use n")
    if count > MOST_EDGES:
        raise item.command.fault(f"to have at most {MOST_EDGES:,} edges", f"{count:.3g}", "view a part, or n")


def _region(frame: Frame, item: View | Saved) -> tuple[Index, Index]:
    lo, hi = (frame.inside(item.command, frame.node(p, u)) for p, u in ((item.lo, False), (item.hi, True)))
    if any(b <= a for a, b in zip(lo, hi, strict=True)):
        raise item.command.fault("to go from lower to higher nodes", f"{lo} to {hi}", "correct its corners")
    return lo, hi


def _write(folder: Path, item: View | Saved, plan: Plan, raster: Raster, media: tuple[Medium, ...]) -> None:
    lo, hi = _region(plan.frame, item)
    if isinstance(item, Saved):
        _save(folder, item, plan, raster, media, lo, hi)
        return
    with creating(folder / item.files[0]) as new:
        if item.edges:
            _edges(new.hdf5, plan.frame, raster, media, lo, hi)
        else:
            _image(new.hdf5, plan.frame, raster, media, lo, hi, plan.frame.stride(item.command, item.step))


def _save(
    folder: Path, item: Saved, plan: Plan, raster: Raster, media: tuple[Medium, ...], lo: Index, hi: Index
) -> None:
    """Write cells, components and which of these are fixed, and the database of their media."""
    where = tuple(slice(a, b) for a, b in zip(lo, hi, strict=True))
    nodes = (slice(None), *(slice(a, b + 1) for a, b in zip(lo, hi, strict=True)))
    used = np.union1d(np.unique(raster.solid[where]), np.unique(raster.ids[nodes]))
    keys = _keys(media[number].name for number in used)
    cells, database = (folder / name for name in item.files)
    with creating(cells) as new:
        file, bits = new.hdf5, raster.fixed[where]
        file.attrs["Title"] = str(plan.settings.get("title", ""))
        file.attrs["MaterialDatabase"] = database.stem
        file.attrs["MaterialDatabaseSchemaVersion"] = 1
        file.attrs["dx_dy_dz"] = np.array(plan.frame.spacing)
        file["material_keys"] = np.array([key.encode() for key in keys])
        file["data"] = np.searchsorted(used, raster.solid[where]).astype(np.int16)
        file["ID"] = np.searchsorted(used, raster.ids[nodes]).astype(np.uint32)
        layers = [(bits & BIT[key] != 0).astype(np.int8) for key in FIXED]
        file["rigidE"], file["rigidH"] = np.stack(layers[:12]), np.stack(layers[12:])
    document: Mapping[str, object] = {
        "schema": SCHEMA,
        "schema_version": 1,
        "database": {"id": database.stem, "name": f"Media of {cells.name}", "version": "1"},
        "materials": {key: entry(media[number]) for key, number in zip(keys, used, strict=True)},
    }
    with replacing(database) as partial:
        partial.write_text(json.dumps(document, indent=1) + "\n")


def _keys(names: Iterable[str]) -> list[str]:
    """Keys that gprMax accepts: letters, digits and some marks."""
    plain = ("".join(c if c.isascii() and c.isalnum() else "_" for c in name) for name in names)
    return [f"material_{number:03d}_{name[:60]}" for number, name in enumerate(plain)]


def _image(
    file: h5py.File, frame: Frame, raster: Raster, media: tuple[Medium, ...], lo: Index, hi: Index, strides: Index
) -> None:
    """The media of cells, every so many along each axis, as an image of VTKHDF."""
    cells = raster.solid[tuple(slice(a, b, s) for a, b, s in zip(lo, hi, strides, strict=True))]
    group = add_cells(file, cells.shape, np.array(lo) * frame.spacing, np.array(strides) * frame.spacing)
    _name_media(group, media)
    group["CellData/Material"] = np.ascontiguousarray(cells.T)


def _edges(file: h5py.File, frame: Frame, raster: Raster, media: tuple[Medium, ...], lo: Index, hi: Index) -> None:
    """The media of edges as lines of an unstructured grid of VTKHDF."""
    count = tuple(b - a + 1 for a, b in zip(lo, hi, strict=True))
    axes = [(np.arange(a, b + 1)) * d for a, b, d in zip(lo, hi, frame.spacing, strict=True)]
    number = np.arange(np.prod(count)).reshape(count)
    ends: list[NDArray[np.int64]] = []
    materials: list[Ids] = []
    for axis in range(3):
        first, second = (np.delete(number, gone, axis).ravel() for gone in (-1, 0))
        ends.append(np.stack([first, second], axis=1))
        edges = tuple(slice(a, b + (k != axis)) for k, (a, b) in enumerate(zip(lo, hi, strict=True)))
        materials.append(raster.ids[axis][edges].ravel())
    lines = np.concatenate(ends)
    group = file.create_group("VTKHDF")
    group.attrs["Version"] = (2, 0)
    group.attrs.create("Type", np.bytes_("UnstructuredGrid"))
    _name_media(group, media)
    group["NumberOfPoints"], group["NumberOfCells"] = [number.size], [len(lines)]
    group["NumberOfConnectivityIds"] = [lines.size]
    group["Points"] = np.stack([c.ravel() for c in np.meshgrid(*axes, indexing="ij")], axis=1)
    group["Connectivity"] = lines.ravel()
    group["Offsets"] = 2 * np.arange(len(lines) + 1)
    group["Types"] = np.full(len(lines), LINE, np.uint8)
    group["CellData/Material"] = np.concatenate(materials)


def _name_media(group: h5py.Group, media: tuple[Medium, ...]) -> None:
    """The names of the media by their numbers."""
    names = [medium.name.encode("ascii", "backslashreplace") for medium in media]
    group.create_dataset("FieldData/MaterialNames", data=names, dtype=h5py.string_dtype("ascii"))

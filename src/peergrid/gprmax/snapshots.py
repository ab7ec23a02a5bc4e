"""Snapshots of an input file: the fields of a step in a region, at the centres of its cells, in a file each.

E is that of the step, H that of half a step before; components are interpolated linearly to the centres of cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from peergrid.gprmax.assemble import Plan
from peergrid.gprmax.items import SnapshotFile
from peergrid.gprmax.shapes import nearest
from peergrid.grid import Array, Index
from peergrid.io.hdf5 import creating
from peergrid.io.vtk import add_cells
from peergrid.models.fdtd3d import BuiltDomain


@dataclass(frozen=True)
class Region:
    """A snapshot as placed: the file, the step, the first node, cells and their width in nodes along x, y and z."""

    file: str
    step: int
    lo: Index
    count: Index
    stride: Index


def regions(plan: Plan) -> tuple[Region, ...]:
    """The snapshots that a model requests. Raises UsageError, one sentence with the line, for one that is not valid."""
    return tuple(_placed(plan, item) for item in plan.of(SnapshotFile))


def _placed(plan: Plan, item: SnapshotFile) -> Region:
    frame, flat = plan.frame, plan.frame.flat
    lo, hi = (list(frame.inside(item.command, frame.node(p, u))) for p, u in ((item.lo, False), (item.hi, True)))
    stride = frame.stride(item.command, item.step)
    if flat is not None:
        lo[flat], hi[flat] = 0, 1
    count = tuple(ceil((b - a) / s) for a, b, s in zip(lo, hi, stride, strict=True))
    last = tuple(a + n * s for a, n, s in zip(lo, count, stride, strict=True))
    if min(count) < 1 or any(b > n for b, n in zip(last, frame.cells, strict=True)):
        raise item.command.fault(
            f"to go from lower to higher nodes in whole samples, within {frame.cells}", f"{tuple(lo)} to {last}",
            "correct its corners or its spacing",
        )  # fmt: skip
    step = item.after if item.after is not None else nearest((item.time or 0.0) / plan.dt)
    if not 0 <= step <= plan.steps:
        raise item.command.fault(f"to be of a step from 0 to {plan.steps}", str(step), "take it earlier")
    return Region(item.files[0], step, tuple(lo), count, stride)


def taken(built: BuiltDomain, region: Region, field: Callable[[str], Array]) -> dict[str, Array]:
    """The nodes of a region, of every component, in SI units."""
    own = built.lattice.axes
    where = tuple(slice(region.lo[a], region.lo[a] + region.stride[a] * region.count[a] + 1) for a in own)
    return {name: field(name)[where] * np.dtype(built.domain.dtype).type(unit) for name, unit in built.units.items()}


def write(path: Path, built: BuiltDomain, region: Region, nodes: Mapping[str, Array]) -> None:
    """One file, VTKHDF or plain HDF5 by its name. Raises UsageError if it cannot be written."""
    spacing = np.array(built.domain.spacing)
    origin, width = np.array(region.lo) * spacing, np.array(region.stride) * spacing
    if built.domain.mode.startswith("TE"):  # fields are on the plane between two cells of gprMax
        origin += 0.5 * spacing * (np.arange(3) == built.domain.invariant)
    values = {name: _centred(built, region, name, found) for name, found in nodes.items()}
    with creating(path) as new:
        if path.suffix == ".h5":
            file = new.hdf5
            file.attrs["nx_ny_nz"], file.attrs["dx_dy_dz"], file.attrs["origin"] = region.count, width, origin
            file.attrs["iteration"], file.attrs["time"] = region.step, region.step * built.dt
            file.attrs["magnetic_time"] = (region.step - 0.5) * built.dt
            for name, found in values.items():
                file[name] = found
            return
        group = add_cells(new.hdf5, region.count, origin, width)
        for name, found in values.items():
            group[f"CellData/{name}"] = np.ascontiguousarray(found.T)


def _centred(built: BuiltDomain, region: Region, component: str, nodes: Array) -> Array:
    """Values at the centres of cells, shape (x, y, z), from those of the region's nodes."""
    values = nodes
    for place, axis in enumerate(built.lattice.axes):
        half = (component[0] == "E") == ("xyz"[axis] == component[1])
        first, between = divmod(region.stride[axis] - half, 2)  # in half nodes from the region's first one
        end, stride = region.stride[axis] * region.count[axis], region.stride[axis]
        ends = [_along(values, place, slice(first + k, end + k, stride)) for k in range(1 + between)]
        values = ends[0] if not between else (ends[0] + ends[1]) * values.dtype.type(0.5)
    flat = built.domain.invariant
    return values if flat is None else np.expand_dims(values, flat)


def _along(values: Array, axis: int, where: slice) -> Array:
    found: Array = values[tuple(where if k == axis else slice(None) for k in range(values.ndim))]
    return found

"""Sources as pointwise updates: line currents, and plane waves made by a pair of current sheets.

Each source is one number per time step, computed beforehand in double precision; a step adds it to the cells it drives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Box, Index
from peergrid.models.fdtd.assembly import Fields, Frame
from peergrid.models.fdtd.coefficients import lossy_update
from peergrid.models.fdtd.constants import ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import CONDUCTOR, Doubles, Geometry, Material
from peergrid.models.fdtd.model import LineSource, PlaneWave, Source
from peergrid.stencil import Stage, Update, stencil


@stencil
def add(u: Any, s: Any) -> None:
    """Add the signal's sample to every cell."""
    u.next[0, 0] = u[0, 0] + s.now


@dataclass(frozen=True)
class Drive:
    """The values that one source adds to a field in a box, step by step."""

    box: Box
    samples: Doubles


@dataclass(frozen=True)
class Drives:
    """The drives of Hx, Hy (after the H stage) and Ez (after the Ez stage)."""

    hx: tuple[Drive, ...] = ()
    hy: tuple[Drive, ...] = ()
    ez: tuple[Drive, ...] = ()


def drives(frame: Frame, sources: Sequence[Source], nodes: Sequence[Index], steps: int) -> Drives:
    """The drives of all sources; nodes: the node of each line source, the sheet's node for a plane wave."""
    found = Drives()
    for number, (source, node) in enumerate(zip(sources, nodes, strict=True), start=1):
        if isinstance(source, LineSource):
            more = Drives(ez=(_line(frame, source, node, steps, f"source[{number}]"),))
        else:
            more = _plane(frame, source, node, steps, f"source[{number}]")
        found = Drives(found.hx + more.hx, found.hy + more.hy, found.ez + more.ez)
    return found


def stages(fields: Fields, found: Drives) -> tuple[list[Stage], list[Stage]]:
    """The stages that follow the H stage and the Ez stage; empty without sources."""
    magnetic = [*_updates(fields.hx, found.hx, "Hx"), *_updates(fields.hy, found.hy, "Hy")]
    electric = _updates(fields.ez, found.ez, "Ez")
    return _staged(magnetic), _staged(electric)


def _updates(field: Any, found: Iterable[Drive], name: str) -> list[Update]:
    return [
        add(field, field.grid.signal(f"source.{name}.{number}", drive.samples)).within(drive.box)
        for number, drive in enumerate(_merged(found), start=1)
    ]


def _merged(found: Iterable[Drive]) -> list[Drive]:
    """Drives of the same box added up."""
    sums: dict[Box, Doubles] = {}
    for drive in found:
        sums[drive.box] = sums[drive.box] + drive.samples if drive.box in sums else drive.samples
    return [Drive(box, samples) for box, samples in sums.items()]


def _staged(updates: Sequence[Update]) -> list[Stage]:
    """The fewest stages whose updates are disjoint: almost always one."""
    groups: list[list[Update]] = []
    for update in updates:
        disjoint = (g for g in groups if not any(_clash(update, other) for other in g))
        group = next(disjoint, None)
        if group is None:
            groups.append([update])
        else:
            group.append(update)
    return [Stage(tuple(group)) for group in groups]


def _clash(one: Update, two: Update) -> bool:
    return bool(set(one.targets) & set(two.targets)) and one.box.overlaps(two.box)


def _line(frame: Frame, source: LineSource, node: Index, steps: int, path: str) -> Drive:
    """Ez falls by cb η₀ / dy for each ampere: the current spread over one cell, taken half way between two steps."""
    gain = _gain(frame, around(frame.geometry, node), f"{path}.position")
    current = source.waveform.sample((np.arange(steps, dtype=np.float64) + 0.5) * frame.dt)
    return Drive(Box.cell(node), -ETA_0 / frame.geometry.spacing[1] * gain * current)


def _gain(frame: Frame, media: Sequence[Material], path: str) -> float:
    """cb at a node, from the materials of the cells around it."""
    if CONDUCTOR in media:
        raise UsageError(
            f"{path} is expected to lie outside perfect conductors, where no field can be; move the source."
        )
    permittivity = fsum(m.permittivity for m in media) / len(media)
    conductivity = fsum(m.conductivity for m in media) / len(media)
    courant = SPEED_OF_LIGHT * frame.dt / frame.geometry.spacing[0]
    _, gain = lossy_update(np.asarray(permittivity), np.asarray(conductivity), courant, frame.dt)
    return float(gain)


def around(geometry: Geometry, node: Index) -> list[Material]:
    """The materials of the four cells that share a node."""
    nx, ny = geometry.cells.shape
    return [
        geometry.materials[geometry.cells[i % nx, j % ny]]
        for i, j in ((node[0] - a, node[1] - b) for a in (0, 1) for b in (0, 1))
    ]


def _plane(frame: Frame, source: PlaneWave, node: Index, steps: int, path: str) -> Drives:
    """Total field ahead of the sheet, scattered field behind it (Taflove and Hagness, section 5.6); no back side.

    The electric sheet adds what the magnetic field half a cell behind it lacks, the magnetic sheet removes the excess
    of the electric field on it; both follow from the same wave on a line, so that nothing leaks backwards.
    """
    axis, ahead = "xy".index(source.direction[1]), source.direction[0] == "+"
    medium = _uniform(frame.geometry, axis, node[axis], path)
    courant = SPEED_OF_LIGHT * frame.dt / frame.geometry.spacing[0]
    squeeze = (frame.geometry.spacing[0] / frame.geometry.spacing[axis]) ** 2
    gain, factor = courant / medium.permittivity, courant * squeeze / medium.permeability
    early = frame.geometry.spacing[axis] * medium.slowness / SPEED_OF_LIGHT  # the line begins a cell before the sheet
    electric, magnetic = incident(
        source.waveform.sample(np.arange(steps + 1, dtype=np.float64) * frame.dt + early), gain, factor
    )
    behind = node[axis] - (1 if ahead else 0)
    low, high = _clear(frame, 1 - axis)
    sheet = frame.grid.box.with_axis(1 - axis, low, high)
    sign = (-1.0 if ahead else 1.0) * (1.0 if axis == 0 else -1.0)
    h = Drive(sheet.with_axis(axis, behind, behind + 1), sign * factor * electric)
    e = Drive(sheet.with_axis(axis, node[axis], node[axis] + 1), -gain * magnetic)
    return Drives(hy=(h,), ez=(e,)) if axis == 0 else Drives(hx=(h,), ez=(e,))


def incident(samples: Doubles, gain: float, factor: float) -> tuple[Doubles, Doubles]:
    """A wave on a line by Yee's scheme: E at node 1 at whole steps, H between nodes 0 and 1 at half steps.

    samples: E at node 0 at steps 0, 1, ...; the line is long enough that no echo of its far end arrives.
    Returns two arrays one shorter than `samples`: entry n is E at step n and H at step n + 1/2.
    """
    steps = len(samples) - 1
    e, h = np.zeros(steps // 2 + 3), np.zeros(steps // 2 + 2)
    electric, magnetic = np.empty(steps), np.empty(steps)
    e[0] = samples[0]
    for n in range(steps):
        electric[n] = e[1]
        h += factor * (e[1:] - e[:-1])
        magnetic[n] = h[0]
        e[1:-1] += gain * (h[1:] - h[:-1])
        e[0] = samples[n + 1]
    return electric, magnetic


def _uniform(geometry: Geometry, axis: int, node: int, path: str) -> Material:
    """The one material without losses around a sheet."""
    along = np.moveaxis(geometry.cells, axis, 0)
    found: list[Material] = [
        geometry.materials[k] for k in np.unique(along[[(node - 1) % len(along), node % len(along)]])
    ]
    if len(found) > 1 or found[0].conductivity > 0 or found[0] == CONDUCTOR:
        raise UsageError(
            f"{path}.position is expected to lie where one material without losses fills the whole width of the grid, "
            f"got {' and '.join(repr(m.name) for m in found)}; move the plane wave, or use a line source."
        )
    return found[0]


def _clear(frame: Frame, axis: int) -> tuple[int, int]:
    """The nodes of an axis that are neither wall nor absorber."""
    extent = frame.grid.shape[axis]
    if frame.geometry.periodic[axis]:
        return 0, extent
    low, high = frame.layers[axis].cells
    return max(low, 1), extent - max(high, 1)

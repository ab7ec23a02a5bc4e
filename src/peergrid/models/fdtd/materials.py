"""Materials, and the coefficients of Yee's scheme that follow from where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Field, Grid
from peergrid.models.fdtd.constants import EPSILON_0, SPEED_OF_LIGHT
from peergrid.models.rule import AtLeastOne, Name, NotNegative

Doubles = NDArray[np.float64]
CellMap = NDArray[np.uint16]
Coefficient = Field | float


@dataclass(frozen=True)
class Material:
    """A medium without dispersion: relative permittivity, conductivity in S/m, relative permeability."""

    name: Name
    permittivity: AtLeastOne = 1.0
    conductivity: NotNegative = 0.0
    permeability: AtLeastOne = 1.0

    @property
    def slowness(self) -> float:
        """The speed of light in vacuum over the speed in this medium, losses left out."""
        return float(np.sqrt(self.permittivity * self.permeability))


VACUUM = Material("vacuum")
CONDUCTOR = Material("conductor")
"""The perfect conductor: the electric field in it stays zero."""
BUILT_IN = (VACUUM, CONDUCTOR)


@dataclass(frozen=True)
class Geometry:
    """Which material fills which cell.

    cells: index into `materials`, shape (nx, ny), entry [i, j] covers [i, i+1) dx by [j, j+1) dy;
    spacing: (dx, dy) in metres; periodic: whether each axis closes on itself.
    """

    cells: CellMap
    materials: tuple[Material, ...]
    spacing: tuple[float, float]
    periodic: tuple[bool, bool] = (False, False)

    @property
    def nodes(self) -> tuple[int, int]:
        """How many nodes carry Ez along each axis: one more than cells, or as many where the axis is periodic."""
        nx, ny = (n if wraps else n + 1 for n, wraps in zip(self.cells.shape, self.periodic, strict=True))
        return nx, ny

    def used(self) -> tuple[Material, ...]:
        """The materials that fill at least one cell, in the order of their indices."""
        counts = np.bincount(self.cells.ravel(), minlength=len(self.materials))
        return tuple(m for m, count in zip(self.materials, counts, strict=True) if count)


@dataclass(frozen=True)
class Coefficients:
    """Yee's scheme as numbers, or as fields where the geometry asks for it (see `yee`).

    ca, cb: Ez ← ca Ez + cb curl; ch_x, ch_y: the factors of Hx and Hy; lossy: whether ca differs from 1 anywhere.
    """

    ca: Coefficient
    cb: Coefficient
    ch_x: Coefficient
    ch_y: Coefficient
    lossy: bool


def time_step(materials: Sequence[Material], spacing: tuple[float, float], courant: float) -> float:
    """The time step in seconds: `courant` times the limit of stability in the fastest mixture of the materials.

    dt = courant / (c sqrt(1/dx² + 1/dy²)), c from the smallest permittivity and the smallest permeability present
    (Taflove and Hagness, Computational Electrodynamics, section 4.7): averages over cells never fall below those.
    """
    media = [m for m in materials if m != CONDUCTOR] or [VACUUM]
    slowness = np.sqrt(min(m.permittivity for m in media) * min(m.permeability for m in media))
    dx, dy = spacing
    return float(courant * slowness / (SPEED_OF_LIGHT * np.sqrt(1 / dx**2 + 1 / dy**2)))


def coefficients(grid: Grid, geometry: Geometry, dt: float) -> Coefficients:
    """The coefficients of every node. Only what varies becomes a field, so that the rest costs no memory traffic.

    At a node, permittivity and conductivity are the means of the four cells around it (Ez lies along all their
    interfaces); on the edges between two cells the inverse permeability is the mean of both (H crosses there).
    A node that touches a perfect conductor has cb = 0.
    """
    media = [m for m in geometry.used() if m != CONDUCTOR] or [VACUUM]
    ratio = geometry.spacing[0] / geometry.spacing[1]
    courant = SPEED_OF_LIGHT * dt / geometry.spacing[0]
    lossy = any(m.conductivity > 0 for m in media)
    ca, cb = _electric(grid, geometry, media, courant, dt)
    if len({m.permeability for m in media}) == 1:
        ch_x: Coefficient = courant * ratio**2 / media[0].permeability
        ch_y: Coefficient = courant / media[0].permeability
    else:
        inverse = _padded(geometry, [1.0 / m.permeability for m in geometry.materials])
        ch_x = grid.field("ch_x", _trim(grid, courant * ratio**2 * 0.5 * (inverse[:-1, 1:] + inverse[1:, 1:])))
        ch_y = grid.field("ch_y", _trim(grid, courant * 0.5 * (inverse[1:, :-1] + inverse[1:, 1:])))
    return Coefficients(ca, cb, ch_x, ch_y, lossy)


def lossy_update(permittivity: Doubles, conductivity: Doubles, courant: float, dt: float) -> tuple[Doubles, Doubles]:
    """ca and cb of Ampere's law with the conduction current taken half way between two steps."""
    loss = conductivity * dt / (2 * EPSILON_0 * permittivity)
    return (1 - loss) / (1 + loss), courant / (permittivity * (1 + loss))


def _electric(
    grid: Grid, geometry: Geometry, media: list[Material], courant: float, dt: float
) -> tuple[Coefficient, Coefficient]:
    conducting = CONDUCTOR in geometry.used()
    if len({(m.permittivity, m.conductivity) for m in media}) == 1 and not conducting:
        ca, cb = lossy_update(np.asarray(media[0].permittivity), np.asarray(media[0].conductivity), courant, dt)
        return float(ca), float(cb)
    decay, gain = lossy_update(
        _node_mean(geometry, [m.permittivity for m in geometry.materials]),
        _node_mean(geometry, [m.conductivity for m in geometry.materials]),
        courant,
        dt,
    )
    if conducting:
        gain[_node_mean(geometry, [float(m == CONDUCTOR) for m in geometry.materials]) > 0] = 0.0
    lossless = all(m.conductivity == 0 for m in media)
    return 1.0 if lossless else grid.field("ca", decay), grid.field("cb", gain)


def _padded(geometry: Geometry, table: Sequence[float]) -> Doubles:
    """A property of the cells with one more cell around: the neighbour across a periodic edge, else a copy."""
    values: Doubles = np.asarray(table, dtype=np.float64)[geometry.cells]
    for axis, wraps in enumerate(geometry.periodic):
        width = [(0, 0), (0, 0)]
        width[axis] = (1, 1)
        values = np.pad(values, width, mode="wrap" if wraps else "edge")
    return values


def _node_mean(geometry: Geometry, table: Sequence[float]) -> Doubles:
    """The mean over the four cells around each node; the sum by diagonals keeps mirror images equal to the bit."""
    cells = _padded(geometry, table)
    mean: Doubles = 0.25 * ((cells[:-1, :-1] + cells[1:, 1:]) + (cells[:-1, 1:] + cells[1:, :-1]))
    return mean[: geometry.nodes[0], : geometry.nodes[1]]


def _trim(grid: Grid, values: Doubles) -> Doubles:
    return values[: grid.shape[0], : grid.shape[1]]

"""The coefficients of Yee's scheme that follow from where materials are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from peergrid.grid import Field, Grid
from peergrid.models.fdtd.constants import EPSILON_0, SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import CONDUCTOR, VACUUM, CellMap, Doubles, Geometry, Material

Coefficient = Field | float
ROWS = 64  # of nodes at once, so that intermediate results stay in the cache


@dataclass(frozen=True)
class Coefficients:
    """The coefficients of Yee's scheme as numbers, or as fields if they vary (see `yee`).

    ca, cb: Ez ← ca Ez + cb curl; ch_x, ch_y: the factors of Hx and Hy; lossy: whether ca differs from 1 anywhere.
    """

    ca: Coefficient
    cb: Coefficient
    ch_x: Coefficient
    ch_y: Coefficient
    lossy: bool


def coefficients(grid: Grid, geometry: Geometry, dt: float) -> Coefficients:
    """The coefficients of every node. Only coefficients that vary become fields, so that the others cost no memory
    traffic.

    At a node, permittivity and conductivity are the means of the four cells around it (Ez lies along all their
    interfaces); on the edges between two cells the inverse permeability is the mean of both (H crosses there).
    A node that touches a perfect conductor has cb = 0.
    """
    media = [m for m in geometry.used if m != CONDUCTOR] or [VACUUM]
    ratio = geometry.spacing[0] / geometry.spacing[1]
    courant = SPEED_OF_LIGHT * dt / geometry.spacing[0]
    ca, cb = _electric(grid, geometry, media, courant, dt)
    ch_x, ch_y = _magnetic(grid, geometry, media, courant * ratio**2, courant)
    return Coefficients(ca, cb, ch_x, ch_y, lossy=any(m.conductivity > 0 for m in media))


def lossy_update(permittivity: Doubles, conductivity: Doubles, courant: float, dt: float) -> tuple[Doubles, Doubles]:
    """ca and cb of Ampere's law with the conduction current taken half way between two steps."""
    loss = conductivity * dt / (2 * EPSILON_0 * permittivity)
    return (1 - loss) / (1 + loss), courant / (permittivity * (1 + loss))


def _electric(
    grid: Grid, geometry: Geometry, media: list[Material], courant: float, dt: float
) -> tuple[Coefficient, Coefficient]:
    conducting = CONDUCTOR in geometry.used
    if len({(m.permittivity, m.conductivity) for m in media}) == 1 and not conducting:
        ca, cb = lossy_update(np.asarray(media[0].permittivity), np.asarray(media[0].conductivity), courant, dt)
        return float(ca), float(cb)
    permittivity = _table(geometry, lambda m: m.permittivity)
    conductivity = _table(geometry, lambda m: m.conductivity)
    conductor = _table(geometry, lambda m: float(m == CONDUCTOR))

    def at_nodes(cells: CellMap) -> tuple[Doubles, Doubles]:
        decay, gain = lossy_update(_mean(permittivity[cells]), _mean(conductivity[cells]), courant, dt)
        if conducting:
            gain[_mean(conductor[cells]) > 0] = 0.0
        return gain, decay

    lossless = all(m.conductivity == 0 for m in media)
    cb_field, *ca_field = _by_rows(grid, geometry, ("cb",) if lossless else ("cb", "ca"), at_nodes)
    return 1.0 if lossless else ca_field[0], cb_field


def _magnetic(
    grid: Grid, geometry: Geometry, media: list[Material], factor_x: float, factor_y: float
) -> tuple[Coefficient, Coefficient]:
    if len({m.permeability for m in media}) == 1:
        return factor_x / media[0].permeability, factor_y / media[0].permeability
    table = _table(geometry, lambda m: 1.0 / m.permeability)

    def at_edges(cells: CellMap) -> tuple[Doubles, Doubles]:
        inverse = table[cells]
        along_x = factor_x * 0.5 * (inverse[:-1, 1:] + inverse[1:, 1:])
        return along_x, factor_y * 0.5 * (inverse[1:, :-1] + inverse[1:, 1:])

    ch_x, ch_y = _by_rows(grid, geometry, ("ch_x", "ch_y"), at_edges)
    return ch_x, ch_y


def _table(geometry: Geometry, value: Callable[[Material], float]) -> Doubles:
    return np.asarray([value(m) for m in geometry.materials], dtype=np.float64)


def _mean(cells: Doubles) -> Doubles:
    """The mean over the four cells around each node; the sum by diagonals keeps mirror images equal to the bit."""
    mean: Doubles = 0.25 * ((cells[:-1, :-1] + cells[1:, 1:]) + (cells[:-1, 1:] + cells[1:, :-1]))
    return mean


def _by_rows(
    grid: Grid, geometry: Geometry, names: Sequence[str], formula: Callable[[CellMap], tuple[Doubles, Doubles]]
) -> list[Field]:
    """Fields whose rows follow from the cells on both sides of them: some rows at a time, on all cores.

    formula: takes the cells around r rows of nodes, shape (r + 1, columns + 1), and gives the values of up to two
    fields, each of shape (r, columns).
    """
    around = _padded(geometry)[:, : grid.shape[1] + 1]
    found = [np.empty(grid.shape, grid.dtype) for _ in names]

    def fill(first: int) -> None:
        rows = slice(first, min(first + ROWS, grid.shape[0]))
        for values, computed in zip(found, formula(around[rows.start : rows.stop + 1]), strict=False):
            values[rows] = computed

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, grid.shape[0], ROWS)))
    for values in found:
        values.flags.writeable = False  # a field keeps such an array without a copy
    return [grid.field(name, values) for name, values in zip(names, found, strict=True)]


def _padded(geometry: Geometry) -> CellMap:
    """The cells with one more around: the neighbour across a periodic edge, else a copy."""
    cells = geometry.cells
    for axis, wraps in enumerate(geometry.periodic):
        width = [(0, 0), (0, 0)]
        width[axis] = (1, 1)
        cells = np.pad(cells, width, mode="wrap" if wraps else "edge")
    return cells

"""Materials, their map, and the largest stable time step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from peergrid.io.rule import AtLeastOne, Name, NotNegative
from peergrid.models.fdtd.constants import SPEED_OF_LIGHT

Doubles = NDArray[np.float64]
CellMap = NDArray[np.uint16]


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
    """The material of each cell.

    cells: index into `materials`, shape (nx, ny), entry [i, j] covers [i, i+1) dx by [j, j+1) dy;
    spacing: (dx, dy) in metres; periodic: whether each axis is periodic.
    """

    cells: CellMap
    materials: tuple[Material, ...]
    spacing: tuple[float, float]
    periodic: tuple[bool, bool] = (False, False)

    @property
    def nodes(self) -> tuple[int, int]:
        """Nodes that carry Ez, along each axis: one more than cells, or as many where the axis is periodic."""
        nx, ny = (n if wraps else n + 1 for n, wraps in zip(self.cells.shape, self.periodic, strict=True))
        return nx, ny

    @cached_property
    def used(self) -> tuple[Material, ...]:
        """The materials that fill at least one cell, in the order of their indices."""
        counts = np.bincount(self.cells.ravel(), minlength=len(self.materials))
        return tuple(m for m, count in zip(self.materials, counts, strict=True) if count)


def time_step(materials: Sequence[Material], spacing: tuple[float, float], courant: float) -> float:
    """The time step in seconds: `courant` times the limit of stability in the fastest mixture of the materials.

    dt = courant / (c sqrt(1/dx² + 1/dy²)), c from the smallest permittivity and the smallest permeability present
    (Taflove and Hagness, Computational Electrodynamics, section 4.7): averages over cells never fall below those.
    """
    media = [m for m in materials if m != CONDUCTOR] or [VACUUM]
    slowness = np.sqrt(min(m.permittivity for m in media) * min(m.permeability for m in media))
    dx, dy = spacing
    return float(courant * slowness / (SPEED_OF_LIGHT * np.sqrt(1 / dx**2 + 1 / dy**2)))

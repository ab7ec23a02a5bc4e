"""Directions of plane waves as whole numbers, and the directions of their electric fields.

Waves go along (m_x / dx, m_y / dy, m_z / dz). For given angles, the smallest whole numbers with a direction close to
them are searched.
"""

from __future__ import annotations

from math import acos, atan2, cos, degrees, hypot, radians, sin

import numpy as np

from peergrid.gprmax.objects import Vector
from peergrid.grid import Index
from peergrid.models.fdtd3d.incident import way

NEAR = 0.05  # degrees
MOST = 1000  # of a whole number
SMALL = 1e-12


def whole(direction: Index | Vector, spacing: Vector) -> Index:
    """The whole numbers of a direction; for a unit vector the smallest ones within 0.05 degrees, zeros if there are
    none.
    """
    if all(isinstance(m, int) for m in direction):
        return tuple(map(int, direction))
    along = np.multiply(direction, spacing)
    for most in range(1, MOST + 1):
        found = tuple(int(m) for m in np.rint(most * along / np.abs(along).max()))
        if _angle(found, direction, spacing) <= NEAR:
            return found
    return (0, 0, 0)


def _angle(found: Index, direction: Index | Vector, spacing: Vector) -> float:
    """The angle between whole numbers and a direction, degrees."""
    return degrees(acos(min(1.0, max(-1.0, float(np.dot(way(found, spacing), direction))))))


def polarisation(direction: Index, angle: float, spacing: Vector) -> Vector:
    """The unit vector of the electric field: along -phi where the angle is 0, along -theta at 90 degrees."""
    psi = radians(angle)
    x, y, z = way(direction, spacing)
    theta, phi = atan2(hypot(x, y), z), atan2(y, x)
    found = (
        cos(psi) * sin(phi) - sin(psi) * cos(theta) * cos(phi),
        -cos(psi) * cos(phi) - sin(psi) * cos(theta) * sin(phi),
        sin(psi) * sin(theta),
    )
    a, b, c = (value if abs(value) > SMALL else 0.0 for value in found)
    return a, b, c

"""Plane waves by a direction of whole numbers, by angles, or along an axis onto layers.

Angles are those of gprMax: theta from z, phi from x in the plane of x and y, psi of the electric field, which points
along -phi at 0 and along -theta at 90 degrees.
"""

from __future__ import annotations

from math import cos, radians, sin
from pathlib import Path

from peergrid.gprmax.arguments import counted, number, one_of, point, times, whole
from peergrid.gprmax.directions import MOST, SMALL
from peergrid.gprmax.items import Incoming, Item
from peergrid.gprmax.objects import Vector
from peergrid.gprmax.text import Command
from peergrid.grid import Index
from peergrid.models.fdtd3d import AXES, VACUUM


def by_vector(command: Command, folder: Path) -> Item:
    """Corners, a direction of three whole numbers, psi, a waveform; a medium, start and stop."""
    counted(command, 11, 12, 14)
    direction = tuple(whole(command, place, -MOST, MOST) for place in (6, 7, 8))
    if not any(direction):
        raise command.fault("to have a direction", "0 0 0", "name one, such as 1 2 0")
    return _incoming(command, direction, _angle(command, 9), 10)


def by_angles(command: Command, folder: Path) -> Item:
    """The same with theta and phi, degrees, for the direction."""
    counted(command, 10, 11, 13)
    return _incoming(command, _towards(command, 6, 7), _angle(command, 8), 9)


def discrete(command: Command, folder: Path) -> Item:
    """As development versions had it: corners, psi, phi, theta, a waveform."""
    counted(command, 10)
    return _incoming(command, _towards(command, 8, 7), _angle(command, 6), 9)


def axial(command: Command, folder: Path) -> Item:
    """Corners, psi, the axis along which it meets layers, a waveform; start and stop."""
    words = counted(command, 9, 11)
    axis = one_of(command, 7, AXES)
    direction = tuple(int(one == axis) for one in AXES)
    corners = point(command, 0), point(command, 3)
    return Incoming(command, *corners, direction, _angle(command, 6), words[8], None, *times(command, 9))


def _towards(command: Command, theta_at: int, phi_at: int) -> Vector:
    """The unit vector of two angles, which are words at these places."""
    theta = radians(number(command, theta_at, lambda v: 0 <= v <= 180, "an angle from 0 to 180 degrees"))
    phi = radians(_angle(command, phi_at))
    x, y, z = (
        value if abs(value) > SMALL else 0.0 for value in (sin(theta) * cos(phi), sin(theta) * sin(phi), cos(theta))
    )
    return x, y, z


def _angle(command: Command, place: int) -> float:
    return number(command, place, lambda v: 0 <= v <= 360, "an angle from 0 to 360 degrees")


def _incoming(command: Command, direction: Index | Vector, polarisation: float, place: int) -> Incoming:
    """place: of the word for the waveform."""
    words, corners = command.words, (point(command, 0), point(command, 3))
    medium = words[place + 1] if len(words) > place + 1 else VACUUM.name
    return Incoming(command, *corners, direction, polarisation, words[place], medium, *times(command, place + 2))

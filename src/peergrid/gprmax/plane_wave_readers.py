"""Plane waves by a direction of whole numbers or by angles: along an axis they are carried out.

Angles are those of gprMax: theta from z, phi from x in the plane of x and y, psi of the electric field, which points
along -phi at 0 and along -theta at 90 degrees.
"""

from __future__ import annotations

from math import atan2, cos, hypot, inf, radians, sin
from pathlib import Path

from peergrid.gprmax.arguments import counted, not_negative, number, point, whole
from peergrid.gprmax.items import Incoming, Item
from peergrid.gprmax.objects import Vector
from peergrid.gprmax.text import Command
from peergrid.models.fdtd3d import VACUUM

DIGITS = 12  # of directions: what is less is rounding


def by_vector(command: Command, folder: Path) -> Item:
    """Corners, a direction of three whole numbers, psi, a waveform; a medium, start and stop."""
    counted(command, 11, 12, 14)
    x, y, z = (whole(command, place, -1000, 1000) for place in (6, 7, 8))
    if not (x or y or z):
        raise command.fault("to have a direction", "0 0 0", "name one along an axis")
    return _incoming(command, atan2(hypot(x, y), z), atan2(y, x), 9)


def by_angles(command: Command, folder: Path) -> Item:
    """The same with theta and phi, degrees, for the direction."""
    counted(command, 10, 11, 13)
    theta = number(command, 6, lambda v: 0 <= v <= 180, "an angle from 0 to 180 degrees")
    phi = number(command, 7, lambda v: 0 <= v <= 360, "an angle from 0 to 360 degrees")
    return _incoming(command, radians(theta), radians(phi), 8)


def _incoming(command: Command, theta: float, phi: float, place: int) -> Incoming:
    """place: of the word for psi."""
    psi = radians(number(command, place, lambda v: 0 <= v <= 360, "an angle from 0 to 360 degrees"))
    direction = _rounded((sin(theta) * cos(phi), sin(theta) * sin(phi), cos(theta)))
    if sum(map(bool, direction)) != 1:
        raise command.fault("to be a wave along an axis", f"direction {direction}", "rotate the model")
    polarisation = _rounded(
        (
            cos(psi) * sin(phi) - sin(psi) * cos(theta) * cos(phi),
            -cos(psi) * cos(phi) - sin(psi) * cos(theta) * sin(phi),
            sin(psi) * sin(theta),
        )
    )
    words, corners = command.words, (point(command, 0), point(command, 3))
    medium = words[place + 2] if len(words) > place + 2 else VACUUM.name
    start = not_negative(command, place + 3) if len(words) > place + 3 else 0.0
    stop = inf
    if len(words) > place + 4:
        stop = number(command, place + 4, lambda v: v > start, "a stop time after the start")
    return Incoming(command, *corners, direction, polarisation, words[place + 1], medium, start, stop)


def _rounded(values: Vector) -> Vector:
    x, y, z = (round(value, DIGITS) + 0.0 for value in values)
    return x, y, z

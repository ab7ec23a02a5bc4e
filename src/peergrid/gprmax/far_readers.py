"""Commands of far fields: the box of a surface, its frequencies, the directions."""

from __future__ import annotations

from math import floor
from pathlib import Path

from peergrid.gprmax.arguments import at_least, number, one_of, point, positive
from peergrid.gprmax.items import Faces, FarDirections, Item, Spectrum
from peergrid.gprmax.text import Command

MOST = 1 << 16  # directions of a pattern
SLACK = 1e-9  # of a step of angles
OUTPUTS = (
    "Ex", "Ey", "Ez", "Hx", "Hy", "Hz", "Er", "Etheta", "Ephi", "Hr", "Htheta", "Hphi", "radiation_intensity", "rcs",
    "directivity", "directivity_dbi", "gain", "gain_dbi", "realized_gain", "realized_gain_dbi", "radiation_efficiency",
    "total_efficiency", "exterior_power", "exterior_efficiency", "exterior_maximum",
)  # fmt: skip


def surface(command: Command, folder: Path) -> Item:
    """Corners and a name. Raises UsageError if faces are left out."""
    words = at_least(command, 7)
    if len(words) > 7:
        raise command.fault("to have all six faces", f"all but {', '.join(words[7:])}", "close it around what radiates")
    return Faces(command, point(command, 0), point(command, 3), words[6])


def spectrum(command: Command, folder: Path) -> Item:
    """A surface, a name, frequencies in Hz, and `rectangular`."""
    words = at_least(command, 3)
    last = len(words) - (words[-1].lower() == "rectangular")
    if words[-1].lower() == "hann":
        raise command.fault("to have a rectangular window", "'hann'", "let the fields die away in the run")
    if last < 3:
        raise command.fault("to have a frequency", "none", "name one")
    return Spectrum(command, words[0], words[1], tuple(positive(command, place) for place in range(2, last)))


def direction(command: Command, folder: Path) -> Item:
    """Theta and phi in degrees, a spectrum, a name, outputs."""
    words = at_least(command, 3)
    return FarDirections(command, (_theta(command, 0),), (_phi(command, 1),), words[2], *_named(command, 3))


def directions(command: Command, folder: Path) -> Item:
    """First, last and step of theta, of phi, a spectrum, a name, outputs."""
    words = at_least(command, 7)
    theta = _angles(command, _theta(command, 0), _theta(command, 1), 2)
    phi = _angles(command, _phi(command, 3), _phi(command, 4), 5)
    if len(theta) * len(phi) > MOST:
        raise command.fault(f"to have at most {MOST} directions", str(len(theta) * len(phi)), "step further")
    return FarDirections(command, theta, phi, words[6], *_named(command, 7))


def _theta(command: Command, place: int) -> float:
    return number(command, place, lambda v: 0 <= v <= 180, "an angle from 0 to 180 degrees")


def _phi(command: Command, place: int) -> float:
    return number(command, place, lambda v: -360 <= v <= 360, "an angle from -360 to 360 degrees")


def _angles(command: Command, first: float, last: float, place: int) -> tuple[float, ...]:
    step = number(command, place, lambda v: 1e-3 <= v <= 360, "a step from 0.001 to 360 degrees")
    if last < first:
        raise command.fault("to go from lower to higher angles", f"{first:g} to {last:g}", "swap them")
    return tuple(first + step * k for k in range(1 + floor((last - first) / step + SLACK)))


def _named(command: Command, place: int) -> tuple[str, tuple[str, ...]]:
    words = command.words
    outputs = tuple(one_of(command, k, OUTPUTS, fold=False) for k in range(place + 1, len(words)))
    return (words[place] if len(words) > place else ""), outputs

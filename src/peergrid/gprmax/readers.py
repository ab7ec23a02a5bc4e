"""From the words of a command to data: a function for each supported command."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf
from pathlib import Path
from typing import get_args

from peergrid.gprmax.arguments import (
    at_least,
    counted,
    fill,
    not_negative,
    number,
    one_of,
    point,
    positive,
    times,
    vector,
    whole,
)
from peergrid.gprmax.items import (
    Debye,
    Dispersion,
    Drude,
    Item,
    Lorentz,
    Material,
    PoleSpec,
    ReceiverNode,
    ReceiverRows,
    SampledWaves,
    Setting,
    Source,
    SourceKind,
    Stretching,
    Study,
    Wall,
    Wave,
)
from peergrid.gprmax.objects import Box, Cone, Cylinder, Edge, Ellipsoid, Plate, Sector, Sphere, Triangle, Wire
from peergrid.gprmax.text import Command, beside
from peergrid.gprmax.waves import FORMS, Formula
from peergrid.models.fdtd3d import AXES, COMPONENTS, SIDES, Grading, Stretch
from peergrid.models.fdtd3d.constants import ETA_0
from peergrid.models.fdtd3d.domain import Component, Current

Reader = Callable[[Command, Path], Item]
"""From a command to what it says; the path is the model's folder."""

FACES = ("x0", "xmax", "y0", "ymax", "z0", "zmax")
PROFILES = ("constant", "linear", "quadratic", "cubic", "quartic", "quintic", "sextic", "septic", "octic")
RECORDED: tuple[Component | Current, ...] = (*COMPONENTS, *get_args(Current))


def title(command: Command, folder: Path) -> Item:
    """A title, cut to the length of a result's name."""
    return Setting("title", "".join(c for c in command.text if c.isprintable())[:100])


def domain(command: Command, folder: Path) -> Item:
    """The size; inf along the axis without extent."""
    counted(command, 3)
    sizes = tuple(number(command, k, lambda v: v > 0 and (v <= 1e20 or isinf(v)), "a size above 0") for k in range(3))
    return Setting("domain", sizes)


def spacing(command: Command, folder: Path) -> Item:
    counted(command, 3)
    return Setting("dx_dy_dz", tuple(positive(command, k) for k in range(3)))


def window(command: Command, folder: Path) -> Item:
    """Samples where it is a whole number, else seconds."""
    (word,) = counted(command, 1)
    if word.isascii() and word.removeprefix("+").isdigit():
        return Setting("time_window", whole(command, 0, 2))
    return Setting("time_window", positive(command, 0))


def stability(command: Command, folder: Path) -> Item:
    counted(command, 1)
    return Setting(command.name, number(command, 0, lambda v: 0 < v <= 1, "a number above 0 and up to 1"))


def mode(command: Command, folder: Path) -> Item:
    counted(command, 1)
    return Setting(command.name, one_of(command, 0, ("3D", "TM", "TE")))


def magnetic_averaging(command: Command, folder: Path) -> Item:
    counted(command, 1)
    return Setting(command.name, one_of(command, 0, ("harmonic", "arithmetic")))


def dispersive_averaging(command: Command, folder: Path) -> Item:
    counted(command, 1)
    return Setting(command.name, one_of(command, 0, ("y", "n")) == "y")


def absorber(command: Command, folder: Path) -> Item:
    """Cells of absorber on all sides, or for x-, y-, z-, x+, y+, z+."""
    found = counted(command, 1, 6)
    cells = [whole(command, k, 0, 10**6) for k in range(len(found))]
    return Setting(command.name, tuple(cells * 6 if len(cells) == 1 else cells))


def formulation(command: Command, folder: Path) -> Item:
    of_all(command, 1)
    return Setting(command.name, one_of(command, 0, ("HORIPML", "MRIPML")))


def stretching(command: Command, folder: Path) -> Item:
    of_all(command, 12)
    alpha, kappa, sigma = (_grading(command, place) for place in (0, 4, 8))
    return Stretching(command, Stretch(alpha, kappa, sigma))


def of_all(command: Command, count: int) -> None:
    """Raise UsageError if another number of words is there; one more would name the absorbers of a #pml_slab."""
    if len(command.words) == count + 1:
        raise command.fault("to be for all absorbers", f"those of '{command.words[count]}'", "take the name out")
    counted(command, count)


def _grading(command: Command, place: int) -> Grading:
    order = PROFILES.index(one_of(command, place, PROFILES))
    reverse = one_of(command, place + 1, ("forward", "reverse")) == "reverse"
    least = not_negative(command, place + 2)
    if place == 8 and command.words[place + 3].lower() == "none":
        return Grading(least, None, order, reverse)
    return Grading(least, not_negative(command, place + 3), order, reverse)


def material(command: Command, folder: Path) -> Item:
    words = counted(command, 5)
    return Material(
        command, words[4],
        number(command, 0, lambda v: 1 <= v <= 1e20, "a relative permittivity not below 1"),
        not_negative(command, 1, infinite=True),
        number(command, 2, lambda v: 1 <= v <= 1e20, "a relative permeability not below 1"),
        not_negative(command, 3, infinite=True),
    )  # fmt: skip


def dispersion(command: Command, folder: Path) -> Item:
    """Poles of one kind for some materials."""
    at_least(command, 2)
    width = 3 if command.name.endswith("lorentz") else 2
    count = whole(command, 0, 1, 100)
    names = at_least(command, 2 + width * count)[1 + width * count :]
    poles: list[PoleSpec] = []
    for first in range(1, 1 + width * count, width):
        a, b = positive(command, first), positive(command, first + 1)
        if command.name.endswith("debye"):
            poles.append(Debye(a, b))
        elif command.name.endswith("drude"):
            poles.append(Drude(a, b))
        else:
            poles.append(Lorentz(a, b, positive(command, first + 2)))
    return Dispersion(command, names, tuple(poles))


def box(command: Command, folder: Path) -> Item:
    at_least(command, 7)
    return Box(command, point(command, 0), point(command, 3), **fill(command, 6))


def cylinder(command: Command, folder: Path) -> Item:
    at_least(command, 8)
    radius = positive(command, 6)
    return Cylinder(command, point(command, 0), point(command, 3), radius, **fill(command, 7))


def cone(command: Command, folder: Path) -> Item:
    at_least(command, 9)
    radii = (not_negative(command, 6), not_negative(command, 7))
    return Cone(command, point(command, 0), point(command, 3), radii, **fill(command, 8))


def sphere(command: Command, folder: Path) -> Item:
    at_least(command, 5)
    return Sphere(command, point(command, 0), positive(command, 3), **fill(command, 4))


def ellipsoid(command: Command, folder: Path) -> Item:
    at_least(command, 7)
    radii = (positive(command, 3), positive(command, 4), positive(command, 5))
    return Ellipsoid(command, point(command, 0), radii, **fill(command, 6))


def triangle(command: Command, folder: Path) -> Item:
    at_least(command, 11)
    corners = (point(command, 0), point(command, 3), point(command, 6))
    thickness = number(command, 9, lambda v: 0 <= v <= 1e20 or isinf(v), "a thickness not below 0")
    return Triangle(command, corners, thickness, **fill(command, 10))


def sector(command: Command, folder: Path) -> Item:
    at_least(command, 9)
    axis = one_of(command, 0, AXES)
    inner = [number(command, k, lambda v: abs(v) <= 1e20 or isinf(v), "a coordinate") for k in range(1, 5)]
    start = number(command, 6, lambda v: 0 <= v <= 360, "an angle from 0 to 360")
    angle = number(command, 7, lambda v: 0 < v <= 360, "an angle above 0 and up to 360")
    return Sector(
        command,
        axis,
        (inner[0], inner[1]),
        (inner[2], inner[3]),
        positive(command, 5),
        start,
        angle,
        **fill(command, 8),
    )


def plate(command: Command, folder: Path) -> Item:
    """A plate of one material, or of one for each of its two axes."""
    words = counted(command, 7, 8)
    return Plate(command, point(command, 0), point(command, 3), material=words[6:])


def edge(command: Command, folder: Path) -> Item:
    words = counted(command, 7)
    magnetic = command.name == "magnetic_edge"
    return Edge(command, point(command, 0), point(command, 3), magnetic, material=words[6:])


def thin_wire(command: Command, folder: Path) -> Item:
    counted(command, 7)
    return Wire(command, point(command, 0), point(command, 3), positive(command, 6))


def wall(command: Command, folder: Path) -> Item:
    """A side and pec."""
    counted(command, 2)
    side = SIDES[FACES.index(one_of(command, 0, FACES))]
    if command.words[1].lower() != "pec":
        raise command.fault(
            "to be pec, the only kind of wall that is supported", f"'{command.words[1]}'", "use the whole domain"
        )
    return Wall(command, side)


def waveform(command: Command, folder: Path) -> Item:
    words = counted(command, 4)
    amplitude = number(command, 1, lambda v: abs(v) <= 1e20)
    return Wave(command, words[3], Formula(one_of(command, 0, FORMS), positive(command, 2), amplitude))


def excitation_file(command: Command, folder: Path) -> Item:
    """A file of columns, interpolated by straight lines."""
    words = counted(command, 1, 3)
    if len(words) == 3 and (words[1] != "linear" or words[2] not in ("0", "0.0")):
        raise command.fault(
            "to be interpolated by 'linear' lines with '0' outside", f"'{words[1]} {words[2]}'",
            "sample the waveform at the steps of the run",
        )  # fmt: skip
    return SampledWaves(command, beside(command, words[0], folder, folder))


def dipole(command: Command, folder: Path) -> Item:
    words = counted(command, 5, 7)
    kind: SourceKind = "magnetic_dipole" if command.name == "magnetic_dipole" else "electric_dipole"
    return Source(command, kind, one_of(command, 0, AXES), point(command, 1), words[4], 0.0, *times(command, 5))


def resistive(command: Command, folder: Path) -> Item:
    """A voltage source or a line. Names and limits of spectra, which come last, change no field."""
    words = at_least(command, 6)
    if len(words) > (11 if command.name == "voltage_source" else 8) or len(words) == 7:
        counted(command, 6, 8)
    if command.name == "voltage_source":
        resistance = not_negative(command, 4)
    else:
        resistance = number(command, 4, lambda v: 0 < v < ETA_0, f"a resistance above 0 and below {ETA_0:.2f} Ω")
    kind: SourceKind = "voltage_source" if command.name == "voltage_source" else "transmission_line"
    where = one_of(command, 0, AXES), point(command, 1)
    return Source(command, kind, *where, words[5], resistance, *times(command, 6))


def frill(command: Command, folder: Path) -> Item:
    """A coaxial feed. The limit of a spectrum, which comes last, changes no field."""
    words = counted(command, 6, 7, 8, 9)
    where = one_of(command, 0, AXES), point(command, 1)
    drive = times(command, 6) if len(words) > 7 else (0.0, inf)
    return Source(command, "coaxial_feed", *where, words[5], positive(command, 4), *drive)


def receiver(command: Command, folder: Path) -> Item:
    words = at_least(command, 3)
    if len(words) == 3:
        return ReceiverNode(command, point(command, 0))
    outputs = tuple(dict.fromkeys(one_of(command, k, RECORDED, fold=False) for k in range(4, len(words))))
    return ReceiverNode(command, point(command, 0), words[3][:100], outputs)


def receivers(command: Command, folder: Path) -> Item:
    counted(command, 9)
    return ReceiverRows(command, point(command, 0), point(command, 3), vector(command, 6))


def study(command: Command, folder: Path) -> Item:
    """The traces of a survey, from a table in the model's folder."""
    words = counted(command, 2)
    if words[0].lower() != "gpr":
        raise command.fault("to be of the kind 'gpr'", f"'{words[0]}'", "write a file for each case, for peergrid farm")
    return Setting(command.name, Study(command, beside(command, words[1], folder, folder)))


def steps(command: Command, folder: Path) -> Item:
    """The displacement of sources or receivers from each trace of a survey to the next."""
    counted(command, 3)
    return Setting(command.name, vector(command, 0))

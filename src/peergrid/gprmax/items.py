"""The items of a model as data: one frozen dataclass for each thing that input files and model files can contain.

Many are tables of a model file as they stand, as `objects` are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from peergrid.gprmax.objects import (
    LOWER,
    UPPER,
    FractalBox,
    Layer,
    Loss,
    Place,
    Placed,
    Rising,
    Shape,
    Share,
    Step,
    Vector,
    Voxels,
    Wire,
)
from peergrid.gprmax.soils import Soil, Spread
from peergrid.gprmax.text import Command
from peergrid.gprmax.waves import Column, Formula
from peergrid.grid import Index
from peergrid.io.rule import LONGEST, AtLeastOne, Count, Finite, Name, NotNegative, Positive, Rule, Title
from peergrid.models.fdtd3d import Medium, Pole, Stretch, debye, drude, lorentz
from peergrid.models.fdtd3d.domain import Axis, Component, Current, Side, Waveform

OWN = ("results.h5", "snapshots.h5")


def free(name: str) -> bool:
    """True for a name that can be a file name in the folder of results."""
    plain = name != "" and len(name) <= LONGEST and all(c.isalnum() or c in "_-+=." for c in name)
    return plain and not name.startswith(".")


def ending(name: str) -> bool:
    """True for a free name that a snapshot can have."""
    return free(name) and Path(name).suffix in ("", ".vtkhdf", ".h5") and name not in OWN


SOME = Rule("at least one field", bool)
Stem = Annotated[str, Rule("a name of letters, digits, '_' and '-', without folders", free)]
SnapshotName = Annotated[str, Rule("a name without folders, ending in .vtkhdf, .h5 or nothing", ending)]


@dataclass(frozen=True)
class Setting:
    """A command that a model has at most once: its name, its values and, for an input file, its line."""

    name: str
    value: object
    command: Command | None = None


@dataclass(frozen=True)
class Debye:
    """A Debye pole, as `fdtd3d.debye` has it."""

    kind: ClassVar[str] = "debye"
    strength: Positive
    relaxation: Positive

    @property
    def pole(self) -> Pole:
        return debye(self.strength, self.relaxation)


@dataclass(frozen=True)
class Drude:
    """A Drude pole, as `fdtd3d.drude` has it."""

    kind: ClassVar[str] = "drude"
    frequency: Positive
    collisions: Positive

    @property
    def pole(self) -> Pole:
        return drude(self.frequency, self.collisions)


@dataclass(frozen=True)
class Lorentz:
    """A Lorentz pole, as `fdtd3d.lorentz` has it."""

    kind: ClassVar[str] = "lorentz"
    strength: Positive
    frequency: Positive
    damping: Positive

    @property
    def pole(self) -> Pole:
        return lorentz(self.strength, self.frequency, self.damping)


@dataclass(frozen=True)
class AnyPole:
    """A pole as `fdtd3d.Pole` has it: weight and rate by their real and imaginary parts."""

    kind: ClassVar[str] = "pole"
    weight: tuple[Finite, Finite]
    rate: tuple[Finite, Finite]
    conductivity: Finite = 0.0

    @property
    def pole(self) -> Pole:
        weight, rate = complex(*self.weight), complex(*self.rate)
        if weight.imag or rate.imag:
            return Pole(weight, rate, self.conductivity)
        return Pole(weight.real, rate.real, self.conductivity)


PoleSpec = Debye | Drude | Lorentz | AnyPole


@dataclass(frozen=True)
class Material(Placed):
    """A medium by its properties, as `fdtd3d.Medium` has them."""

    name: Name
    permittivity: AtLeastOne = 1.0
    conductivity: Loss = 0.0
    permeability: AtLeastOne = 1.0
    magnetic_loss: Loss = 0.0
    poles: tuple[PoleSpec, ...] = ()

    @property
    def medium(self) -> Medium:
        """Without its poles."""
        return Medium(self.name, self.permittivity, self.conductivity, self.permeability, self.magnetic_loss)


@dataclass(frozen=True)
class DatabaseMedium(Placed):
    """A medium from a database."""

    medium: Medium

    @property
    def name(self) -> str:
        return self.medium.name


@dataclass(frozen=True)
class Dispersion(Placed):
    """Poles for the media of these names."""

    materials: tuple[str, ...]
    poles: tuple[PoleSpec, ...]


@dataclass(frozen=True)
class Mixing(Placed):
    """A mixing model: media between two limits."""

    model: Soil | Spread

    @property
    def name(self) -> str:
        return self.model.name


@dataclass(frozen=True)
class Choice(Placed):
    """Media by their names, as a mixing model."""

    kind: ClassVar[str] = "list"
    name: Name
    materials: Annotated[tuple[Name, ...], Rule("a list of names", lambda v: len(v) >= 1)]


@dataclass(frozen=True)
class Moist(Placed):
    """A mixture of two media and air, as `soils.Mixture` has it, its media by their names."""

    kind: ClassVar[str] = "crim"
    name: Name
    rock: Name
    share: Share
    liquid: Name
    limits: Annotated[Rising, Rule("two fractions up to 1 that do not fall", lambda v: v[1] <= 1)]
    band: Annotated[tuple[Positive, Positive], Rule("two frequencies that rise", lambda v: v[0] < v[1])]
    exponent: Annotated[float, Rule("an exponent from 0.01 to 1", lambda v: 0.01 <= v <= 1)]


@dataclass(frozen=True)
class View(Placed):
    """A file for ParaView: the media of cells, every so many metres, or of all edges."""

    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    name: Stem
    step: Step = (0.0, 0.0, 0.0)
    edges: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The name of its file."""
        return (f"{self.name}.vtkhdf",)


@dataclass(frozen=True)
class SnapshotFile(Placed):
    """A file of the fields between two corners, every so many metres; time: seconds, or after: steps, one of them."""

    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    name: SnapshotName
    time: NotNegative | None = None
    after: Count | None = None
    step: Step = (0.0, 0.0, 0.0)

    @property
    def files(self) -> tuple[str, ...]:
        """The name of its file."""
        return (self.name if Path(self.name).suffix else f"{self.name}.vtkhdf",)


@dataclass(frozen=True)
class Saved(Placed):
    """A file of cells that can be read again, and one of their media."""

    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    name: Stem

    @property
    def files(self) -> tuple[str, ...]:
        """Their names; that of the media is one that gprMax accepts for a database."""
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in self.name)
        database = plain if plain[0].isalpha() else f"database_{plain}"
        return f"{self.name}.h5", f"{database}_materials.json"


@dataclass(frozen=True)
class Wave(Placed):
    """A waveform given by a formula."""

    name: str
    formula: Formula


@dataclass(frozen=True)
class SampledWaves(Placed):
    """Waveforms from the columns of a file."""

    file: Path


SourceKind = Literal["electric_dipole", "magnetic_dipole", "voltage_source", "transmission_line", "coaxial_feed"]


@dataclass(frozen=True)
class Source(Placed):
    """A source at a node; waveform: by its name, or as it is; resistance: Ω, of dipoles 0."""

    kind: SourceKind
    axis: Axis
    at: Vector
    waveform: str | Formula | Column | Waveform
    resistance: float = 0.0
    start: float = 0.0
    stop: float = inf

    @property
    def component(self) -> Component:
        """The component that it drives."""
        found: Component = f"{'H' if self.kind == 'magnetic_dipole' else 'E'}{self.axis}"  # type: ignore[assignment]
        return found


@dataclass(frozen=True)
class Incoming(Placed):
    """A plane wave in the box between two corners.

    direction: whole numbers, or a unit vector that they should approximate; polarisation: degrees, its electric field
    points along -phi at 0 and along -theta at 90; medium: the name of what surrounds the bodies in the box, None for
    the layers that the wave meets along an axis.
    """

    lo: Vector
    hi: Vector
    direction: Index | Vector
    polarisation: float
    waveform: str | Formula | Column | Waveform
    medium: str | None
    start: float = 0.0
    stop: float = inf


@dataclass(frozen=True)
class ReceiverNode(Placed):
    """A receiver; no outputs: all six components."""

    at: Place = field(metadata={"key": "position"})
    name: Title = ""
    outputs: Annotated[tuple[Component | Current, ...], SOME] = field(default=(), metadata={"key": "fields"})


@dataclass(frozen=True)
class ReceiverRows(Placed):
    """Receivers in rows from one corner to the other, every so many metres."""

    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    step: Step


@dataclass(frozen=True)
class Study(Placed):
    """A table of the positions of objects, a case after another."""

    file: Path


@dataclass(frozen=True)
class Wall(Placed):
    """A side without absorber, where the domain ends at a perfect conductor."""

    side: Side


@dataclass(frozen=True)
class Stretching(Placed):
    """A factor of the absorbers, of which there are two at most."""

    stretch: Stretch


@dataclass(frozen=True)
class Faces(Placed):
    """A box from whose faces far fields are computed."""

    lo: Vector
    hi: Vector
    name: str


@dataclass(frozen=True)
class Spectrum(Placed):
    """The frequencies of a box's far fields, Hz."""

    faces: str
    name: str
    frequencies: tuple[float, ...]


@dataclass(frozen=True)
class FarDirections(Placed):
    """Directions by theta and phi, degrees, every pair of them."""

    theta: tuple[float, ...]
    phi: tuple[float, ...]
    spectrum: str
    name: str
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class IgnoredCommand(Placed):
    """A note about a command at the end of the run: that it changes no field, or the value that was used."""

    note: str


Item = (
    Setting | Material | DatabaseMedium | Dispersion | Mixing | Choice | Moist | Shape | FractalBox | Layer | Voxels
    | View | Wire | SnapshotFile | Saved | Wave | SampledWaves | Source | Incoming | ReceiverNode | ReceiverRows
    | Stretching | Wall | Faces | Spectrum | FarDirections | IgnoredCommand
)  # fmt: skip

"""Objects that fill cells, and layers on them, as data: made from tables of a model file or from commands.

Their fields are the keys of the table, by name or by `key`, with the rules for values (`io.schema`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Annotated, ClassVar

from peergrid.gprmax.text import Command
from peergrid.io.rule import LARGEST, FileName, Name, NotNegative, Positive, PositiveCount, Rule, Title
from peergrid.models.fdtd3d.domain import Axis

Vector = tuple[float, float, float]
Coordinate = Annotated[float, Rule("metres, or inf", lambda v: abs(v) <= LARGEST or v in (inf, -inf))]
Place = tuple[Coordinate, Coordinate, Coordinate]
Step = tuple[NotNegative, NotNegative, NotNegative]
Loss = Annotated[float, Rule("a number not below 0, or inf", lambda v: 0 <= v <= LARGEST or v == inf)]
Materials = Name | Annotated[tuple[Name, ...], Rule("a name, or a list of 2 or 3", lambda v: 1 <= len(v) <= 3)]
Angle = Annotated[float, Rule("degrees from 0 to 360", lambda v: 0 <= v <= 360)]
Rising = Annotated[tuple[NotNegative, NotNegative], Rule("two numbers that do not fall", lambda v: v[0] <= v[1])]
Share = Annotated[float, Rule("a fraction from 0 to 1", lambda v: 0 <= v <= 1)]
Dimension = Annotated[float, Rule("a fractal dimension from 0 to 100", lambda v: 0 <= v <= 100)]
Seed = Annotated[int, Rule("a whole number from 0 to 4294967295", lambda v: 0 <= v < 1 << 32)]
LOWER: Mapping[str, str] = {"key": "lower"}
UPPER: Mapping[str, str] = {"key": "upper"}


@dataclass(frozen=True)
class Placed:
    """An item of a file; `command` knows its place in the file and makes messages about it."""

    command: Command = field(metadata={"place": Command.table})


@dataclass(frozen=True)
class Body(Placed):
    """An object's material, or one for each axis."""

    material: Materials = field(kw_only=True)

    @property
    def materials(self) -> tuple[str, ...]:
        """One name, or one for each axis."""
        return (self.material,) if isinstance(self.material, str) else self.material


@dataclass(frozen=True)
class Solid(Body):
    """A body whose surface is smoothed if possible."""

    smooth: bool = field(default=True, kw_only=True)


@dataclass(frozen=True)
class Box(Solid):
    """Two corners, metres."""

    kind: ClassVar[str] = "box"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)


@dataclass(frozen=True)
class Cylinder(Solid):
    """The centres of its faces and a radius, metres."""

    kind: ClassVar[str] = "cylinder"
    first: Place
    second: Place
    radius: Positive

    @property
    def radii(self) -> tuple[float, float]:
        """As of a cone."""
        return self.radius, self.radius


@dataclass(frozen=True)
class Cone(Solid):
    """A cone from one face's centre and radius to the other's."""

    kind: ClassVar[str] = "cone"
    first: Place
    second: Place
    radii: tuple[NotNegative, NotNegative]


@dataclass(frozen=True)
class Sphere(Solid):
    """A centre and a radius, metres."""

    kind: ClassVar[str] = "sphere"
    centre: Place
    radius: Positive


@dataclass(frozen=True)
class Ellipsoid(Solid):
    """A centre and three radii, metres."""

    kind: ClassVar[str] = "ellipsoid"
    centre: Place
    radii: tuple[Positive, Positive, Positive]


@dataclass(frozen=True)
class Triangle(Solid):
    """Three corners in a plane normal to an axis, and the thickness along it, metres; 0 for a patch."""

    kind: ClassVar[str] = "triangle"
    corners: tuple[Place, Place, Place] = field(metadata={"key": "vertices"})
    thickness: Loss


@dataclass(frozen=True)
class Sector(Solid):
    """A sector of a cylinder: the axis, the centre in the other two, the extent along it; metres, degrees."""

    kind: ClassVar[str] = "sector"
    axis: Axis
    centre: tuple[Coordinate, Coordinate]
    extent: tuple[Coordinate, Coordinate]
    radius: Positive
    start: Angle
    angle: Annotated[float, Rule("degrees above 0 and up to 360", lambda v: 0 < v <= 360)]


@dataclass(frozen=True)
class Plate(Body):
    """A rectangle without thickness between two corners."""

    kind: ClassVar[str] = "plate"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)


@dataclass(frozen=True)
class Edge(Body):
    """Edges of cells between two points on a line along an axis, or the magnetic components along it at their nodes."""

    kind: ClassVar[str] = "edge"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    magnetic: bool = False


@dataclass(frozen=True)
class Wire(Placed):
    """A conductor thinner than a cell between two points on a line along an axis, and its radius, metres."""

    kind: ClassVar[str] = "wire"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    radius: Positive


@dataclass(frozen=True)
class FractalBox(Placed):
    """A box of cells with random media: `bins` of a mixing model, or one medium; seed: None if the file has none."""

    kind: ClassVar[str] = "fractal_box"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    dimension: Dimension
    material: Name
    weights: tuple[NotNegative, NotNegative, NotNegative] = (1.0, 1.0, 1.0)
    bins: Annotated[int, Rule("a whole number from 1 to 10000", lambda v: 1 <= v <= 10_000)] = 1
    name: Title = ""
    seed: Seed | None = 0
    smooth: bool = False


@dataclass(frozen=True)
class Roughness(Placed):
    """Random heights on a face of a fractal box, between two limits along its normal, metres."""

    kind: ClassVar[str] = "roughness"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    dimension: Dimension
    limits: tuple[NotNegative, NotNegative]
    box: Name
    weights: tuple[NotNegative, NotNegative] = (1.0, 1.0)
    seed: Seed | None = 0


@dataclass(frozen=True)
class Flood(Placed):
    """Water on a rough face, up to a level along its normal, metres."""

    kind: ClassVar[str] = "water"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    level: Positive
    box: Name


@dataclass(frozen=True)
class Lawn(Placed):
    """Blades of grass on a face, their ends between two limits along its normal, metres, and roots as long."""

    kind: ClassVar[str] = "grass"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    dimension: Dimension
    limits: tuple[NotNegative, NotNegative]
    blades: PositiveCount
    box: Name
    seed: Seed | None = 0


Layer = Roughness | Flood | Lawn


@dataclass(frozen=True)
class DataFile:
    """A file beside the model's."""

    file: FileName


@dataclass(frozen=True)
class Voxels(Placed):
    """Cells from a file, from a corner on, with the media of another: a database, or a list of #material lines."""

    kind: ClassVar[str] = "voxels"
    at: Place = field(metadata={"key": "origin"})
    given: FileName = field(metadata={"key": "file"})
    media: DataFile = field(metadata={"key": "materials"})
    smooth: bool = False

    @property
    def file(self) -> Path:
        """The cells."""
        return Path(self.given)

    @property
    def materials(self) -> Path:
        """Their media."""
        return Path(self.media.file)


Shape = Box | Cylinder | Cone | Sphere | Ellipsoid | Triangle | Sector | Plate | Edge

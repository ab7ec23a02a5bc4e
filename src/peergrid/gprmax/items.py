"""The commands of an input file as data: one frozen dataclass for each thing that they can say."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path

from peergrid.gprmax.soils import Limits, Soil, Spread
from peergrid.gprmax.text import Command
from peergrid.models.fdtd3d import Medium, Pole, Stretch
from peergrid.models.fdtd3d.domain import Axis, Component, Current, Side

Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Setting:
    """A command of which a model has one at most: its name and what it says."""

    name: str
    value: object


@dataclass(frozen=True)
class Material:
    """A medium by its properties, as `fdtd3d.Medium` has them."""

    command: Command
    name: str
    permittivity: float
    conductivity: float
    permeability: float
    magnetic_loss: float

    @property
    def medium(self) -> Medium:
        """Without poles, which come from other commands."""
        return Medium(self.name, self.permittivity, self.conductivity, self.permeability, self.magnetic_loss)


@dataclass(frozen=True)
class Given:
    """A medium from a database."""

    command: Command
    medium: Medium

    @property
    def name(self) -> str:
        return self.medium.name


@dataclass(frozen=True)
class Dispersion:
    """Poles for the media of these names."""

    command: Command
    materials: tuple[str, ...]
    poles: tuple[Pole, ...]


@dataclass(frozen=True)
class Fill:
    """The material of an object, or one for each axis; smoothed at its surface where that can be."""

    materials: tuple[str, ...]
    smooth: bool = True


@dataclass(frozen=True)
class Box:
    """Two corners, metres."""

    command: Command
    lo: Vector
    hi: Vector
    fill: Fill


@dataclass(frozen=True)
class Cone:
    """A cone from one face's centre and radius to the other's; a cylinder where both radii are the same."""

    command: Command
    first: Vector
    second: Vector
    radii: tuple[float, float]
    fill: Fill


@dataclass(frozen=True)
class Ellipsoid:
    """A centre and three radii, metres; `round` where it is a sphere."""

    command: Command
    centre: Vector
    radii: Vector
    fill: Fill
    round: bool


@dataclass(frozen=True)
class Triangle:
    """Three corners in a plane normal to an axis, and the thickness along it, metres; 0 for a patch."""

    command: Command
    corners: tuple[Vector, Vector, Vector]
    thickness: float
    fill: Fill


@dataclass(frozen=True)
class Sector:
    """A sector of a cylinder: the axis, the centre in the other two, the extent along it; metres, degrees."""

    command: Command
    axis: int
    centre: tuple[float, float]
    extent: tuple[float, float]
    radius: float
    start: float
    angle: float
    fill: Fill


@dataclass(frozen=True)
class Plate:
    """A rectangle without thickness between two corners."""

    command: Command
    lo: Vector
    hi: Vector
    fill: Fill


@dataclass(frozen=True)
class Edge:
    """Edges of cells between two points on a line along an axis, or the magnetic components along it at their nodes."""

    command: Command
    lo: Vector
    hi: Vector
    fill: Fill
    magnetic: bool = False


@dataclass(frozen=True)
class Mixing:
    """A model of mixing: media between two limits."""

    command: Command
    model: Soil | Spread

    @property
    def name(self) -> str:
        return self.model.name


@dataclass(frozen=True)
class Choice:
    """Media by their names, as a model of mixing."""

    command: Command
    name: str
    materials: tuple[str, ...]


@dataclass(frozen=True)
class Moist:
    """A mixture of two media and air, as `soils.Mixture` has it, its media by their names."""

    command: Command
    name: str
    rock: str
    share: float
    liquid: str
    limits: Limits
    band: Limits
    exponent: float


@dataclass(frozen=True)
class FractalBox:
    """A box of cells with media at random; `bins` of a model of mixing, or one medium; seed None: the file has none."""

    command: Command
    lo: Vector
    hi: Vector
    dimension: float
    weights: Vector
    bins: int
    material: str
    name: str
    seed: int | None
    smooth: bool


@dataclass(frozen=True)
class Roughness:
    """Heights at random on a face of the fractal box of a name, between two limits along its normal, metres."""

    command: Command
    lo: Vector
    hi: Vector
    dimension: float
    weights: tuple[float, float]
    limits: Limits
    box: str
    seed: int | None


@dataclass(frozen=True)
class Flood:
    """Water on a rough face, up to a level along its normal, metres."""

    command: Command
    lo: Vector
    hi: Vector
    level: float
    box: str


@dataclass(frozen=True)
class Lawn:
    """Blades of grass on a face, their ends between two limits along its normal, metres, and roots as long."""

    command: Command
    lo: Vector
    hi: Vector
    dimension: float
    limits: Limits
    blades: int
    box: str
    seed: int | None


Layer = Roughness | Flood | Lawn


@dataclass(frozen=True)
class Voxels:
    """Cells from a file, from a corner on, with the media of another: a database, or a list of #material lines."""

    command: Command
    at: Vector
    file: Path
    materials: Path
    smooth: bool


@dataclass(frozen=True)
class View:
    """A file for ParaView: the media of cells, every so many metres, or of all edges."""

    command: Command
    lo: Vector
    hi: Vector
    step: Vector
    name: str
    edges: bool


@dataclass(frozen=True)
class Snapped:
    """A file of the fields between two corners, every so many metres; time: seconds, or a step where it is whole."""

    command: Command
    lo: Vector
    hi: Vector
    step: Vector
    time: float | int
    file: str


@dataclass(frozen=True)
class Saved:
    """A file of cells that can be read again."""

    command: Command
    lo: Vector
    hi: Vector
    name: str


Shape = Box | Cone | Ellipsoid | Triangle | Sector | Plate | Edge


@dataclass(frozen=True)
class Wave:
    """A waveform by its kind."""

    command: Command
    kind: str
    amplitude: float
    frequency: float
    name: str


@dataclass(frozen=True)
class SampledWaves:
    """Waveforms from a file of columns."""

    command: Command
    file: Path


@dataclass(frozen=True)
class Source:
    """A source at a node; resistance: of voltage sources and lines, Ω."""

    command: Command
    axis: Axis
    at: Vector
    waveform: str
    resistance: float = 0.0
    start: float = 0.0
    stop: float = inf


@dataclass(frozen=True)
class Incoming:
    """A plane wave in the box between two corners: where it goes and where its electric field points, as unit vectors.

    medium: the name of what surrounds the bodies in the box.
    """

    command: Command
    lo: Vector
    hi: Vector
    direction: Vector
    polarisation: Vector
    waveform: str
    medium: str
    start: float = 0.0
    stop: float = inf


@dataclass(frozen=True)
class Heard:
    """A receiver; no outputs: all six components."""

    command: Command
    at: Vector
    name: str = ""
    outputs: tuple[Component | Current, ...] = ()


@dataclass(frozen=True)
class HeardArray:
    """Receivers in rows from one corner to the other, every so many metres."""

    command: Command
    lo: Vector
    hi: Vector
    step: Vector


@dataclass(frozen=True)
class Study:
    """A table of the positions of objects, a case after another."""

    command: Command
    file: Path


@dataclass(frozen=True)
class Wall:
    """A side without absorber, where the domain ends at a perfect conductor."""

    command: Command
    side: Side


@dataclass(frozen=True)
class Stretching:
    """A factor of the absorbers."""

    stretch: Stretch


@dataclass(frozen=True)
class Faces:
    """A box from whose faces fields far away are worked out."""

    command: Command
    lo: Vector
    hi: Vector
    name: str


@dataclass(frozen=True)
class Spectrum:
    """The frequencies of a box's fields far away, Hz."""

    command: Command
    faces: str
    name: str
    frequencies: tuple[float, ...]


@dataclass(frozen=True)
class Faraway:
    """Directions by theta and phi, degrees, every pair of them."""

    command: Command
    theta: tuple[float, ...]
    phi: tuple[float, ...]
    spectrum: str
    name: str
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Passed:
    """A sentence about a command at the end of the run: that it changes no field, or what was taken for it."""

    command: Command
    note: str


Item = (
    Setting | Material | Given | Dispersion | Mixing | Choice | Moist | Shape | FractalBox | Layer | Voxels | View
    | Snapped | Saved | Wave | SampledWaves | Source | Incoming | Heard | HeardArray | Stretching | Wall
    | Faces | Spectrum | Faraway | Passed
)  # fmt: skip

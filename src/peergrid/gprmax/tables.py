"""The tables of a model file of the kind fdtd3d, key by key (`docs/model-files.md`), and their items.

Tables that correspond to one command are items themselves (`items`, `objects`); those here combine several commands, or
have a key for what is part of a command's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, ClassVar, Literal

from peergrid.gprmax.directions import MOST
from peergrid.gprmax.items import (
    SOME,
    Choice,
    Faces,
    FarDirections,
    Incoming,
    Item,
    Material,
    Mixing,
    Moist,
    ReceiverNode,
    ReceiverRows,
    Saved,
    Setting,
    SnapshotFile,
    Source,
    SourceKind,
    Spectrum,
    Stretching,
    View,
)
from peergrid.gprmax.objects import (
    LOWER,
    UPPER,
    Angle,
    FractalBox,
    Layer,
    Loss,
    Place,
    Placed,
    Shape,
    Vector,
    Voxels,
    Wire,
)
from peergrid.gprmax.soils import Soil, Spread
from peergrid.gprmax.text import Command
from peergrid.gprmax.waves import Column, Formula
from peergrid.grid import Dtype
from peergrid.io.rule import LARGEST, Count, Name, NotNegative, Positive, PositiveCount, Rule, Title
from peergrid.models.fdtd3d import FarField, Grading, Pictures, Stretch
from peergrid.models.fdtd3d.domain import Axis, Component, Formulation
from peergrid.models.model import Head, RunSpec
from peergrid.models.survey import Survey
from peergrid.models.waveforms import Gaussian, Ricker, Samples, Sine

Length = Annotated[float, Rule("a positive number, or inf", lambda v: v >= 1 / LARGEST and (v <= LARGEST or v == inf))]
Steps = Annotated[int, Rule("a whole number from 1 to 1000000000", lambda v: 1 <= v <= 10**9)]
Courant = Annotated[float, Rule("a number above 0 and not above 1 (the limit of stability)", lambda v: 0 < v <= 1)]
Cells = Annotated[int, Rule("a whole number from 0 to 1000000", lambda v: 0 <= v <= 10**6)]
Power = Annotated[int, Rule("a whole number from 0 to 8", lambda v: 0 <= v <= 8)]
Whole = Annotated[int, Rule(f"a whole number from -{MOST} to {MOST}", lambda v: -MOST <= v <= MOST)]
Direction = Annotated[tuple[Whole, Whole, Whole], Rule("three whole numbers, not all 0", any)]
Frequencies = Annotated[tuple[Positive, ...], Rule("a list of frequencies", lambda v: len(v) >= 1)]
Theta = Annotated[float, Rule("degrees from 0 to 180", lambda v: 0 <= v <= 180)]
Phi = Annotated[float, Rule("degrees from -360 to 360", lambda v: -360 <= v <= 360)]
Waveform = Ricker | Gaussian | Sine | Samples | Formula | Column
Mixture = Soil | Spread | Choice | Moist


@dataclass(frozen=True)
class GridSpec:
    """Extent and spacing in metres, duration in seconds or steps, and how numbers and media are kept.

    Exactly one of `time_window` and `steps` is given.
    """

    size: tuple[Length, Length, Length]
    spacing: Positive | tuple[Positive, Positive, Positive]
    time_window: Positive | None = None
    steps: Steps | None = None
    courant: Courant = 1.0
    mode: Literal["3D", "TM", "TE"] | None = None
    dtype: Dtype = "float32"
    magnetic_averaging: Literal["harmonic", "arithmetic"] = "harmonic"
    dispersive_averaging: bool = False

    @property
    def spacings(self) -> Vector:
        """(dx, dy, dz) in metres."""
        return self.spacing if isinstance(self.spacing, tuple) else (self.spacing,) * 3

    def items(self) -> Iterator[Item]:
        """The items of the table; a trace has one sample more than there are steps."""
        yield Setting("domain", self.size)
        yield Setting("dx_dy_dz", self.spacings)
        yield Setting("time_window", self.time_window if self.steps is None else self.steps + 1)
        yield Setting("time_step_stability_factor", self.courant)
        yield Setting("magnetic_averaging", self.magnetic_averaging)
        yield Setting("dispersive_averaging", self.dispersive_averaging)
        if self.mode is not None:
            yield Setting("domain_mode", self.mode)


@dataclass(frozen=True)
class Graded:
    """A parameter of an absorber from its inner face to its wall, as `fdtd3d.Grading` has it."""

    most: NotNegative
    least: NotNegative = 0.0
    order: Power = 0
    reverse: bool = False


@dataclass(frozen=True)
class Conductivity:
    """The same for σ, whose largest value may be left to be computed."""

    most: NotNegative | None = None
    least: NotNegative = 0.0
    order: Power = 4
    reverse: bool = False


@dataclass(frozen=True)
class StretchSpec:
    """A stretch, as `fdtd3d.Stretch` has it."""

    alpha: Graded = Graded(0.0)
    kappa: Graded = Graded(1.0, 1.0)
    sigma: Conductivity = Conductivity()

    @property
    def stretch(self) -> Stretch:
        """The same as a `fdtd3d.Stretch`."""
        return Stretch(*(Grading(g.least, g.most, g.order, g.reverse) for g in (self.alpha, self.kappa, self.sigma)))


@dataclass(frozen=True)
class AbsorberSpec:
    """Cells of the sides x-, x+, y-, y+, z-, z+, or of all; one stretch or two."""

    cells: Cells | tuple[Cells, Cells, Cells, Cells, Cells, Cells] = 10
    formulation: Formulation = "HORIPML"
    stretches: tuple[StretchSpec, ...] = field(default=(), metadata={"key": "stretch"})

    def items(self) -> Iterator[Item]:
        """The items of the table."""
        cells = self.cells if isinstance(self.cells, tuple) else (self.cells,) * 6
        yield Setting("pml_cells", cells[::2] + cells[1::2])
        yield Setting("pml_formulation", self.formulation)
        for number, one in enumerate(self.stretches, start=1):
            yield Stretching(Command.table(f"absorber.stretch[{number}]"), one.stretch)


@dataclass(frozen=True)
class Point(Placed):
    """A source at the node nearest to a position; `start` is its time 0, after `stop` it is cut off, seconds."""

    axis: Axis
    at: Place = field(metadata={"key": "position"})
    waveform: Waveform
    start: NotNegative = 0.0
    stop: Loss = inf


@dataclass(frozen=True)
class ElectricDipole(Point):
    """Amperes along an edge of the grid."""

    kind: ClassVar[SourceKind] = "electric_dipole"


@dataclass(frozen=True)
class MagneticDipole(Point):
    """Volts times metres."""

    kind: ClassVar[SourceKind] = "magnetic_dipole"


@dataclass(frozen=True)
class VoltageSource(Point):
    """Volts across an edge, in series with a resistance, Ω."""

    kind: ClassVar[SourceKind] = "voltage_source"
    resistance: NotNegative = 0.0


@dataclass(frozen=True)
class TransmissionLine(Point):
    """Volts of the wave sent along a line of so many ohms."""

    kind: ClassVar[SourceKind] = "transmission_line"
    resistance: Positive = field(kw_only=True)


@dataclass(frozen=True)
class CoaxialFeed(Point):
    """Volts of a coaxial line of so many ohms, open, that ends in a conducting plane at the foot of a wire."""

    kind: ClassVar[SourceKind] = "coaxial_feed"
    resistance: Positive = field(kw_only=True)


PointSource = ElectricDipole | MagneticDipole | VoltageSource | TransmissionLine | CoaxialFeed


@dataclass(frozen=True)
class PlaneWave(Placed):
    """A plane wave (V/m) inside the box between two corners; layered: in what it meets along an axis."""

    kind: ClassVar[str] = "plane_wave"
    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    direction: Direction
    polarisation: Angle
    waveform: Waveform
    medium: Name = "free_space"
    layered: bool = False
    start: NotNegative = 0.0
    stop: Loss = inf


def source(given: PointSource | PlaneWave) -> Source | Incoming:
    """A source as an item."""
    if given.stop <= given.start:
        raise given.command.fault("to stop after it starts", f"{given.start:g} and {given.stop:g} s", "correct it")
    if isinstance(given, PlaneWave):
        if given.layered and given.medium != PlaneWave.medium:
            raise given.command.fault("to have a medium or layers", f"'{given.medium}' and layers", "leave out one")
        return Incoming(
            given.command, given.lo, given.hi, given.direction, given.polarisation, given.waveform,
            None if given.layered else given.medium, given.start, given.stop,
        )  # fmt: skip
    resistance = given.resistance if isinstance(given, VoltageSource | TransmissionLine | CoaxialFeed) else 0.0
    return Source(given.command, given.kind, given.axis, given.at, given.waveform, resistance, given.start, given.stop)


@dataclass(frozen=True)
class FarFieldSpec(Placed):
    """Far fields, as `fdtd3d.FarField` has them, from the faces of a box between two corners."""

    lo: Place = field(metadata=LOWER)
    hi: Place = field(metadata=UPPER)
    frequencies: Frequencies
    theta: tuple[Theta, ...] = FarField.theta
    phi: tuple[Phi, ...] = FarField.phi
    name: Title = ""

    def items(self, number: int) -> Iterator[Item]:
        """The items of the table; number: its place among its kind, from 1."""
        label = f"far{number}"
        yield Faces(self.command, self.lo, self.hi, label)
        yield Spectrum(self.command, label, label, self.frequencies)
        yield FarDirections(self.command, self.theta, self.phi, label, self.name, ())


@dataclass(frozen=True)
class Output:
    """The file of snapshots: of these fields, every so many steps, on every `stride`-th node along each axis.

    Pictures are those of `fdtd3d.Pictures`.
    """

    snapshots: Count = 0
    fields: Annotated[tuple[Component, ...], SOME] = ()
    stride: PositiveCount = 1
    pictures: bool = True
    format: Literal["png", "pdf", "svg"] = "png"
    colours: Literal["own", "common"] = "own"
    animation: Literal["gif", "mp4", "none"] = "none"
    slice: Axis = "y"
    through: Place | None = None
    width: Annotated[int, Rule("a whole number from 160 to 3840", lambda v: 160 <= v <= 3840)] = 720
    surfaces: Annotated[float, Rule("a number from 0 to 10", lambda v: 0 <= v <= 10)] = 0.0
    gain: Literal["agc", "none"] = "agc"

    @property
    def drawn(self) -> Pictures:
        """The pictures."""
        still = self.format if self.pictures else None
        return Pictures(
            still, self.colours, self.animation, self.slice, self.through, self.width, self.surfaces, self.gain
        )


@dataclass(frozen=True)
class Tables:
    """A whole model file."""

    model: Head = Head()
    grid: GridSpec = field(kw_only=True)
    materials: tuple[Material, ...] = field(default=(), metadata={"key": "material"})
    mixtures: tuple[Mixture, ...] = field(default=(), metadata={"key": "mixture"})
    shapes: tuple[Shape | FractalBox | Voxels | Wire, ...] = field(default=(), metadata={"key": "shape"})
    surfaces: tuple[Layer, ...] = field(default=(), metadata={"key": "surface"})
    sources: tuple[PointSource | PlaneWave, ...] = field(default=(), metadata={"key": "source"})
    receivers: tuple[ReceiverNode, ...] = field(default=(), metadata={"key": "receiver"})
    receiver_arrays: tuple[ReceiverRows, ...] = field(default=(), metadata={"key": "receiver_array"})
    far_fields: tuple[FarFieldSpec, ...] = field(default=(), metadata={"key": "far_field"})
    absorber: AbsorberSpec = AbsorberSpec()
    snapshots: tuple[SnapshotFile, ...] = field(default=(), metadata={"key": "snapshot"})
    views: tuple[View, ...] = field(default=(), metadata={"key": "view"})
    cells: tuple[Saved, ...] = ()
    output: Output = Output()
    run: RunSpec = RunSpec()
    survey: Survey | None = None

    def items(self) -> Iterator[Item]:
        """The items of the file, in the order in which media are numbered and objects rasterised."""
        yield Setting("title", self.model.title)
        yield from self.grid.items()
        yield from self.absorber.items()
        yield from self.materials
        for number, mixture in enumerate(self.mixtures, start=1):
            place = Command.table(f"mixture[{number}]")
            yield Mixing(place, mixture) if isinstance(mixture, Soil | Spread) else mixture
        yield from self.shapes
        yield from self.surfaces
        yield from map(source, self.sources)
        yield from self.receivers
        yield from self.receiver_arrays
        for number, requested_far_fields in enumerate(self.far_fields, start=1):
            yield from requested_far_fields.items(number)
        yield from self.snapshots
        yield from self.views
        yield from self.cells

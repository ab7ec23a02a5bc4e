"""A radar model as data: the keys of a model file (`docs/model-files.md`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from peergrid.errors import UsageError, about
from peergrid.grid import Dtype, Index
from peergrid.io.extras import film_library
from peergrid.io.rule import (
    AtLeastOne,
    Count,
    Finite,
    Name,
    NotNegative,
    Point,
    Positive,
    PositiveCount,
    Rule,
    Title,
)
from peergrid.models.fdtd.materials import Material
from peergrid.models.fdtd.shapes import Shape
from peergrid.models.model import Head, Memory, RunSpec, Snapshots
from peergrid.models.survey import Shift, Survey, Vector
from peergrid.models.waveforms import Waveform

if TYPE_CHECKING:
    from peergrid.models.fdtd.build import Built

Axis = Literal["x", "y"]
Side = Literal["x-", "x+", "y-", "y+"]
Direction = Literal["+x", "-x", "+y", "-y"]
Component = Literal["Ez", "Hx", "Hy"]
SIDES: tuple[Side, ...] = ("x-", "x+", "y-", "y+")
Courant = Annotated[float, Rule("a number above 0 and not above 1 (the limit of stability)", lambda v: 0 < v <= 1)]


@dataclass(frozen=True)
class GridSpec:
    """Extent and spacing in metres, duration in seconds or steps, and how numbers are kept.

    Exactly one of `time_window` and `steps` is given. `background` is the material that fills the grid.
    """

    size: tuple[Positive, Positive]
    spacing: Positive | tuple[Positive, Positive]
    time_window: Positive | None = None
    steps: Annotated[int, Rule("a whole number from 1 to 1000000000", lambda v: 1 <= v <= 10**9)] | None = None
    courant: Courant = 0.99
    dtype: Dtype = "float32"
    background: Name = "vacuum"
    periodic: tuple[Axis, ...] = ()
    allow_underresolved: bool = False

    @property
    def spacings(self) -> tuple[float, float]:
        """(dx, dy) in metres."""
        return self.spacing if isinstance(self.spacing, tuple) else (self.spacing, self.spacing)


@dataclass(frozen=True)
class LineSource:
    """A current along z through one node, amperes."""

    kind: ClassVar[str] = "line"
    position: Point
    waveform: Waveform


@dataclass(frozen=True)
class PlaneWave:
    """A plane wave, volts per metre, that starts at `position` along an axis; behind it there are only scattered
    fields.
    """

    kind: ClassVar[str] = "plane_wave"
    direction: Direction
    position: Finite
    waveform: Waveform


Source = LineSource | PlaneWave


@dataclass(frozen=True)
class ReceiverSpec:
    """Records field components at the node nearest to a position."""

    position: Point
    name: Title = ""
    fields: Annotated[tuple[Component, ...], Rule("at least one field", lambda v: len(v) >= 1)] = ("Ez",)


@dataclass(frozen=True)
class ReceiverArray:
    """`count` receivers at equal distances on the line from `first` to `last`, both included."""

    first: Point
    last: Point
    count: Annotated[int, Rule("a whole number not below 2", lambda v: v >= 2)]
    name: Title = ""
    fields: Annotated[tuple[Component, ...], Rule("at least one field", lambda v: len(v) >= 1)] = ("Ez",)


@dataclass(frozen=True)
class Absorber:
    """A convolutional perfectly matched layer on some sides; a side without one is a perfect conductor.

    order: of the polynomial grading; strength: the scale of the conductivity against its usual optimum;
    kappa: the largest stretch; alpha: the largest frequency shift, S/m.
    """

    cells: Count = 10
    sides: tuple[Side, ...] | None = None
    order: AtLeastOne = 3.0
    strength: Positive = 1.0
    kappa: AtLeastOne = 1.0
    alpha: NotNegative = 0.0


@dataclass(frozen=True)
class Output:
    """The files that are written beside the receivers' traces.

    snapshots: one of the whole field every so many steps, 0 for none; fields: which components; stride: every so
    many cells along each axis; pictures: of the model, receivers and snapshots; format: of the pictures; colours: each
    snapshot's own range of amplitudes, or a common one; gain: of sections, automatic or none; animation: of the
    snapshots; width: of the animation in pixels.
    """

    snapshots: Count = 0
    fields: tuple[Component, ...] = ("Ez",)
    stride: PositiveCount = 1
    pictures: bool = True
    format: Literal["png", "pdf", "svg"] = "png"
    colours: Literal["own", "common"] = "own"
    gain: Literal["agc", "none"] = "agc"
    animation: Literal["gif", "mp4", "none"] = "none"
    width: Annotated[int, Rule("a whole number from 160 to 3840", lambda v: 160 <= v <= 3840)] = 720


@dataclass(frozen=True)
class RadarModel:
    """A whole model file; a `Model` of `models.model`."""

    grid: GridSpec
    model: Head = Head()
    materials: tuple[Material, ...] = field(default=(), metadata={"key": "material"})
    shapes: tuple[Shape, ...] = field(default=(), metadata={"key": "shape"})
    sources: tuple[Source, ...] = field(default=(), metadata={"key": "source"})
    receivers: tuple[ReceiverSpec, ...] = field(default=(), metadata={"key": "receiver"})
    receiver_arrays: tuple[ReceiverArray, ...] = field(default=(), metadata={"key": "receiver_array"})
    absorber: Absorber = Absorber()
    output: Output = Output()
    run: RunSpec = RunSpec()
    survey: Survey | None = None
    file: str = field(default="", compare=False, repr=False, metadata={"place": lambda _: ""})  # see `named`

    @property
    def title(self) -> str:
        return self.model.title

    @property
    def shape(self) -> tuple[int, ...]:
        return self.cells

    @property
    def dtype(self) -> Dtype:
        return self.grid.dtype

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.output.snapshots, self.output.fields, self.output.stride)

    def named(self, file: str) -> Self:
        return replace(self, file=file)

    def with_steps(self, steps: int) -> Self:
        return replace(self, grid=replace(self.grid, steps=steps, time_window=None))

    @property
    def anchors(self) -> tuple[Vector, Vector]:
        """The first line source and the first receiver, single or in an array. Raises UsageError if there is none to
        move.
        """
        placed: tuple[Vector, ...] = tuple(s.position for s in self.sources if isinstance(s, LineSource))
        heard: tuple[Vector, ...] = tuple(r.position for r in self.receivers)
        heard += tuple(array.first for array in self.receiver_arrays)
        if not heard:
            raise UsageError("A survey is expected to have a receiver, got none; add a [[receiver]].")
        return (*placed, heard[0])[0], heard[0]

    def moved(self, shift: Shift) -> Self:
        def along(point: Point, way: Vector) -> Point:
            return point[0] + way[0], point[1] + way[1]

        return replace(
            self,
            survey=None,
            sources=tuple(
                replace(s, position=along(s.position, shift.sources)) if isinstance(s, LineSource) else s
                for s in self.sources
            ),
            receivers=tuple(replace(r, position=along(r.position, shift.receivers)) for r in self.receivers),
            receiver_arrays=tuple(
                replace(a, first=along(a.first, shift.receivers), last=along(a.last, shift.receivers))
                for a in self.receiver_arrays
            ),
        )

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        from peergrid.models.fdtd.memory import memory  # which takes a model

        with about(self.file):
            return memory(self, computing=computing, writing=writing)

    def check_results(self) -> None:
        if self.output.animation == "mp4":
            film_library()

    def build(self) -> Built:
        from peergrid.models.fdtd.build import build  # which takes a model

        with about(self.file):
            return build(self)

    @property
    def cells(self) -> tuple[int, int]:
        """The number of cells along x and y."""
        nx, ny = (round(length / step) for length, step in zip(self.grid.size, self.grid.spacings, strict=True))
        return nx, ny

    @property
    def periodic(self) -> tuple[bool, bool]:
        return "x" in self.grid.periodic, "y" in self.grid.periodic

    @property
    def absorbing(self) -> tuple[Side, ...]:
        """The sides with absorbers: those given, or all that are not periodic."""
        if self.absorber.cells == 0:
            return ()
        if self.absorber.sides is not None:
            return tuple(side for side in SIDES if side in self.absorber.sides)
        return tuple(side for side in SIDES if side[0] not in self.grid.periodic)

    def thickness(self, side: Side) -> int:
        """The cells of absorber on a side."""
        return self.absorber.cells if side in self.absorbing else 0


def nearest(position: Point, spacing: Point) -> Index:
    """The node nearest to a position, the lower one half way between two, as in gprMax."""
    return tuple(ceil(p / step - 0.5) for p, step in zip(position, spacing, strict=True))

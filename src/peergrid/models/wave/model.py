"""A model of seismic waves as data: the keys of a model file (`docs/waves.md`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError, about, extra
from peergrid.grid import Dtype
from peergrid.io.arrays import read_array
from peergrid.io.rule import Count, FileName, Finite, NotNegative, Positive, PositiveCount, Rule, Title, shown
from peergrid.models.model import Head, Memory, RunSpec, Snapshots
from peergrid.models.survey import Shift, Survey, Vector
from peergrid.models.wave.medium import ANGLES, PARAMETERS, Medium, check_limits
from peergrid.models.wave.propagator import Propagator
from peergrid.models.wave.scheme import Absorber, Frame, Scheme, TimeOrder
from peergrid.models.wave.segy import check_segy
from peergrid.models.wave.shot import PointSource, Shot
from peergrid.models.waveforms import Doubles, Waveform

if TYPE_CHECKING:
    from peergrid.models.wave.results import BuiltWaves

Place = Annotated[tuple[Finite, ...], Rule("two metres in 2D, three in 3D", lambda v: len(v) in (2, 3))]
Lengths = Annotated[tuple[Positive, ...], Rule("two lengths in 2D, three in 3D", lambda v: len(v) in (2, 3))]
Steps = Annotated[int, Rule("a whole number from 1 to 1000000000", lambda v: 1 <= v <= 10**9)]
Order = Annotated[int, Rule("an even number from 2 to 16", lambda v: v in range(2, 17, 2))]
Courant = Annotated[float, Rule("a number above 0 and not above 1 (the limit of stability)", lambda v: 0 < v <= 1)]
KINDS = {
    "acoustic": {"velocity", "density"},
    "vti": {"velocity", "epsilon", "delta", "elliptical"},
    "tti": {*PARAMETERS, "elliptical"} - {"density"},
}
THICKNESS: Mapping[Absorber, int] = {"sponge": 40, "cpml": 10}  # cells of layers
TILTED_LAYER = 20  # that of cpml around tilted axes
STATES = {"acoustic": 2, "vti": 4, "tti": 6}  # state fields


@dataclass(frozen=True)
class ParameterFile:
    """A parameter at every node, from a file; dataset: the array's name in HDF5 and Zarr, where there are several."""

    file: FileName
    dataset: Title = ""


Parameter = float | ParameterFile


@dataclass(frozen=True)
class GridSpec:
    """The table `[grid]`: extent in metres from the first node to the last, spacing, duration in seconds or steps.

    layer: cells, by default 40 of a sponge, or 10 of perfectly matched layers, 20 around tilted axes; order, courant,
    free_surface, dtype, absorber and time_order: as in `Scheme`.
    """

    size: Lengths
    spacing: Positive | Lengths
    time: Positive | None = None
    steps: Steps | None = None
    order: Order = 8
    courant: Courant = 0.7
    layer: Count | None = None
    free_surface: bool = False
    dtype: Dtype = "float32"
    absorber: Absorber = "sponge"
    time_order: TimeOrder = 2


@dataclass(frozen=True)
class MediumSpec:
    """The table `[medium]`: numbers or files; angles in degrees.

    elliptical: metres around sources up to which epsilon is as delta, see `Medium.elliptical`.
    """

    velocity: Parameter
    density: Parameter | None = None
    epsilon: Parameter | None = None
    delta: Parameter | None = None
    tilt: Parameter | None = None
    azimuth: Parameter | None = None
    elliptical: Positive | None = None


@dataclass(frozen=True)
class Layer:
    """The parameters that differ from a depth (m) on; later layers replace earlier ones."""

    top: NotNegative
    velocity: Finite | None = None
    density: Finite | None = None
    epsilon: Finite | None = None
    delta: Finite | None = None
    tilt: Finite | None = None
    azimuth: Finite | None = None


@dataclass(frozen=True)
class SourceSpec:
    """A point source."""

    position: Place
    waveform: Waveform


@dataclass(frozen=True)
class ReceiverSpec:
    """A receiver."""

    position: Place


@dataclass(frozen=True)
class ReceiverArray:
    """`count` receivers at equal distances on the line from `first` to `last`, both included."""

    first: Place
    last: Place
    count: Annotated[int, Rule("a whole number not below 2", lambda v: v >= 2)]


@dataclass(frozen=True)
class Output:
    """The files that are written beside gather.h5.

    snapshots: one of the waves every so many steps, 0 for none, on every `stride`-th node; picture: of the gather;
    segy: the gather as SEG-Y too, at a sampling of whole microseconds; gain: of the section of a survey, automatic or
    none.
    """

    snapshots: Count = 0
    stride: PositiveCount = 1
    picture: bool = True
    segy: bool = False
    gain: Literal["agc", "none"] = "agc"


@dataclass(frozen=True)
class WaveModel:
    """A whole model file."""

    grid: GridSpec
    medium: MediumSpec
    model: Head = Head()
    layers: tuple[Layer, ...] = field(default=(), metadata={"key": "layer"})
    sources: tuple[SourceSpec, ...] = field(default=(), metadata={"key": "source"})
    receivers: tuple[ReceiverSpec, ...] = field(default=(), metadata={"key": "receiver"})
    receiver_arrays: tuple[ReceiverArray, ...] = field(default=(), metadata={"key": "receiver_array"})
    output: Output = Output()
    run: RunSpec = RunSpec()
    survey: Survey | None = None
    file: str = field(default="", compare=False, repr=False, metadata={"place": lambda _: ""})  # see `named`

    @property
    def title(self) -> str:
        return self.model.title

    @property
    def dtype(self) -> Dtype:
        return self.grid.dtype

    @property
    def snapshots(self) -> Snapshots:
        return Snapshots(self.output.snapshots, self.waves, self.output.stride)

    @property
    def equations(self) -> str:
        """acoustic, vti or tti."""
        return self.model.kind[:-2]

    @property
    def ndim(self) -> int:
        return int(self.model.kind[-2])

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes."""
        return ("x", "z") if self.ndim == 2 else ("x", "y", "z")

    @property
    def waves(self) -> tuple[str, ...]:
        """The fields that snapshots have."""
        return ("u",) if self.equations == "acoustic" else ("p", "r")

    @property
    def spacings(self) -> tuple[float, ...]:
        """Metres between nodes along each axis."""
        h = self.grid.spacing
        return h if isinstance(h, tuple) else (h,) * self.ndim

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes of the medium along each axis."""
        return tuple(round(length / h) + 1 for length, h in zip(self.grid.size, self.spacings, strict=True))

    @property
    def shape(self) -> tuple[int, ...]:
        density, tilt = (None if given is None else 1.0 for given in (self.medium.density, self.medium.tilt))
        return Frame(Medium(self.nodes, self.spacings, 1000.0, density, tilt=tilt), self.scheme).shape

    @property
    def scheme(self) -> Scheme:
        """The discretisation."""
        grid = self.grid
        usual = TILTED_LAYER if self.equations == "tti" and grid.absorber == "cpml" else THICKNESS[grid.absorber]
        layer = usual if grid.layer is None else grid.layer
        return Scheme(grid.order, grid.courant, layer, grid.free_surface, grid.dtype, grid.absorber, grid.time_order)

    def named(self, file: str) -> Self:
        return replace(self, file=file)

    def with_steps(self, steps: int) -> Self:
        return replace(self, grid=replace(self.grid, steps=steps, time=None))

    @property
    def anchors(self) -> tuple[Vector, Vector]:
        """The first source and the first receiver. Raises UsageError if there is none."""
        heard = [*(one.position for one in self.receivers), *(one.first for one in self.receiver_arrays)]
        if not heard:
            raise UsageError("A survey is expected to have a receiver, got none; add a [[receiver]].")
        return self.sources[0].position, heard[0]

    def moved(self, shift: Shift) -> Self:
        """The model of one shot."""

        def along(place: Vector, way: Vector) -> Vector:
            return tuple(a + b for a, b in zip(place, way, strict=True))

        return replace(
            self,
            survey=None,
            sources=tuple(replace(s, position=along(s.position, shift.sources)) for s in self.sources),
            receivers=tuple(replace(r, position=along(r.position, shift.receivers)) for r in self.receivers),
            receiver_arrays=tuple(
                replace(a, first=along(a.first, shift.receivers), last=along(a.last, shift.receivers))
                for a in self.receiver_arrays
            ),
        )

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        item, nodes = 4 if self.grid.dtype == "float32" else 8, prod(self.shape)
        states = STATES[self.equations] + (self.ndim if self.medium.density is not None else 0)
        passes = 2 if self.grid.time_order == 4 else 1
        states += passes - 1 + passes * self._layers
        varied = sum(map(self._varies, PARAMETERS))
        given = varied + 2 if varied else 0  # numbers take no arrays
        making = given * (8 + item) + 24 if varied else 0
        cells = nodes * (making + (states * 2 + given) * item * computing + (2 * item + 16) * writing) + (64 << 20)
        receivers = len(self.receivers) + sum(array.count for array in self.receiver_arrays)
        with about(self.file):
            steps = self.steps
        records = steps * (3 * receivers * item + 32 * len(self.sources))
        return Memory(cells, records, steps, nodes * item * 2 * states)

    def _varies(self, name: str) -> bool:
        """True if a parameter differs from node to node: from a file, in layers, at a free surface or a source."""
        given = getattr(self.medium, name)
        if name == "epsilon" and self.medium.elliptical is not None:
            return True
        mirrored = self.grid.free_surface and name in ("velocity", "tilt")
        return isinstance(given, ParameterFile) or self._in_layers(name) or (given is not None and mirrored)

    @property
    def _layers(self) -> int:
        """The number of state fields of perfectly matched layers, in fields of the whole grid, rounded up."""
        if self.grid.absorber != "cpml":
            return 0
        cells = 2 * (self.scheme.layer + 2 * self.scheme.order)
        memories = self.ndim + 1 if self.equations == "tti" else 2
        return ceil(sum(memories * min(1.0, cells / n) for n in self.shape))

    def check_results(self) -> None:
        if self.output.segy and find_spec("segyio") is None:
            raise UsageError(f"output.segy needs the library segyio, which is not installed; {extra('seismic')}.")
        if self.output.segy:
            with about(self.file):
                check_segy(self.steps, self._clock.dt, self.grid.size)

    def build(self) -> BuiltWaves:
        from peergrid.models.wave.results import BuiltWaves  # which takes a model

        with about(self.file):
            return BuiltWaves(self)

    @property
    def steps(self) -> int:
        """The steps of the run."""
        return self.grid.steps or self._clock.steps(self.grid.time or 0.0)

    @property
    def _clock(self) -> Propagator:
        """Waves with the time steps of the model's: of a column, where depth is all that parameters vary with.

        A medium that fits nowhere is refused before it has arrays.
        """
        if any(isinstance(getattr(self.medium, name), ParameterFile) for name in PARAMETERS):
            return self.propagator
        nodes = self._contrasts
        column = (*(1,) * (self.ndim - 1), len(nodes))
        return Propagator(Medium(column, self.spacings, **self._parameters(column, nodes)), self.scheme)

    @property
    def _contrasts(self) -> NDArray[np.int64]:
        """The nodes of a column that are nearer to the top of a layer than differences reach, and its ends."""
        last, reach = self.nodes[-1] - 1, 2 * self.scheme.order
        found = {0, last}
        for layer in self.layers:
            top = ceil(layer.top / self.spacings[-1])
            found.update(range(max(0, top - reach), min(last, top + reach) + 1))
        return np.array(sorted(found), dtype=np.int64)

    @cached_property
    def propagator(self) -> Propagator:
        """The waves of the medium, with its parameters read."""
        medium = Medium(self.nodes, self.spacings, **self._parameters(self.nodes, np.arange(self.nodes[-1])))
        plain = Propagator(medium, self.scheme)
        if self.medium.elliptical is None:
            return plain
        around = [source.position for source in self.sources]
        return Propagator(medium.elliptical(around, self.medium.elliptical), self.scheme, plain.dt)

    @cached_property
    def shot(self) -> Shot:
        """All sources at once."""
        sources = [PointSource(source.position, source.waveform) for source in self.sources]
        return Shot(self.propagator, sources, self.places, self.steps)

    @property
    def places(self) -> Doubles:
        """The positions of all receivers, single ones first, metres."""
        lines = [np.linspace(array.first, array.last, array.count) for array in self.receiver_arrays]
        single = np.array([receiver.position for receiver in self.receivers], dtype=np.float64)
        return np.concatenate([single.reshape(-1, self.ndim), *lines])

    def _parameters(self, nodes: tuple[int, ...], down: NDArray[np.int64]) -> Mapping[str, Any]:
        """The parameters of a medium of so many nodes; down: the numbers of its nodes along z."""
        found: dict[str, Any] = {}
        depth = down.astype(np.float64) * self.spacings[-1]
        for name in PARAMETERS:
            given = getattr(self.medium, name)
            if given is None:
                continue
            values = self._array(name, given) if isinstance(given, ParameterFile) else given
            if self._in_layers(name):
                values = self._layered(name, np.broadcast_to(values, nodes), depth)
            found[name] = _in_radians(name, values)
            file = shown(Path(given.file).name) if isinstance(given, ParameterFile) else ""
            check_limits(name, found[name], f"medium.{name}", file)
        return found

    def _array(self, name: str, given: ParameterFile) -> NDArray[Any]:
        return read_array(Path(given.file), given.dataset, f"medium.{name}", self.nodes)

    def _in_layers(self, name: str) -> bool:
        return any(getattr(layer, name) is not None for layer in self.layers)

    def _layered(self, name: str, values: NDArray[Any], depth: Doubles) -> NDArray[Any]:
        """The values with those of the layers, each from its top down."""
        found = values.astype(np.float64)  # whole numbers of a file would cut those of layers
        for number, layer in enumerate(self.layers, start=1):
            if (value := getattr(layer, name)) is not None:
                check_limits(name, _in_radians(name, value), f"layer[{number}].{name}")
                found[..., depth >= layer.top * (1 - 1e-12)] = value
        return found


def _in_radians(name: str, values: Any) -> Any:
    """Values of a parameter as a medium takes them: angles in radians, which are degrees in files."""
    return np.radians(values) if name in ANGLES else values

"""A rasterised model of electromagnetic fields as data: media on a Yee grid, absorbers, sources, receivers.

Node (i, j, k) lies at (i dx, j dy, k dz). Ex of that node lies half a cell further along x, Ey along y, Ez along z; Hx
lies half a cell further along y and z, Hy along z and x, Hz along x and y. Each component of each node has a medium of
its own, so that interfaces may be averaged and thin wires and plates exist.

In the modes of two dimensions the grid is one cell thick along the axis that the mode names: TMz has Ez, Hx and Hy,
TEz has Hz, Ex and Ey; nodes have index 0 along that axis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import gcd, inf, isinf, pi, sqrt
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Dtype, Index
from peergrid.models.fdtd3d.constants import EPSILON_0
from peergrid.models.waveforms import Doubles

Axis = Literal["x", "y", "z"]
Mode = Literal["3D", "TMx", "TMy", "TMz", "TEx", "TEy", "TEz"]
Side = Literal["x-", "x+", "y-", "y+", "z-", "z+"]
Component = Literal["Ex", "Ey", "Ez", "Hx", "Hy", "Hz"]
Current = Literal["Ix", "Iy", "Iz"]
Formulation = Literal["HORIPML", "MRIPML"]
AXES: tuple[Axis, ...] = get_args(Axis)
SIDES: tuple[Side, ...] = get_args(Side)
COMPONENTS: tuple[Component, ...] = get_args(Component)
MediaIds = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Pole:
    """A term of a medium's susceptibility against time, χ(t) = Re(weight · exp(rate t)), t > 0; both per second.

    conductivity: the constant part that goes with it, in units of ε₀ per second.
    """

    weight: complex
    rate: complex
    conductivity: float = 0.0


def debye(strength: float, relaxation: float) -> Pole:
    """A Debye pole: ε gains strength / (1 + iωτ), τ the relaxation time in seconds."""
    return Pole(strength / relaxation, -1 / relaxation)


def lorentz(strength: float, frequency: float, damping: float) -> Pole:
    """A Lorentz pole: ε gains strength ω₀² / (ω₀² + 2iωδ - ω²); ω₀ / 2π in Hz, δ per second and below ω₀."""
    square = (2 * pi * frequency) ** 2
    ringing = sqrt(square - damping**2)
    return Pole(-1j * strength * square / ringing, complex(-damping, ringing))


def drude(frequency: float, collisions: float) -> Pole:
    """A Drude pole: ε loses ωp² / (ω² - iωγ); ωp / 2π in Hz, γ per second."""
    square = (2 * pi * frequency) ** 2
    return Pole(-square / collisions, -collisions, square / collisions)


@dataclass(frozen=True)
class Medium:
    """A medium: relative permittivity (of a dispersive one, at infinite frequency) and permeability, and losses.

    conductivity: S/m, infinite for a perfect conductor; magnetic_loss: Ω/m, infinite for a perfect magnetic conductor.
    """

    name: str
    permittivity: float = 1.0
    conductivity: float = 0.0
    permeability: float = 1.0
    magnetic_loss: float = 0.0
    poles: tuple[Pole, ...] = ()

    @property
    def stops_electric(self) -> bool:
        """True where the electric field stays zero."""
        return isinf(self.conductivity)

    @property
    def stops_magnetic(self) -> bool:
        """True where the magnetic field stays zero."""
        return isinf(self.magnetic_loss)

    def relative(self, omega: Doubles) -> NDArray[np.complex128]:
        """The relative permittivity, all losses in it, at angular frequencies above 0 (1/s); fields as exp(iωt)."""
        total = self.permittivity + self.conductivity / (1j * omega * EPSILON_0)
        for pole in self.poles:
            rate, weight = complex(pole.rate), complex(pole.weight)
            total = total + 0.5 * (weight / (1j * omega - rate) + weight.conjugate() / (1j * omega - rate.conjugate()))
            total = total + pole.conductivity / (1j * omega)
        return np.asarray(total, np.complex128)


VACUUM = Medium("free_space")
PEC = Medium("pec", conductivity=inf)
PMC = Medium("pmc", magnetic_loss=inf)


@dataclass(frozen=True)
class Grading:
    """A parameter of an absorber from its inner face (depth 0) to its wall (1): least + (most - least) depth^order.

    Order 0 is the constant `most`. reverse: the same from the wall to the inner face. most None, for a conductivity
    alone: 0.8 (order + 1) / (η₀ spacing √(ε μ)), ε and μ the means of the absorber's side.
    """

    least: float = 0.0
    most: float | None = 0.0
    order: int = 0
    reverse: bool = False


@dataclass(frozen=True)
class Stretch:
    """A factor κ + σ / (α + iωε₀) by which an absorber stretches the axis normal to it; α and σ in S/m."""

    alpha: Grading = Grading()
    kappa: Grading = Grading(1.0, 1.0)
    sigma: Grading = Grading(0.0, None, 4)


@dataclass(frozen=True)
class Slab:
    """The absorber of one side: its cells, and the mean relative permittivity and permeability of what it covers."""

    cells: int
    permittivity: float = 1.0
    permeability: float = 1.0


@dataclass(frozen=True)
class Absorber:
    """Perfectly matched layers, backed by perfect conductors; a side without a slab is a perfect conductor.

    formulation: HORIPML multiplies the stretches, MRIPML adds them; one or two of them.
    """

    slabs: tuple[tuple[Side, Slab], ...] = ()
    formulation: Formulation = "HORIPML"
    stretches: tuple[Stretch, ...] = (Stretch(),)


class Waveform(Protocol):
    """An amplitude against time, such as those of `models.waveforms`."""

    def sample(self, times: Doubles) -> Doubles:
        """The amplitudes at times in seconds."""


@dataclass(frozen=True)
class Drive:
    """A waveform that begins at `start` (its time 0) and is cut off after `stop`, seconds."""

    waveform: Waveform
    start: float = 0.0
    stop: float = inf

    def samples(self, steps: int, dt: float, half: bool) -> Doubles:
        """Amplitudes at n dt, n = 0 to steps - 1, or half a step later; zero unless n dt is within start and stop."""
        times = dt * np.arange(steps, dtype=np.float64)
        values = self.waveform.sample(times - self.start + (0.5 * dt if half else 0.0))
        return np.where(self.active(steps, dt), values, 0.0)

    def active(self, steps: int, dt: float) -> NDArray[np.bool_]:
        """True where n dt is within start and stop, n = 0 to steps - 1."""
        times = dt * np.arange(steps, dtype=np.float64)
        return (times >= self.start) & (times <= self.stop)


@dataclass(frozen=True)
class ElectricDipole:
    """A current (A) along the edge of a node, as long as the edge: an infinitesimal dipole."""

    axis: Axis
    node: Index
    drive: Drive
    name: str = ""


@dataclass(frozen=True)
class MagneticDipole:
    """A magnetic current along an axis, times its length: V m."""

    axis: Axis
    node: Index
    drive: Drive
    name: str = ""


@dataclass(frozen=True)
class VoltageSource:
    """A voltage (V) across the edge of a node, in series with a resistance (Ω); with 0 Ω the field is prescribed."""

    axis: Axis
    node: Index
    drive: Drive
    resistance: float
    name: str = ""


@dataclass(frozen=True)
class TransmissionLine:
    """A line of so many ohms that ends at the edge of a node; `drive` is the voltage of the wave sent along it."""

    axis: Axis
    node: Index
    drive: Drive
    resistance: float
    name: str = ""


@dataclass(frozen=True)
class CoaxialFeed:
    """A coaxial line of so many ohms behind a conducting plane, whose inner conductor goes on as a wire from a node on.

    drive: the voltage that the line would have if it were open, twice that of the wave sent along it.
    """

    axis: Axis
    node: Index
    drive: Drive
    resistance: float
    name: str = ""


@dataclass(frozen=True)
class PlaneWave:
    """A plane wave (V/m) inside the box of nodes from `lo` to `hi`; outside there is only what is scattered.

    direction: whole numbers m; it goes along (m_x / dx, m_y / dy, m_z / dz), so that its fields are the same at nodes
    with the same m · node. polarisation: that of its electric field, normal to that and of length 1. The waveform is
    the field at the node `origin`, by default one before the box along each axis. medium: that of the box's faces;
    None: along one axis, the layers that the wave meets there, as they are beside the box.
    """

    lo: Index
    hi: Index
    direction: Index
    polarisation: tuple[float, float, float]
    drive: Drive
    medium: str | None = VACUUM.name
    origin: Index | None = None
    name: str = ""

    @property
    def slopes(self) -> Index:
        """The direction without a common factor: places of the wave from node to node along x, y and z."""
        common = gcd(*self.direction)
        return tuple(m // common for m in self.direction)

    def place(self, node: Index) -> int:
        """The place of a node on the wave: 0 at the origin, the same where its fields are."""
        ends = zip(self.slopes, self.lo, self.hi, strict=True)
        origin = self.origin or tuple(hi + 1 if m < 0 else lo - (m > 0) for m, lo, hi in ends)
        return sum(m * (i - o) for m, i, o in zip(self.slopes, node, origin, strict=True))

    @property
    def places(self) -> tuple[int, int]:
        """The first and the last place of the box's nodes and of those around it that a wave has."""
        found = [self.place(node) for node in product(*((lo - 1, hi) for lo, hi in zip(self.lo, self.hi, strict=True)))]
        return max(0, min(found)), max(found)

    @property
    def count(self) -> int:
        """The number of these places."""
        first, last = self.places
        return last + 1 - first


Source = ElectricDipole | MagneticDipole | VoltageSource | TransmissionLine | CoaxialFeed | PlaneWave


@dataclass(frozen=True)
class Receiver:
    """Records components at a node, and currents through the face around an edge of it."""

    node: Index
    outputs: tuple[Component | Current, ...] = COMPONENTS
    name: str = ""


@dataclass(frozen=True)
class Wire:
    """A perfectly conducting wire thinner than a cell: so many edges along an axis from a node on, radius in metres."""

    axis: Axis
    node: Index
    edges: int
    radius: float


@dataclass(frozen=True)
class FarField:
    """A box of nodes around all that radiates or scatters, from whose faces the field far away is worked out.

    frequencies: Hz; theta, phi: the directions of which results have every pair, degrees from the z axis, and from the
    x axis towards y. In a box around that of a plane wave it is the scattered field's. Outside must be vacuum.
    """

    lo: Index
    hi: Index
    frequencies: tuple[float, ...]
    theta: tuple[float, ...] = tuple(float(angle) for angle in range(0, 181, 5))
    phi: tuple[float, ...] = tuple(float(angle) for angle in range(0, 360, 5))
    name: str = ""


@dataclass(frozen=True)
class Pictures:
    """The pictures of a run: of the media, of receivers, and of snapshots, four of which are drawn in slices.

    format: of stills, None for none; colours: each snapshot's own range of amplitudes, or a common one; animation: of
    all snapshots of the first field in the slice normal to the axis `slice`; width: of it in pixels; through: a point
    that slices go through, metres, by default the first source; surfaces: the share of the amplitude that colours reach
    to, at which surfaces of snapshots are drawn, 0 for none; gain: of sections, automatic or none.
    """

    format: Literal["png", "pdf", "svg"] | None = None
    colours: Literal["own", "common"] = "own"
    animation: Literal["gif", "mp4", "none"] = "none"
    slice: Axis = "y"
    through: tuple[float, float, float] | None = None
    width: int = 720
    surfaces: float = 0.0
    gain: Literal["agc", "none"] = "agc"

    def animated(self, flat: int | None) -> tuple[int, int, int]:
        """The axis that the animated slice is normal to, and those across and up; flat: the axis of a plane."""
        normal = AXES.index(self.slice) if flat is None else flat
        across, up = (axis for axis in range(3) if axis != normal)
        return normal, across, up


@dataclass(frozen=True, eq=False)
class Domain:
    """A rasterised model.

    shape: cells along x, y and z; spacing: (dx, dy, dz) in metres; dt: seconds of a step; steps: of the run, so that
    records have one sample more; media: at most 2³² of them; ids: for Ex, Ey, Ez, Hx, Hy, Hz in this order the index of
    the medium of each node, shape (6, nx + 1, ny + 1, nz + 1), with 1 node along the axis that a mode of two
    dimensions names. Components that a mode lacks are not read, neither are those outside the grid.
    """

    shape: Index
    spacing: tuple[float, float, float]
    dt: float
    steps: int
    media: tuple[Medium, ...]
    ids: MediaIds
    mode: Mode = "3D"
    dtype: Dtype = "float32"
    absorber: Absorber = Absorber()
    sources: tuple[Source, ...] = ()
    receivers: tuple[Receiver, ...] = ()
    far_fields: tuple[FarField, ...] = ()
    wires: tuple[Wire, ...] = ()
    title: str = ""

    @property
    def nodes(self) -> Index:
        """Nodes along x, y and z."""
        return tuple(n + (self.invariant != axis) for axis, n in enumerate(self.shape))

    @property
    def invariant(self) -> int | None:
        """The axis along which nothing varies; None in three dimensions."""
        return None if self.mode == "3D" else AXES.index(self.mode[-1])

    @property
    def live(self) -> tuple[Component, ...]:
        """The components that the mode has."""
        return live(self.mode)

    def moved(self, sources: Index, receivers: Index) -> Domain:
        """The same with its dipoles, and its receivers, so many nodes further along x, y and z; other sources stay."""
        dipoles = tuple(
            replace(one, node=_further(one.node, sources)) if isinstance(one, ElectricDipole | MagneticDipole) else one
            for one in self.sources
        )
        heard = tuple(replace(one, node=_further(one.node, receivers)) for one in self.receivers)
        return replace(self, sources=dipoles, receivers=heard)


def live(mode: Mode) -> tuple[Component, ...]:
    """The components that a mode has."""
    if mode == "3D":
        return COMPONENTS
    own = "E" if mode.startswith("TM") else "H"
    return tuple(c for c in COMPONENTS if (c[0] == own) == (c[1] == mode[-1]))


def _further(node: Index, way: Index) -> Index:
    return tuple(i + s for i, s in zip(node, way, strict=True))

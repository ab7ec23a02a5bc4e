"""Fields far away from what is in a box, at some frequencies: spectra on the box's faces, and their transform.

While a run goes on sums of E and H times cos ωt and sin ωt are kept on the six faces alone. With the currents n × H and
-n × E of the faces, and the vectors N and L that they make in a direction (θ, φ),

    r E_θ = -(iω/4πc) (L_φ + η₀ N_θ) exp(-iωr/c),   r E_φ = (iω/4πc) (L_θ - η₀ N_φ) exp(-iωr/c),

r from the middle of the box, time factor exp(iωt). Components of E lie in the faces; the H that belongs to each is the
mean of the two half a cell before and behind. Sums are of second order in the spacing.

Method: A. Taflove and S. Hagness, Computational Electrodynamics, 3rd ed., 2005, chapter 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from peergrid.grid import Array, Box, Field, Index, Signal
from peergrid.models.fdtd3d.constants import ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import AXES, Component, Domain, FarField
from peergrid.stencil import Stage, Update, stencil

Complex = NDArray[np.complex128]
AT_ONCE = 4  # frequencies of one update
PARTS = ("E.real", "E.imag", "H.real", "H.imag")


@dataclass(frozen=True)
class Patch:
    """A component of E in one face of a box, with the H across it: what makes two of the face's currents.

    normal, electric, magnetic: axes, 0 to 2; outwards: the sign of the face's normal; box: the cells of E.
    """

    name: str
    normal: int
    electric: int
    magnetic: int
    outwards: int
    box: Box

    @property
    def cross(self) -> int:
        """The sign of E × H along the axis `normal`."""
        return 1 if (self.normal + 1) % 3 == self.electric else -1

    def part(self, frequency: int, part: str) -> str:
        """The name of a sum: of which frequency, counted from 0, and which of `PARTS`."""
        return f"{self.name}.{frequency}.{part}"

    def places(self, spacing: tuple[float, ...]) -> list[Array]:
        """Positions along each axis, metres."""
        return [
            (np.arange(lo, hi) + 0.5 * (axis == self.electric)) * spacing[axis]
            for axis, (lo, hi) in enumerate(zip(self.box.lo, self.box.hi, strict=True))
        ]

    def areas(self, spacing: tuple[float, ...]) -> Array:
        """The share of the face that each cell stands for (m²), at the face's edges half a cell."""
        ends = np.ones(self.box.shape[self.magnetic])
        ends[[0, -1]] = 0.5
        shape = tuple(-1 if axis == self.magnetic else 1 for axis in range(3))
        area = spacing[self.electric] * spacing[self.magnetic] * ends.reshape(shape)
        return np.broadcast_to(area, self.box.shape)


@dataclass(frozen=True)
class Surface:
    """The faces of a box as placed on the grid of a domain."""

    domain: Domain
    wished: FarField
    name: str
    patches: tuple[Patch, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the sums, fields of the problem."""
        count = range(len(self.wished.frequencies))
        return tuple(patch.part(k, part) for patch in self.patches for k in count for part in PARTS)

    def stage(self, fields: Mapping[Component, Field]) -> Stage:
        """The stage that ends a step: everything is added up."""
        grid = next(iter(fields.values())).grid
        times = self.domain.dt * np.arange(1, self.domain.steps + 1, dtype=np.float64)
        turning = [
            tuple(
                grid.signal(f"{self.name}.{k}.{name}", function(2 * pi * frequency * times))
                for name, function in (("cosine", np.cos), ("sine", np.sin))
            )
            for k, frequency in enumerate(self.wished.frequencies)
        ]
        return Stage(tuple(update for patch in self.patches for update in _sums(patch, fields, turning)))

    def radiation(self, fields: Mapping[str, Array]) -> Radiation:
        """The spectra on the faces, from the final values of `fields`."""
        domain, half = self.domain, np.exp(1j * pi * np.array(self.wished.frequencies) * self.domain.dt)
        electric, magnetic = list[Complex](), list[Complex]()
        for patch in self.patches:
            found = [[fields[patch.part(k, part)].astype(np.float64) for part in PARTS] for k in range(len(half))]
            e = np.stack([one[0] + 1j * one[1] for one in found])
            h = np.stack([(one[2] + 1j * one[3]) * late for one, late in zip(found, half, strict=True)])
            electric.append(np.asarray(e * (domain.dt / domain.spacing[patch.electric]), np.complex128))
            magnetic.append(np.asarray(h * (0.5 * domain.dt / (ETA_0 * domain.spacing[patch.magnetic])), np.complex128))
        return Radiation(self, tuple(electric), tuple(magnetic))


@dataclass(frozen=True, eq=False)
class Radiation:
    """Spectra on the faces of a box, ∫ E exp(-iωt) dt in V s/m and so of H: for each patch, by frequencies first."""

    surface: Surface
    electric: tuple[Complex, ...]
    magnetic: tuple[Complex, ...]

    def far(self, theta: ArrayLike, phi: ArrayLike) -> tuple[Complex, Complex]:
        """r E_θ and r E_φ without the factor exp(-iωr/c), V s; shape (frequencies, *directions).

        theta: from the z axis; phi: from the x axis towards y; degrees, of one shape with one another.
        """
        polar, around = np.broadcast_arrays(np.radians(theta), np.radians(phi))
        st, ct, sp, cp = np.sin(polar), np.cos(polar), np.sin(around), np.cos(around)
        along_theta, along_phi = np.stack([ct * cp, ct * sp, -st]), np.stack([-sp, cp, np.zeros_like(sp)])
        way = np.stack([st * cp, st * sp, ct]).reshape(3, -1)
        found = [np.zeros((len(self.wavenumbers), *polar.shape), np.complex128) for _ in range(2)]
        for k, wavenumber in enumerate(self.wavenumbers):
            n, m = (one.reshape(3, *polar.shape) for one in self._vectors(k, wavenumber, way))
            factor = 1j * wavenumber / (4 * pi)
            found[0][k] = -factor * ((m * along_phi).sum(0) + ETA_0 * (n * along_theta).sum(0))
            found[1][k] = factor * ((m * along_theta).sum(0) - ETA_0 * (n * along_phi).sum(0))
        return found[0], found[1]

    @property
    def power(self) -> Array:
        """The power through the box's faces at each frequency, ∮ Re(E × H*) / 2, in J/Hz as the spectra are."""
        total = np.zeros(len(self.wavenumbers))
        for patch, e, h in zip(self.surface.patches, self.electric, self.magnetic, strict=True):
            through = (e * h.conj()).real * patch.areas(self.surface.domain.spacing)
            total += 0.5 * patch.outwards * patch.cross * through.sum(axis=(1, 2, 3))
        return total

    def directivity(self, theta: ArrayLike, phi: ArrayLike) -> Array:
        """The power per solid angle in a direction over its mean over all directions."""
        along_theta, along_phi = self.far(theta, phi)
        density = (np.abs(along_theta) ** 2 + np.abs(along_phi) ** 2) / (2 * ETA_0)
        return np.asarray(4 * pi * density / self.power.reshape(-1, *(1,) * (density.ndim - 1)))

    @property
    def wavenumbers(self) -> Array:
        """ω/c, 1/m."""
        return 2 * pi * np.array(self.surface.wished.frequencies) / SPEED_OF_LIGHT

    def _vectors(self, k: int, wavenumber: float, way: Array) -> tuple[Complex, Complex]:
        """N and L along x, y and z in some directions, shape (3, directions)."""
        spacing, wished = self.surface.domain.spacing, self.surface.wished
        n, m = (np.zeros(way.shape, np.complex128) for _ in range(2))
        for patch, e, h in zip(self.surface.patches, self.electric, self.magnetic, strict=True):
            weights = patch.areas(spacing)
            phases = [
                np.exp(1j * wavenumber * np.multiply.outer(way[axis], places - middle))
                for axis, (places, middle) in enumerate(
                    zip(patch.places(spacing), _middle(wished, spacing), strict=True)
                )
            ]
            sign = patch.outwards * patch.cross
            n[patch.electric] -= sign * _joined(phases, h[k] * weights)
            m[patch.magnetic] -= sign * _joined(phases, e[k] * weights)
        return n, m


def surfaces(domain: Domain) -> tuple[Surface, ...]:
    """The boxes of a domain's far fields."""
    return tuple(
        Surface(domain, wished, f"far{number}", tuple(_patches(wished, f"far{number}")))
        for number, wished in enumerate(domain.far_fields, start=1)
    )


def faults(domain: Domain, wished: FarField) -> Iterator[str]:
    """Reasons against working a far field out, each as the end of a sentence."""
    if domain.mode != "3D":
        yield f"is expected in mode 3D, got {domain.mode}"
        return
    last = tuple(n - 1 for n in domain.nodes)
    if (
        len(wished.lo) != 3
        or len(wished.hi) != 3
        or not all(1 <= lo < hi <= n - 1 for lo, hi, n in zip(wished.lo, wished.hi, last, strict=True))
    ):
        inner = tuple(n - 1 for n in last)
        yield f"is expected to have a box within nodes 1 to {inner}, got {wished.lo} to {wished.hi}"
    if not wished.frequencies or not all(0 < f < 0.5 / domain.dt for f in wished.frequencies):
        yield f"is expected to have frequencies above 0 and below {0.5 / domain.dt:.4g} Hz, got {wished.frequencies}"


def size(wished: FarField) -> int:
    """Values that the sums of a far field hold."""
    return 4 * len(wished.frequencies) * sum(patch.box.size for patch in _patches(wished, ""))


def _patches(wished: FarField, name: str) -> Iterator[Patch]:
    for normal in range(3):
        for outwards, plane in ((-1, wished.lo[normal]), (1, wished.hi[normal])):
            for electric, magnetic in (((normal + 1) % 3, (normal + 2) % 3), ((normal + 2) % 3, (normal + 1) % 3)):
                spans = {
                    normal: (plane, plane + 1),
                    electric: (wished.lo[electric], wished.hi[electric]),
                    magnetic: (wished.lo[magnetic], wished.hi[magnetic] + 1),
                }
                lo, hi = zip(*(spans[axis] for axis in range(3)), strict=True)
                face = f"{AXES[normal]}{'-' if outwards < 0 else '+'}"
                label = f"{name}.{face}.{AXES[electric]}"
                yield Patch(label, normal, electric, magnetic, outwards, Box(tuple(lo), tuple(hi)))


def _sums(patch: Patch, fields: Mapping[Component, Field], turning: list[tuple[Signal, ...]]) -> Iterator[Update]:
    """The updates of a patch, some frequencies at once."""
    e: Component = f"E{AXES[patch.electric]}"  # type: ignore[assignment]
    h: Component = f"H{AXES[patch.magnetic]}"  # type: ignore[assignment]
    grid, before = fields[e].grid, tuple(-int(axis == patch.normal) for axis in range(3))
    at: Index = (0, 0, 0)

    @stencil
    def transform(e: Any, h: Any, sums: Any, turning: Any) -> None:
        there, across = e[at], h[before] + h[at]
        for parts, signals in zip(sums, turning, strict=True):
            cosine, sine = (signal.now for signal in signals)
            for value, (real, imag) in ((there, parts[:2]), (across, parts[2:])):
                real.next[at] = real[at] + value * cosine
                imag.next[at] = imag[at] - value * sine

    for first in range(0, len(turning), AT_ONCE):
        now = turning[first : first + AT_ONCE]
        sums = [
            tuple(grid.field(patch.part(first + k, part), within=patch.box) for part in PARTS) for k in range(len(now))
        ]
        yield transform(fields[e], fields[h], sums, now).within(patch.box)


def _middle(wished: FarField, spacing: tuple[float, ...]) -> list[float]:
    return [0.5 * (lo + hi) * d for lo, hi, d in zip(wished.lo, wished.hi, spacing, strict=True)]


def _joined(phases: list[Complex], values: Complex) -> Complex:
    """Σ values · the product of the phases of each axis, for each direction."""
    return np.asarray(np.einsum("xyz,dx,dy,dz->d", values, *phases, optimize="optimal"))

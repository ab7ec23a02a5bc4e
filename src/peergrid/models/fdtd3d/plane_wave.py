"""A plane wave along an axis in a box of total field: what it adds to the cells on both sides of the box's faces.

A component next to a face reads one from beyond it, where there is the scattered field alone or the total one: what
the wave is there is added to it, or taken away. In a homogeneous medium the wave is that of a line of cells, worked out
beforehand in double precision by the same scheme, so that nothing of it is left outside the box but rounding. On faces
along its way it varies from cell to cell; there sheets of a cell's thickness carry it themselves between the planes in
which it enters and leaves.

Method: A. Taflove and S. Hagness, Computational Electrodynamics, 3rd ed., 2005, chapter 5 (total field and scattered
field); T. Tan and M. Potter, IEEE Trans. Antennas Propag. 58 (2010) 2641 (the wave by the grid's own scheme).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from peergrid.grid import Box, Field
from peergrid.models.fdtd3d.constants import EPSILON_0, ETA_0, MU_0
from peergrid.models.fdtd3d.domain import AXES, Component, Domain, PlaneWave
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import raw
from peergrid.models.fdtd3d.sources import add
from peergrid.models.fdtd3d.yee import neighbours
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Stage, Update, stencil

SMALL = 1e-12  # of a direction or a polarisation: nothing


@stencil
def put(u: Any, samples: Any) -> None:
    """The signal's sample in place of what there is."""
    u.next[(0,) * u.described.grid.ndim] = samples.now


@stencil
def add_incident(u: Any, incident: Any, share: Any) -> None:
    """Add a share of the wave."""
    at = (0,) * u.described.grid.ndim
    u.next[at] = u[at] + share * incident[at]


@dataclass(frozen=True)
class Series:
    """The wave of one polarisation, sample by sample of a run: E in the first and last plane of the box, step by step
    from before the first one; H half a cell outside of them, half a step later.
    """

    electric: tuple[Doubles, Doubles]
    magnetic: tuple[Doubles, Doubles]


def way_of(wave: PlaneWave) -> tuple[int, int]:
    """The axis (0 to 2) along which a wave goes, and its sign. Raises ValueError where it goes along none."""
    found = [(axis, 1 if d > 0 else -1) for axis, d in enumerate(wave.direction) if abs(d) > SMALL]
    if len(found) != 1:
        raise ValueError(f"no axis: {wave.direction}")
    return found[0]


@dataclass(frozen=True)
class Incident:
    """One polarisation of a wave: E along one axis, H along the other one.

    way: the axis along which it goes; sign: of its direction; e, h: the axes of its fields; all of 0 to 2.
    """

    lattice: Lattice
    wave: PlaneWave
    name: str
    way: int
    sign: int
    e: int
    h: int

    def stages(self, fields: Mapping[Component, Field]) -> tuple[list[Stage], list[Stage]]:
        """The stages that follow the half step of H, and that of E."""
        series, magnetic, electric = self._series(), list[Update](), list[Update]()
        for far in (False, True):
            magnetic.append(self._end(fields[self._named("H", self.h)], far, series.electric[far], "H"))
            electric.append(self._end(fields[self._named("E", self.e)], far, series.magnetic[far], "E"))
        for across, target in ((self.h, self._named("H", self.way)), (self.e, self._named("E", self.way))):
            if self.lattice.along(across) is None or target not in fields:
                continue
            for far in (False, True):
                corrects, carries = self._side(fields[target], target, across, far, series)
                (magnetic if target[0] == "H" else electric).append(corrects)
                magnetic.append(carries[0])
                electric += carries[1:]
        return [Stage(tuple(magnetic))], [Stage(tuple(electric))]

    def _end(self, u: Field, far: bool, samples: Doubles, letter: str) -> Update:
        """The face in which the wave enters or leaves."""
        component = self._named(letter, self.e if letter == "E" else self.h)
        first, last = self.wave.lo[self.way], self.wave.hi[self.way]
        plane = (last if far else first) - (letter == "H" and not far)
        sign = self._sign(component, self.way) * (1 if far else -1)
        box = self._box({self.way: (plane, plane + 1), **self._across(self.e, edges=True), **self._across(self.h)})
        signal = u.grid.signal(f"{self.name}.{component}.{'-+'[far]}", sign * self._factor(component) * samples)
        return add(u, signal).within(box)

    def _side(
        self, u: Field, target: Component, across: int, far: bool, series: Series
    ) -> tuple[Update, tuple[Update, ...]]:
        """A face along the wave's way: its correction, and the sheet that carries the wave there."""
        magnetic = target[0] == "H"
        first, last = self.wave.lo[self.way], self.wave.hi[self.way]
        plane = (self.wave.hi if far else self.wave.lo)[across] - (magnetic and not far)
        other = self._across(self.e, edges=True) if magnetic else self._across(self.h)
        sheet = {self.way: (first, last + 1), across: (plane, plane + 1), **other}
        name = f"{self.name}.{target}.{'-+'[far]}"
        e, h = (u.grid.field(f"{name}.{letter}", within=self._box(sheet)) for letter in "EH")
        share = self._sign(target, across) * (1 if far else -1) * self._factor(target)
        ends = first, last + magnetic
        corrects = add_incident(u, e if magnetic else h, share).within(self._box({**sheet, self.way: ends}))
        return corrects, tuple(self._carried(name, sheet, e, h, series))

    def _carried(
        self, name: str, sheet: dict[int, tuple[int, int]], e: Field, h: Field, series: Series
    ) -> Iterator[Update]:
        """The updates of a sheet: H, E between its ends, and E in these."""
        axis = self.lattice.along(self.way)
        assert axis is not None
        keep_e, factor_e, keep_h, factor_h = self._numbers()
        first, last = sheet[self.way][0], sheet[self.way][1] - 1

        @stencil
        def wave_h(h: Any, e: Any) -> None:
            at = (0,) * h.described.grid.ndim
            ahead = tuple(int(k == axis) for k in range(len(at)))
            h.next[at] = keep_h * h[at] + factor_h * (e[ahead] - e[at])

        @stencil
        def wave_e(e: Any, h: Any) -> None:
            at = (0,) * e.described.grid.ndim
            back = tuple(-int(k == axis) for k in range(len(at)))
            e.next[at] = keep_e * e[at] + factor_e * (h[at] - h[back])

        yield wave_h(h, e).within(self._box({**sheet, self.way: (first, last)}))
        if last - first > 1:
            yield wave_e(e, h).within(self._box({**sheet, self.way: (first + 1, last)}))
        for plane, samples, side in ((first, series.electric[0], "-"), (last, series.electric[1], "+")):
            signal = e.grid.signal(f"{name}.entry{side}", samples[1:])
            yield put(e, signal).within(self._box({**sheet, self.way: (plane, plane + 1)}))

    def _series(self) -> Series:
        """The wave on a line of cells so long that nothing comes back from its end."""
        domain, wave = self.lattice.domain, self.wave
        steps, dt = domain.steps, domain.dt
        keep_e, factor_e, keep_h, factor_h = self._numbers()
        before = (wave.lo if self.sign > 0 else wave.hi)[self.way] - self.sign
        origin = before if wave.origin is None else wave.origin
        places = [self.sign * (plane - origin) for plane in (wave.lo[self.way], wave.hi[self.way])]
        cells = max(max(places) + 2, (steps + max(places)) // 2 + 3)
        e, h = np.zeros(cells + 1), np.zeros(cells + 1)  # h[r] lies between e[r] and e[r + 1]
        sent_e, sent_h = self._sent(steps, dt)
        found_e, found_h = np.zeros((2, steps + 1)), np.zeros((2, steps))
        outside = [places[k] - (1 if (k == 0) == (self.sign > 0) else 0) for k in (0, 1)]
        for n in range(steps):
            found_e[:, n] = e[places]
            h[:cells] = keep_h * h[:cells] + self.sign * factor_h * (e[1:] - e[:-1])
            if self.sign > 0:
                h[0] = sent_h[n]
            found_h[:, n] = h[outside]
            e[1:cells] = keep_e * e[1:cells] + self.sign * factor_e * (h[1:cells] - h[: cells - 1])
            e[0] = sent_e[n + 1]
        found_e[:, steps] = e[places]
        return Series((found_e[0], found_e[1]), (found_h[0], found_h[1]))

    def _sent(self, steps: int, dt: float) -> tuple[Doubles, Doubles]:
        """E where the wave sets out, before each step and after the last, and H half a cell on, half a step later."""
        domain, drive, medium = self.lattice.domain, self.wave.drive, self._medium
        spacing = domain.spacing[self.way]
        slowness = sqrt(EPSILON_0 * medium.permittivity * MU_0 * medium.permeability)
        impedance = ETA_0 * sqrt(medium.permeability / medium.permittivity)
        strength = self.wave.polarisation[self.e]
        times = dt * np.arange(steps + 1, dtype=np.float64)
        later = times[:-1] + 0.5 * dt - 0.5 * spacing * slowness
        e, h = (
            np.where((t >= drive.start) & (t <= drive.stop), drive.waveform.sample(t - drive.start), 0.0)
            for t in (times, later)
        )
        ratio = -self.sign * self._sign(self._named("E", self.e), self.way) * ETA_0 / impedance
        return strength * domain.spacing[self.e] * e, strength * domain.spacing[self.h] * ratio * h

    def _numbers(self) -> tuple[float, float, float, float]:
        """E ← keep E + factor (difference of H), and the same of H; differences along the axis."""
        e, h = self._named("E", self.e), self._named("H", self.h)
        keep_e, keep_h = (raw(c, self._medium, self.lattice.domain.dt).keep for c in (e, h))
        factors = (self._sign(c, self.way) * self._factor(c) for c in (e, h))
        return (keep_e, next(factors), keep_h, next(factors))

    @property
    def _medium(self) -> Any:
        return next(medium for medium in self.lattice.domain.media if medium.name == self.wave.medium)

    def _factor(self, component: Component) -> float:
        unit = self.lattice.scale(component) * (1 / ETA_0 if component[0] == "E" else ETA_0)
        return raw(component, self._medium, self.lattice.domain.dt).factor * unit

    def _sign(self, component: Component, along: int) -> int:
        """The sign of the difference along an axis in a component's curl."""
        return next(sign for sign, axis, _ in neighbours(component) if axis == along)

    def _across(self, axis: int, *, edges: bool = False) -> dict[int, tuple[int, int]]:
        """The nodes of the box along an axis, or its edges."""
        return {axis: (self.wave.lo[axis], self.wave.hi[axis] + (not edges))}

    def _box(self, spans: Mapping[int, tuple[int, int]]) -> Box:
        """Spans along the domain's axes as a box of the grid."""
        lo, hi = zip(*(spans[axis] for axis in self.lattice.axes), strict=True)
        return Box(tuple(lo), tuple(hi))

    @staticmethod
    def _named(letter: str, axis: int) -> Component:
        found: Component = f"{letter}{AXES[axis]}"  # type: ignore[assignment]
        return found


def incidents(lattice: Lattice) -> Iterator[Incident]:
    """The polarisations of a domain's plane waves."""
    domain = lattice.domain
    waves = (source for source in domain.sources if isinstance(source, PlaneWave))
    for number, wave in enumerate(waves, start=1):
        way, sign = way_of(wave)
        for e in ((way + 1) % 3, (way + 2) % 3):
            if abs(wave.polarisation[e]) > SMALL and f"E{AXES[e]}" in domain.live:
                yield Incident(lattice, wave, f"wave{number}.{AXES[e]}", way, sign, e, 3 - way - e)


def faults(domain: Domain, wave: PlaneWave) -> Iterator[str]:
    """Reasons against carrying a plane wave out, each as the end of a sentence."""
    try:
        way, _ = way_of(wave)
    except ValueError:
        yield f"is expected to go along an axis, got direction {wave.direction}; rotate the model"
        return
    if way == domain.invariant or abs(wave.polarisation[way]) > SMALL:
        yield f"is expected to have its fields across the way it goes, and to go in the plane of mode {domain.mode}"
    medium = next((medium for medium in domain.media if medium.name == wave.medium), None)
    if medium is None or medium.poles or medium.stops_electric or medium.stops_magnetic:
        yield f"is expected in a medium of the domain without poles, got '{wave.medium}'"
    if not any(abs(p) > SMALL and f"E{AXES[k]}" in domain.live for k, p in enumerate(wave.polarisation)):
        yield f"is expected to have a field that mode {domain.mode} has, got polarisation {wave.polarisation}"
    for axis, name in enumerate(AXES):
        last = domain.nodes[axis] - 1
        if axis != domain.invariant and not 1 <= wave.lo[axis] < wave.hi[axis] <= last - 1:
            yield (
                f"is expected in a box within nodes 1 to {last - 1} along {name}, got {wave.lo[axis]} to "
                f"{wave.hi[axis]}"
            )
    if not _begins_before(domain, wave):
        yield f"is expected to set out before its box, got plane {wave.origin}"


def _begins_before(domain: Domain, wave: PlaneWave) -> bool:
    """True where there is a cell at least between the plane in which a wave sets out and its box."""
    way, sign = way_of(wave)
    first = wave.lo[way] if sign > 0 else wave.hi[way]
    return wave.origin is None or sign * (first - wave.origin) >= 1

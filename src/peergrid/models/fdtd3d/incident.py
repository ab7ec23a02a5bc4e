"""A plane wave in a homogeneous medium, by the grid's own scheme on a line of cells.

Where a wave goes along (m_x / dx, m_y / dy, m_z / dz) with whole numbers m, all nodes with the same place
r = m · (node - origin) have the same fields. So Yee's scheme becomes one on a line, on which the neighbour along x is
m_x places on, along y m_y, along z m_z; nothing of the wave is left where it is subtracted from that on the grid but
rounding. The first places, as many as the largest |m|, are given the waveform itself; there the wave sets out.

Method: T. Tan and M. Potter, IEEE Trans. Antennas Propag. 58 (2010) 2641.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from peergrid.grid import Index
from peergrid.models.fdtd3d.constants import EPSILON_0, MU_0
from peergrid.models.fdtd3d.domain import AXES, Component, Domain, Medium, PlaneWave
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import placed
from peergrid.models.fdtd3d.yee import neighbours
from peergrid.models.waveforms import Doubles

SMALL = 1e-9  # of a polarisation: nothing


@dataclass(frozen=True)
class LineUpdate:
    """The update of one component on the line: values ← keep · values + factor · (differences).

    terms: of each difference its sign, the cells ahead, those behind, and of which component.
    """

    component: Component
    keep: float
    factor: float
    cells: slice
    terms: tuple[tuple[int, slice, slice, Component], ...]

    def make(self, line: Mapping[Component, Doubles]) -> None:
        """The new values in place of the old ones."""
        values = line[self.component]
        total = sum(sign * (line[of][ahead] - line[of][behind]) for sign, ahead, behind, of in self.terms)
        values[self.cells] = self.keep * values[self.cells] + self.factor * total


@dataclass(frozen=True)
class Incident:
    """A plane wave on the places of its line."""

    lattice: Lattice
    wave: PlaneWave

    @property
    def domain(self) -> Domain:
        return self.lattice.domain

    @property
    def slopes(self) -> Index:
        return self.wave.slopes

    @property
    def medium(self) -> Medium:
        return next(medium for medium in self.domain.media if medium.name == self.wave.medium)

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The components that the wave has: those of the waveform, and all that their curls bring about."""
        found = {c for c in self.domain.live if abs(self.strength(c)) > SMALL * min(self.domain.spacing)}
        while more := {c for c in self.domain.live if found & {of for *_, of in self._terms(c)}} - found:
            found |= more
        return tuple(c for c in self.domain.live if c in found)

    def strength(self, component: Component) -> float:
        """A component where the waveform is 1, in the units of the stencils (see `yee`)."""
        axis, medium = AXES.index(component[1]), self.medium
        length = self.domain.spacing[axis]
        if component[0] == "E":
            return length * self.wave.polarisation[axis]
        crossed = np.cross(way(self.slopes, self.domain.spacing), self.wave.polarisation)[axis]
        return float(length * crossed * sqrt(medium.permittivity / medium.permeability))

    def series(self, first: int, last: int) -> Mapping[Component, Doubles]:
        """Each component at places first to last, shape (steps, places): E before each step, H half a step later."""
        steps, most = self.domain.steps, max(map(abs, self.slopes))
        cells = max(last, (steps * self._reach + last) // 2) + 3 * most  # so many that nothing comes back from the end
        line = {component: np.zeros(cells) for component in self.components}
        found = {component: np.zeros((steps, last + 1 - first)) for component in self.components}
        sent = {c: np.stack([self._sent(c, place) for place in range(most)], axis=1) for c in self.components}
        halves = [[self._update(c, cells, most) for c in self.components if c[0] == letter] for letter in "HE"]
        for n in range(steps):
            for half in halves:
                for update in half:
                    component = update.component
                    values = line[component]
                    if component[0] == "E":
                        found[component][n] = values[first : last + 1]
                    update.make(line)
                    values[:most] = sent[component][n]
                    if component[0] == "H":
                        found[component][n] = values[first : last + 1]
        return found

    def _update(self, component: Component, cells: int, most: int) -> LineUpdate:
        """The update of a component on a line of so many cells but for those at its ends."""

        def shifted(by: int) -> slice:
            return slice(most + by, cells - most + by)

        terms = [(sign, shifted(on), shifted(-back), of) for sign, on, back, of in self._terms(component)]
        return LineUpdate(component, *placed(self.lattice, component, self.medium), shifted(0), tuple(terms))

    @property
    def _reach(self) -> int:
        """Places that a change reaches within a step."""
        return max(0, *self.slopes) + max(0, *(-m for m in self.slopes))

    def _terms(self, component: Component) -> Iterator[tuple[int, int, int, Component]]:
        """The differences of a component's curl: sign, how far ahead one value is, how far back the other, of what."""
        for sign, axis, of in neighbours(component):
            if (slope := self.slopes[axis]) and of in self.domain.live:
                yield (sign, slope, 0, of) if component[0] == "H" else (sign, 0, slope, of)

    def _sent(self, component: Component, place: int) -> Doubles:
        """A component at a place, as the waveform has it: E after each step, H half a step before that."""
        domain, drive, medium = self.domain, self.wave.drive, self.medium
        own, electric = AXES.index(component[1]), component[0] == "E"
        on = sum(0.5 * m for axis, m in enumerate(self.slopes) if (axis == own) == electric)
        slowness = sqrt(EPSILON_0 * medium.permittivity * MU_0 * medium.permeability)
        apart = 1 / sqrt(sum((m / d) ** 2 for m, d in zip(self.slopes, domain.spacing, strict=True)))
        late = (place + on) * apart * slowness
        times: Doubles = domain.dt * (np.arange(domain.steps, dtype=np.float64) + (1.0 if electric else 0.5)) - late
        sampled = drive.waveform.sample(times - drive.start)
        return self.strength(component) * np.where((times >= drive.start) & (times <= drive.stop), sampled, 0.0)


def way(direction: Index, spacing: tuple[float, ...]) -> Doubles:
    """The unit vector along which a wave goes whose places are so far apart along x, y and z."""
    found = np.array([m / d for m, d in zip(direction, spacing, strict=True)])
    unit: Doubles = found / np.linalg.norm(found)
    return unit

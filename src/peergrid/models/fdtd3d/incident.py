"""A plane wave in a medium, or in layers that it meets along an axis, by the grid's own scheme on a line of cells.

Where a wave goes along (m_x / dx, m_y / dy, m_z / dz) with whole numbers m, all nodes with the same place
r = m · (node - origin) have the same fields. So Yee's scheme becomes one on a line, on which the neighbour along x is
m_x places on, along y m_y, along z m_z; nothing of the wave is left where it is subtracted from that on the grid but
rounding. The first places, as many as the largest |m|, are given the waveform itself; there the wave sets out. In a
medium with poles it goes from there on as each of its frequencies does.

A wave that meets layers is sent into a second line with their media, behind its first place total, before it what they
throw back; both ends are so far away that nothing comes back from there.

Method: T. Tan and M. Potter, IEEE Trans. Antennas Propag. 58 (2010) 2641.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.models.fdtd3d.constants import EPSILON_0, MU_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import AXES, COMPONENTS, Component, Domain, Medium, PlaneWave
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.places import Line, Values
from peergrid.models.waveforms import Doubles

SMALL = 1e-9  # of a polarisation: nothing
RINGING = 30.0  # times that a pole decays by e, until nothing is left
LONGEST = 1 << 20  # steps
FADED = 100.0  # times that a wave falls by e from a place to the next


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

    @cached_property
    def number(self) -> int:
        """The index of the medium in which the wave sets out."""
        if self.wave.medium is not None:
            return [medium.name for medium in self.domain.media].index(self.wave.medium)
        across = next(c for c in self.domain.live if c[0] == "E" and not self.slopes[AXES.index(c[1])])
        return int(self._met(across, np.array([self.start]))[0])

    @property
    def medium(self) -> Medium:
        """The medium in which it sets out."""
        return self.domain.media[self.number]

    @cached_property
    def line(self) -> Line:
        """Its line, with the components that it has: those of the waveform, and all that their curls bring about."""
        live = self.domain.live
        every = Line(self.lattice, self.slopes, live)
        found = {c for c in live if abs(self.strength(c)) > SMALL * min(self.domain.spacing)}
        while more := {c for c in live if found & {term.of for term in every.terms(c)}} - found:
            found |= more
        return replace(every, components=tuple(c for c in live if c in found))

    def strength(self, component: Component) -> float:
        """A component where the waveform is 1, in the units of the stencils (see `yee`); of H over √(ε / μ)."""
        axis = AXES.index(component[1])
        length = self.domain.spacing[axis]
        if component[0] == "E":
            return length * self.wave.polarisation[axis]
        return float(length * np.cross(way(self.slopes, self.domain.spacing), self.wave.polarisation)[axis])

    def series(self, first: int, last: int) -> Mapping[Component, Doubles]:
        """Each component at places first to last, shape (steps, places): E before each step, H half a step later."""
        if self.wave.medium is None:
            return self._layered(first, last)
        steps, most = self.domain.steps, max(map(abs, self.slopes))
        cells = max(last, (steps * self._reach + last) // 2) + 3 * most  # so many that nothing comes back from the end
        components, media = self.line.components, np.full(cells, self.number)
        sent = {c: np.stack([self._sent(c, place) for place in range(most)], axis=1) for c in components}

        def enter(component: Component, n: int, line: Values) -> None:
            line[component][:most] = sent[component][n]

        updates = [self.line.update(c, media, most) for c in components]
        return self.line.stepped(updates, cells, (first, last), enter)

    @property
    def _reach(self) -> int:
        """Places that a change reaches within a step."""
        return max(0, *self.slopes) + max(0, *(-m for m in self.slopes))

    def _sent(self, component: Component, place: int) -> Doubles:
        """A component at a place, as the waveform has it: E after each step, H half a step before that."""
        domain, drive, medium = self.domain, self.wave.drive, self.medium
        own, electric = AXES.index(component[1]), component[0] == "E"
        on = sum(0.5 * m for axis, m in enumerate(self.slopes) if (axis == own) == electric)
        apart = 1 / sqrt(sum((m / d) ** 2 for m, d in zip(self.slopes, domain.spacing, strict=True)))
        distance = (place + on) * apart
        ahead = 1.0 if electric else 0.5
        if medium.poles:
            return self.strength(component) * self._spread(distance, ahead, electric)
        ratio = 1.0 if electric else sqrt(medium.permittivity / medium.permeability)
        late = distance * sqrt(EPSILON_0 * medium.permittivity * MU_0 * medium.permeability)
        times: Doubles = domain.dt * (np.arange(domain.steps, dtype=np.float64) + ahead) - late
        sampled = drive.waveform.sample(times - drive.start)
        return self.strength(component) * ratio * np.where((times >= drive.start) & (times <= drive.stop), sampled, 0.0)

    def _spread(self, distance: float, ahead: float, electric: bool) -> Doubles:
        """The waveform after a way through a medium with poles, so many steps ahead; of H times √(ε / μ)."""
        steps, dt, medium = self.domain.steps, self.domain.dt, self.medium
        slowest = min(-complex(pole.rate).real for pole in medium.poles)  # what rings on must not come round again
        length = 1 << (2 * steps + min(LONGEST, int(RINGING / (slowest * dt + RINGING / LONGEST)))).bit_length()
        times = dt * np.arange(steps + 2, dtype=np.float64)
        drive = self.wave.drive
        sampled = drive.waveform.sample(times - drive.start)
        spectrum = np.fft.rfft(np.where((times >= drive.start) & (times <= drive.stop), sampled, 0.0), length)
        omega: Doubles = 2 * pi * np.fft.rfftfreq(length, dt).astype(np.float64)
        omega[0] = 0.5 * omega[1]  # where a conductor has no wave
        permittivity = medium.relative(omega)
        index = np.sqrt(permittivity * medium.permeability)
        exponent = 1j * omega * (ahead * dt - distance * index / SPEED_OF_LIGHT)
        if np.abs(exponent.real).max() > FADED:
            raise UsageError(
                f"A plane wave is expected to start in a medium that it can cross, got '{medium.name}', where its "
                "higher frequencies fade in a hundredth of a cell; let it come from another medium."
            )
        spectrum *= np.exp(exponent)
        if not electric:
            spectrum *= np.sqrt(permittivity / medium.permeability)
        found: Doubles = np.fft.irfft(spectrum, length)[:steps]
        return found

    @property
    def start(self) -> int:
        """The place at which a wave enters its layers."""
        axis = next(axis for axis, m in enumerate(self.slopes) if m)
        edge = tuple((self.domain.nodes[k] - 1) * (k == axis and self.slopes[k] < 0) for k in range(3))
        lined = tuple(e if k == axis else o for k, (e, o) in enumerate(zip(edge, self.wave.lo, strict=True)))
        return max(1, self.wave.place(lined))

    def _met(self, component: Component, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """The index of the medium at places along the axis, those of its outermost cells beyond them."""
        axis = next(axis for axis, m in enumerate(self.slopes) if m)
        first = self.wave.place(tuple(0 if k == axis else i for k, i in enumerate(self.wave.lo)))
        nodes = np.clip((places - first) * self.slopes[axis], 1, self.domain.shape[axis] - 1)
        outside = [max(1, lo - 1) if k != self.domain.invariant else 0 for k, lo in enumerate(self.wave.lo)]
        at = tuple(nodes if k == axis else beside for k, beside in enumerate(outside))
        found: NDArray[np.intp] = self.domain.ids[COMPONENTS.index(component)][at].astype(np.intp)
        return found

    def _layered(self, first: int, last: int) -> Mapping[Component, Doubles]:
        """The same with the media along the axis."""
        steps, start, (towards,) = self.domain.steps, self.start, (m for m in self.slopes if m)
        alone = Incident(self.lattice, replace(self.wave, medium=self.medium.name)).series(start - 1, start)
        before = steps // 2 + 2 + max(0, start - first)
        cells = before + max(last - start, (steps + last - start) // 2) + 3
        places = np.arange(cells) + start - before
        updates = {c: self.line.update(c, self._met(c, places), 1) for c in self.line.components}
        behind = before - (towards > 0)  # the cell of H that has E of the first total place beside it, and is none

        def enter(component: Component, n: int, line: Values) -> None:
            update, electric = updates[component], component[0] == "E"
            cell, read = (before, behind) if electric else (behind, before)
            for of in {term.of for term in update.terms}:
                sent = alone[of][n, read - before + 1]
                line[component][cell] += (1 if electric else -1) * update.share(cell, of, read) * sent

        shift = before - start
        return self.line.stepped([*updates.values()], cells, (first + shift, last + shift), enter)


def way(direction: Index, spacing: tuple[float, ...]) -> Doubles:
    """The unit vector along which a wave goes whose places are so far apart along x, y and z."""
    found = np.array([m / d for m, d in zip(direction, spacing, strict=True)])
    unit: Doubles = found / np.linalg.norm(found)
    return unit

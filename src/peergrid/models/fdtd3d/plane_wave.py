"""A plane wave in a box of total field: what it adds to the cells on both sides of the box's faces.

A component next to a face reads one from beyond it, where there is the scattered field alone or the total one: what
the wave is there is added to it, or taken away. The wave is that of `incident`, worked out beforehand in double
precision, a signal that differs from cell to cell of a face.

Method: A. Taflove and S. Hagness, Computational Electrodynamics, 3rd ed., 2005, chapter 5 (total field and scattered
field).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from peergrid.grid import Box, Field, Signal
from peergrid.models.fdtd3d.domain import AXES, COMPONENTS, Component, Domain, PlaneWave
from peergrid.models.fdtd3d.incident import SMALL, Incident, way
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import Factors, placed
from peergrid.models.fdtd3d.yee import here, neighbours
from peergrid.stencil import Stage, Update, stencil


@stencil
def add_share(u: Any, incident: Any, share: Any) -> None:
    """Add a share of the wave."""
    at = (0,) * u.described.grid.ndim
    u.next[at] = u[at] + share * incident.now


@stencil
def add_as_updated(u: Any, incident: Any, sign: Any, factor: Any) -> None:
    """Add the wave times the factor of the component's own update."""
    at = (0,) * u.described.grid.ndim
    u.next[at] = u[at] + sign * (here(factor) * incident.now)


@dataclass(frozen=True)
class Faces:
    """The faces of a plane wave's box, and the wave on them, a signal for each component."""

    incident: Incident
    signals: Mapping[Component, Signal]

    @classmethod
    def of(cls, lattice: Lattice, wave: PlaneWave, name: str) -> Faces:
        incident = Incident(lattice, wave)
        slopes = tuple(wave.slopes[axis] for axis in lattice.axes)
        signals = {
            component: lattice.grid.signal(f"{name}.{component}", samples, slopes)
            for component, samples in incident.series(*wave.places).items()
        }
        return cls(incident, signals)

    def updates(
        self, fields: Mapping[Component, Field], factors: Mapping[Component, Factors], letter: str
    ) -> Iterator[Update]:
        """The updates that follow the half step of H, or that of E."""
        lattice = self.incident.lattice
        for component in (c for c in fields if c[0] == letter):
            own = factors[component].factor
            if self.incident.wave.medium is not None:
                _, own = placed(lattice, component, self.incident.medium)
            for sign, axis, of in neighbours(component):
                if lattice.along(axis) is None or of not in self.signals:
                    continue
                for far in (False, True):
                    towards = sign * (1 if far else -1)
                    box, wave = self._face(component, of, axis, far), self._wave(component, of, axis, far)
                    if not isinstance(own, float):
                        yield add_as_updated(fields[component], wave, float(towards), own).within(box)
                    else:
                        yield add_share(fields[component], wave, towards * own).within(box)

    def _face(self, component: Component, of: Component, axis: int, far: bool) -> Box:
        """The cells of a component next to a face: where E lies in it, H half a cell outside."""
        wave, lattice = self.incident.wave, self.incident.lattice
        edge = AXES.index((of if component[0] == "H" else component)[1])  # the axis along which E lies
        lo, hi = list(wave.lo), [n + (k != edge) for k, n in enumerate(wave.hi)]
        lo[axis] = wave.hi[axis] if far else wave.lo[axis] - (component[0] == "H")
        hi[axis] = lo[axis] + 1
        return Box(lattice.cell(tuple(lo)), lattice.cell(tuple(hi)))

    def _wave(self, component: Component, of: Component, axis: int, far: bool) -> Signal:
        """The wave that cells next to a face read: their own, or from beyond the face at its low end."""
        wave, signal = self.incident.wave, self.signals[of]
        beyond = 0 if far else wave.slopes[axis] * (1 if component[0] == "H" else -1)
        first = wave.place((0, 0, 0)) - wave.places[0] + beyond
        return replace(signal, name=f"{signal.name}.{beyond}", first=first)


def stages_of(
    waves: Iterable[Faces], fields: Mapping[Component, Field], factors: Mapping[Component, Factors], letter: str
) -> Iterator[Stage]:
    """The stages that follow a half step: as few as updates of one cell allow."""
    made: list[list[Update]] = []
    for update in (update for wave in waves for update in wave.updates(fields, factors, letter)):
        free = [stage for stage in made if not any(_clash(update, other) for other in stage)]
        if not free:
            made.append([])
        (free[0] if free else made[-1]).append(update)
    yield from (Stage(tuple(updates)) for updates in made)


def _clash(one: Update, two: Update) -> bool:
    return one.targets == two.targets and one.box.overlaps(two.box)


def faces(lattice: Lattice) -> tuple[Faces, ...]:
    """The faces of a domain's plane waves."""
    waves = (source for source in lattice.domain.sources if isinstance(source, PlaneWave))
    return tuple(Faces.of(lattice, wave, f"wave{number}") for number, wave in enumerate(waves, start=1))


def faults(domain: Domain, wave: PlaneWave) -> Iterator[str]:
    """Reasons against carrying a plane wave out, each as the end of a sentence."""
    if not any(wave.direction) or not all(isinstance(m, int) for m in wave.direction):
        yield f"is expected to go along three whole numbers that are not all 0, got direction {wave.direction}"
        return
    along = float(np.dot(way(wave.direction, domain.spacing), wave.polarisation))
    if (domain.invariant is not None and wave.direction[domain.invariant]) or abs(along) > SMALL:
        mode = domain.mode
        yield f"is expected to have its fields across its direction, and to propagate in the plane of mode {mode}"
    if wave.medium is None and sum(map(bool, wave.direction)) > 1:
        yield f"is expected to meet layers along one axis, got direction {wave.direction}"
        return
    media = [medium for medium in domain.media if wave.medium in (None, medium.name)]
    if not media or (wave.medium is not None and (media[0].stops_electric or media[0].stops_magnetic)):
        yield f"is expected in a medium of the domain that is no perfect conductor, got '{wave.medium}'"
    if any(abs(p) > SMALL and f"E{AXES[k]}" not in domain.live for k, p in enumerate(wave.polarisation)):
        yield f"is expected to have fields that mode {domain.mode} has, got polarisation {wave.polarisation}"
    for axis, name in enumerate(AXES):
        last = domain.nodes[axis] - 1
        if axis != domain.invariant and not 1 <= wave.lo[axis] < wave.hi[axis] <= last - 1:
            yield (
                f"is expected in a box within nodes 1 to {last - 1} along {name}, got {wave.lo[axis]} to "
                f"{wave.hi[axis]}"
            )
    nodes = product(*zip(wave.lo, wave.hi, strict=True))
    if min(map(wave.place, nodes)) < max(map(abs, wave.slopes)):
        yield f"is expected to set out before its box, got node {wave.origin}"


def leaking(domain: Domain) -> Iterator[str]:
    """Warnings of waves whose layers are not the same all around their box."""
    for number, wave in enumerate(domain.sources, start=1):
        if isinstance(wave, PlaneWave) and wave.medium is None and _varied(domain, wave):
            yield (
                f"Source {number}, a plane wave, meets other media on some faces of its box than on others, so that "
                "parts of it are outside; let it go across the layers, and keep bodies off the faces."
            )


def _varied(domain: Domain, wave: PlaneWave) -> bool:
    """True where media on the faces of the box change across the way of the wave."""
    for component, ids in zip(COMPONENTS, domain.ids, strict=True):
        if component not in domain.live:
            continue
        own, electric = AXES.index(component[1]), component[0] == "E"
        between = [(k == own) == electric for k in range(3)]  # nodes, along these axes
        box = [slice(lo, hi + 1 - half) for lo, hi, half in zip(wave.lo, wave.hi, between, strict=True)]
        box = [slice(0, 1) if k == domain.invariant else cells for k, cells in enumerate(box)]
        for axis in (k for k in range(3) if k not in (own, domain.invariant)):
            for at in (wave.lo[axis] - (not electric), wave.hi[axis]):
                face = [slice(at, at + 1) if k == axis else cells for k, cells in enumerate(box)]
                line = [
                    cells if m else slice(whole.start, whole.start + 1)
                    for cells, whole, m in zip(face, box, wave.direction, strict=True)
                ]
                if (ids[tuple(face)] != ids[tuple(line)]).any():
                    return True
    return False

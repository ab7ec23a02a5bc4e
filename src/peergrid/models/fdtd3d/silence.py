"""Warnings about domains that would show little: late or coarse waves, and places where fields stay zero."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

import numpy as np

from peergrid.models.fdtd3d.constants import SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import Component, ElectricDipole, MagneticDipole, Medium, PlaneWave
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.resolution import ADVISED, Resolution, resolution
from peergrid.models.silence import unsent
from peergrid.models.waveforms import Known

FEWEST = 3.0
"""Cells per shortest wavelength, below which gprMax refuses a model."""


def silent(lattice: Lattice) -> Iterator[str]:
    """Warnings about sources that send nothing in the run, and receivers that record nothing."""
    domain = lattice.domain
    if not domain.sources:
        yield "The model has no source, so that every field stays zero; add one."
    for number, source in enumerate(domain.sources, start=1):
        if not isinstance(source, PlaneWave) and lattice.absorbs(lattice.cell(source.node)):
            yield _absorbed(f"Source {number}")
        if isinstance(source, ElectricDipole | MagneticDipole):
            component: Component = f"{'H' if isinstance(source, MagneticDipole) else 'E'}{source.axis}"  # type: ignore[assignment]
            if _stopped(lattice, component, lattice.cell(source.node)):
                yield f"Source {number} lies in or on a perfect conductor, where {component} stays zero; move it away."
        drive = source.drive
        if isinstance(drive.waveform, Known):
            duration = domain.steps * domain.dt
            yield from unsent(f"Source {number}", drive.waveform, duration, "the time window (s)", drive.start)
    for number, receiver in enumerate(domain.receivers, start=1):
        cell = lattice.cell(receiver.node)
        if lattice.absorbs(cell):
            yield _absorbed(f"Receiver {number}")
        electric = [name for name in domain.live if name[0] == "E" and name in receiver.outputs]
        if electric and all(_stopped(lattice, component, cell) for component in electric):
            yield (
                f"Receiver {number} lies in or on a perfect conductor, where the electric field that it records stays "
                "zero; move it away."
            )


def coarse(lattice: Lattice) -> Iterator[str]:
    """A warning about a grid on which waves run too slowly."""
    found = resolved(lattice)
    if found.cells < FEWEST:
        advised = _spacing(lattice) * found.cells / ADVISED
        yield (
            f"The spacing should give at least {FEWEST:g} cells per shortest wavelength, {found.facts}; use "
            f"{advised:.2g} m for accurate waves."
        )


def resolved(lattice: Lattice) -> Resolution:
    """Cells of the grid for the shortest wave; infinitely many without sources."""
    waveforms = [source.drive.waveform for source in lattice.domain.sources]
    frequency = max((one.highest_frequency() for one in waveforms if isinstance(one, Known)), default=0.0)
    if frequency == 0:
        return resolution(frequency, {}, _spacing(lattice))
    used = np.logical_or.reduce([lattice.used(name) for name in lattice.domain.live if name[0] == "E"])
    media = [lattice.media[index] for index in np.flatnonzero(used)]
    speeds = {one.name: _speed(one, frequency) for one in media if not one.stops_electric}
    return resolution(frequency, speeds, _spacing(lattice))


def _speed(medium: Medium, frequency: float) -> float:
    """Of waves in a medium, without its losses, m/s."""
    permittivity = float(medium.relative(np.array([2 * pi * frequency])).real[0])
    return SPEED_OF_LIGHT / sqrt(max(permittivity, 1.0) * medium.permeability)


def _spacing(lattice: Lattice) -> float:
    return max(lattice.domain.spacing[axis] for axis in lattice.axes)


def _stopped(lattice: Lattice, component: Component, cell: tuple[int, ...]) -> bool:
    """True where a component stays zero for its medium."""
    medium = lattice.media[lattice.medium_at(component, cell)]
    return medium.stops_electric if component[0] == "E" else medium.stops_magnetic


def _absorbed(what: str) -> str:
    return f"{what} lies inside the absorber, where fields mean nothing; move it inwards."

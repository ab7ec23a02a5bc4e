"""Sources as updates of single cells that follow a half step: dipoles, voltages with a resistance, prescribed voltages.

The amplitudes are worked out beforehand in double precision, in the units of the stencils (`yee`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peergrid.grid import Box, Field, Index
from peergrid.models.fdtd3d.constants import ETA_0
from peergrid.models.fdtd3d.domain import (
    AXES,
    Component,
    ElectricDipole,
    MagneticDipole,
    VoltageSource,
)
from peergrid.models.fdtd3d.lattice import Lattice, electric_of
from peergrid.models.fdtd3d.media import raw
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Update, stencil, where


@stencil
def add(u: Any, samples: Any) -> None:
    """Add the signal's sample."""
    at = (0,) * u.described.grid.ndim
    u.next[at] = u[at] + samples.now


@stencil
def prescribe(u: Any, samples: Any, active: Any) -> None:
    """The signal's sample while it is active, else what there is."""
    at = (0,) * u.described.grid.ndim
    u.next[at] = where(active.now > 0, samples.now, u[at])


@dataclass(frozen=True)
class Drives:
    """Amplitudes that are added to components at cells; those that replace what is there, with when; first values."""

    added: dict[tuple[Component, Index], Doubles] = field(default_factory=dict)
    prescribed: dict[tuple[Component, Index], tuple[Doubles, Doubles]] = field(default_factory=dict)
    first: dict[tuple[Component, Index], float] = field(default_factory=dict)

    def add(self, component: Component, cell: Index, samples: Doubles) -> None:
        """Some more at a cell: sources at one cell are added up."""
        known = self.added.get((component, cell))
        self.added[component, cell] = samples if known is None else known + samples

    def start(self, component: Component) -> float | Still:
        """The first values of a component."""
        values = {cell: value for (name, cell), value in self.first.items() if name == component}
        return Still(values) if values else 0.0

    def updates(self, fields: Mapping[Component, Field], letter: str) -> Iterator[tuple[Update, ...]]:
        """The updates that follow the half step of E or of H: what is added, and then what is prescribed."""
        yield tuple(
            add(fields[component], fields[component].grid.signal(_name(component, cell), samples)).within(
                Box.cell(cell)
            )
            for (component, cell), samples in self.added.items()
            if component[0] == letter
        )
        yield tuple(
            prescribe(
                fields[component],
                fields[component].grid.signal(f"{_name(component, cell)}.voltage", samples),
                fields[component].grid.signal(f"{_name(component, cell)}.active", active),
            ).within(Box.cell(cell))
            for (component, cell), (samples, active) in self.prescribed.items()
            if component[0] == letter
        )


@dataclass(frozen=True)
class Still:
    """First values on a box: zero but at single cells."""

    values: Mapping[Index, float]

    def __call__(self, box: Box) -> Doubles:
        found = np.zeros(box.shape)
        for cell, value in self.values.items():
            if cell in box:
                found[tuple(i - lo for i, lo in zip(cell, box.lo, strict=True))] = value
        return found


def _name(component: Component, cell: Index) -> str:
    return f"source.{component}.{'.'.join(map(str, cell))}"


def drives(lattice: Lattice) -> Drives:
    """The drives of a domain's dipoles and voltage sources."""
    found = Drives()
    for source in lattice.domain.sources:
        if isinstance(source, ElectricDipole | VoltageSource | MagneticDipole):
            _drive(lattice, source, found)
    return found


def _drive(lattice: Lattice, source: ElectricDipole | VoltageSource | MagneticDipole, found: Drives) -> None:
    domain = lattice.domain
    cell, spacing = lattice.cell(source.node), domain.spacing[AXES.index(source.axis)]
    if isinstance(source, MagneticDipole):
        component: Component = f"H{source.axis}"  # type: ignore[assignment]
        samples = source.drive.samples(domain.steps, domain.dt, half=False)
        # the component times its edge, over the volume: the edge cancels
        found.add(component, cell, samples * (-ETA_0 / lattice.face(component) * _factor(lattice, component, cell)))
        return
    component = electric_of(source.axis)
    if isinstance(source, VoltageSource) and source.resistance == 0:
        samples = -source.drive.samples(domain.steps + 1, domain.dt, half=False)
        active = source.drive.active(domain.steps + 1, domain.dt).astype(np.float64)
        found.prescribed[component, cell] = (samples[1:], active[1:])
        if samples[0]:
            found.first[component, cell] = float(samples[0])
        return
    samples = source.drive.samples(domain.steps, domain.dt, half=True)
    current = samples / source.resistance if isinstance(source, VoltageSource) else samples
    strength = -spacing / lattice.face(component) * _factor(lattice, component, cell)
    found.add(component, cell, current * strength)


def _factor(lattice: Lattice, component: Component, cell: Index) -> float:
    medium = lattice.media[lattice.medium_at(component, cell)]
    return raw(component, medium, lattice.domain.dt).factor

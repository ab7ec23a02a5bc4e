"""Faults of a domain that can be said in a sentence before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.models.fdtd3d import absorber, far_field, feed, plane_wave, wire
from peergrid.models.fdtd3d.constants import SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import (
    AXES,
    COMPONENTS,
    CoaxialFeed,
    Component,
    Domain,
    MagneticDipole,
    PlaneWave,
    Source,
    TransmissionLine,
    VoltageSource,
)


@dataclass(frozen=True)
class Subjects:
    """The subjects of sentences about the parts of a domain; without names, sources and others have their numbers."""

    absorber: str = "The absorber"
    stretches: str = "The absorber"
    sources: tuple[str, ...] = ()
    wires: tuple[str, ...] = ()
    far_fields: tuple[str, ...] = ()

    def source(self, number: int) -> str:
        return self.sources[number - 1] if self.sources else f"Source {number}"

    def wire(self, number: int) -> str:
        return self.wires[number - 1] if self.wires else f"Wire {number}"

    def far_field(self, number: int) -> str:
        return self.far_fields[number - 1] if self.far_fields else f"Far field {number}"


def check(domain: Domain, subjects: Subjects) -> None:
    """Raises UsageError with the first fault."""
    for fault in _faults(domain, subjects):
        raise UsageError(fault)


def growing(domain: Domain) -> Iterator[str]:
    """Sentences about media with poles in which waves may grow at the time step.

    At the highest frequency of the grid a medium with ε (at infinite frequency) and μ is stable up to
    (dt / limit)² / εμ + (ωp dt)² / 4ε = 1, limit the largest step in vacuum, ωp² the slope of the susceptibility at 0.
    """
    limit = _limit(domain)
    for medium in domain.media:
        plasma = sum((pole.weight * pole.rate).real for pole in medium.poles)
        rate = 1 / (limit**2 * medium.permittivity * medium.permeability) + plasma / (4 * medium.permittivity)
        if plasma > 0 and domain.dt**2 * rate > 1 + 1e-9:
            yield (
                f"Waves may grow in medium '{medium.name}' with dt = {domain.dt:.4g} s; use a time step of at most "
                f"{1 / sqrt(rate):.4g} s."
            )


def _limit(domain: Domain) -> float:
    """The largest time step in vacuum, seconds."""
    axes = [axis for axis in range(3) if axis != domain.invariant]
    return 1 / (SPEED_OF_LIGHT * sqrt(sum(1 / domain.spacing[axis] ** 2 for axis in axes)))


def _faults(domain: Domain, subjects: Subjects) -> Iterator[str]:
    axes = [axis for axis in range(3) if axis != domain.invariant]
    if len(domain.shape) != 3 or any(n < 2 for n in (domain.shape[axis] for axis in axes)):
        yield f"A domain is expected to have at least two cells along each axis, got {domain.shape}."
    expected = (len(COMPONENTS), *domain.nodes)
    if domain.ids.shape != expected:
        yield f"Media are expected as an array of shape {expected}, got {domain.ids.shape}."
    if not domain.media:
        yield "A domain is expected to have at least one medium, got none."
    if domain.ids.size and int(domain.ids.max()) >= len(domain.media):
        yield f"Indices of media are expected below {len(domain.media)}, the number of media, got {domain.ids.max()}."
    for medium in domain.media:
        if any(complex(pole.rate).real > 0 for pole in medium.poles):
            yield f"Medium '{medium.name}' is expected to have poles that decay, got one that grows; correct it."
    limit = _limit(domain)
    fastest = min((sqrt(m.permittivity * m.permeability) for m in domain.media), default=1.0)
    if not 0 < domain.dt <= limit * fastest * (1 + 1e-9):
        yield f"dt is expected to be above 0 and at most {limit * fastest:.6g} s, to be stable, got {domain.dt:g} s."
    if domain.steps < 1:
        yield f"steps are expected to be at least 1, got {domain.steps}."
    yield from _absorber_faults(domain, subjects)
    for number, source in enumerate(domain.sources, start=1):
        yield from (f"{subjects.source(number)}{fault}." for fault in _source_faults(domain, source))
    for number, wished in enumerate(domain.far_fields, start=1):
        yield from (f"{subjects.far_field(number)} {fault}." for fault in far_field.faults(domain, wished))
    for number in range(len(domain.wires)):
        yield from (f"{subjects.wire(number + 1)} {fault}." for fault in wire.faults(domain, number))
    for number, receiver in enumerate(domain.receivers, start=1):
        last = tuple(n - 1 for n in domain.nodes)
        if _outside(receiver.node, last):
            yield f"Receiver {number} is expected on nodes from 0 to {last}, got {receiver.node}; move it."


def _absorber_faults(domain: Domain, subjects: Subjects) -> Iterator[str]:
    thickness = {side: slab.cells for side, slab in domain.absorber.slabs}
    yield from (f"{subjects.stretches} {fault}." for fault in absorber.faults(domain.absorber))
    for axis, name in enumerate(AXES):
        both = thickness.get(f"{name}-", 0) + thickness.get(f"{name}+", 0)  # type: ignore[call-overload]
        if axis != domain.invariant and both >= domain.shape[axis]:
            yield (
                f"{subjects.absorber} is expected to leave cells between its sides along {name}, got {both} of "
                f"{domain.shape[axis]} cells; make it thinner."
            )


def _source_faults(domain: Domain, source: Source) -> Iterator[str]:
    """Reasons against a source, each as the end of a sentence."""
    if isinstance(source, PlaneWave):
        yield from (f", a plane wave, {fault}" for fault in plane_wave.faults(domain, source))
        return
    component: Component = f"{'H' if isinstance(source, MagneticDipole) else 'E'}{source.axis}"  # type: ignore[assignment]
    if component not in domain.live:
        yield f" drives {component}, which mode {domain.mode} does not have; turn it or use 3D"
    misplaced = fault_of_node(source.node, component, domain.nodes, domain.invariant)
    if misplaced:
        yield misplaced
        return
    if isinstance(source, CoaxialFeed):
        yield from (f", a coaxial feed, {fault}" for fault in feed.faults(domain, source))
    if isinstance(source, TransmissionLine) and not source.resistance > 0:
        yield f" is a line, expected to have a resistance above 0 Ω, got {source.resistance:g}"
    if isinstance(source, VoltageSource):
        if source.resistance < 0:
            yield f" is expected to have a resistance not below 0 Ω, got {source.resistance:g}"
        medium = domain.media[domain.ids[COMPONENTS.index(component)][source.node]]
        if medium.stops_electric:
            yield f" is expected between conductors, got '{medium.name}' at its edge; leave a gap of a cell there"


def fault_of_node(node: Index, component: Component, nodes: Index, invariant: int | None) -> str:
    """The reason against a node that does not have a component, as the end of a sentence, '' if it has.

    nodes: of the domain along each axis; invariant: the axis along which nothing varies. Along axes on which the
    component lies between nodes, the last node has none.
    """
    between = [axis != invariant and (component[0] == "E") == (name == component[1]) for axis, name in enumerate(AXES)]
    last = tuple(n - 1 - half for n, half in zip(nodes, between, strict=True))
    if not _outside(node, last):
        return ""
    return f" is expected on nodes from 0 to {last}, which have {component}, got {node}; move it"


def _outside(node: Index, last: Index) -> bool:
    return len(node) != 3 or any(not 0 <= i <= n for i, n in zip(node, last, strict=True))

"""From a domain to a problem: media, stages, sources, receivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from peergrid.grid import Index
from peergrid.models.fdtd3d.assembly import half
from peergrid.models.fdtd3d.check import check
from peergrid.models.fdtd3d.constants import ETA_0
from peergrid.models.fdtd3d.domain import AXES, Component, Domain, TransmissionLine
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.line import LAST, Line
from peergrid.models.fdtd3d.media import factors
from peergrid.models.fdtd3d.sources import drives
from peergrid.models.fdtd3d.yee import neighbours
from peergrid.stencil import Problem, Receiver, Stage

Sum = tuple[tuple[float, str], ...]
"""What is recorded, as the traces that are added up, each with its factor to SI units."""


@dataclass(frozen=True)
class Recorder:
    """A receiver as placed: for each of its outputs the traces that make it; none for what stays zero."""

    name: str
    node: Index
    outputs: Mapping[str, Sum]


@dataclass(frozen=True)
class LineRecorder:
    """A transmission line as placed, and the traces of its last voltage and current."""

    source: TransmissionLine
    name: str
    voltage: str
    current: str


@dataclass(frozen=True, eq=False)
class BuiltDomain:
    """A problem with what its results need to be understood.

    units: the factor from each stored component to V/m or A/m.
    """

    domain: Domain
    lattice: Lattice
    problem: Problem
    units: Mapping[str, float]
    recorders: tuple[Recorder, ...]
    lines: tuple[LineRecorder, ...]


def build(domain: Domain) -> BuiltDomain:
    """The problem of a domain. Raises UsageError where the domain cannot mean anything (see `check`)."""
    check(domain)
    lattice = Lattice.of(domain)
    grid = lattice.grid
    driven = drives(lattice)
    fields = {component: grid.field(component, driven.start(component)) for component in domain.live}
    placed = {component: factors(lattice, component) for component in domain.live}
    units: dict[str, float] = {component: _unit(domain, component) for component in domain.live}
    magnetic, electric = (half(lattice, fields, placed, letter).updates() for letter in "HE")
    lines = [
        Line.of(lattice, source, f"line{number}")
        for number, source in enumerate((s for s in domain.sources if isinstance(s, TransmissionLine)), start=1)
    ]
    feeding = tuple(update for line in lines for update in line.updates(fields))
    edges = tuple(line.edge(fields) for line in lines)
    stages = [magnetic, *driven.updates(fields, "H"), (*electric, *feeding), *driven.updates(fields, "E"), edges]
    recorders = tuple(_recorders(lattice, units))
    recorded = tuple(
        LineRecorder(line.source, line.name, f"{line.name}.voltage", f"{line.name}.current") for line in lines
    )
    receivers = [*_receivers(lattice, recorders), *_line_receivers(lines)]
    problem = Problem.of([Stage(updates) for updates in stages if updates], receivers)
    return BuiltDomain(domain, lattice, problem, MappingProxyType(units), recorders, recorded)


def _unit(domain: Domain, component: Component) -> float:
    length = domain.spacing[AXES.index(component[1])]
    return 1 / length if component[0] == "E" else 1 / (ETA_0 * length)


def _recorders(lattice: Lattice, units: Mapping[str, float]) -> Iterator[Recorder]:
    for number, receiver in enumerate(lattice.domain.receivers, start=1):
        cell = lattice.cell(receiver.node)
        outputs: dict[str, Sum] = {}
        for output in receiver.outputs:
            if output[0] == "I":
                outputs[output] = tuple(_around(lattice, output, cell))
            else:
                outputs[output] = ((units[output], _trace(output, cell)),) if output in units else ()
        yield Recorder(receiver.name or f"rx{number}", receiver.node, MappingProxyType(outputs))


def _around(lattice: Lattice, current: str, cell: Index) -> Iterator[tuple[float, str]]:
    """The traces of H around the edge that a current flows along, each with its sign; A."""
    edge: Component = f"E{current[1]}"  # type: ignore[assignment]
    for sign, along, of in neighbours(edge):
        axis = lattice.along(along)
        if axis is not None and of in lattice.domain.live:
            before = tuple(i - (k == axis) for k, i in enumerate(cell))
            if before[axis] < 0:
                continue
            yield sign / ETA_0, _trace(of, cell)
            yield -sign / ETA_0, _trace(of, before)


def _trace(component: str, cell: Index) -> str:
    return f"{component}.{'.'.join(map(str, cell))}"


def _receivers(lattice: Lattice, recorders: tuple[Recorder, ...]) -> Iterator[Receiver]:
    names = {name for one in recorders for parts in one.outputs.values() for _, name in parts}
    for name in sorted(names):
        component, *cell = name.split(".")
        yield Receiver(name, component, tuple(map(int, cell)))


def _line_receivers(lines: list[Line]) -> Iterator[Receiver]:
    for line in lines:
        for what in (line.voltage, line.current):
            yield Receiver(what.name, what.name, line.at(LAST).lo)

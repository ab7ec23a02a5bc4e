"""From a domain to a problem: media, stages, sources, receivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from types import MappingProxyType

from peergrid.grid import Array, Field, Index
from peergrid.models.fdtd3d import wire
from peergrid.models.fdtd3d.assembly import Half
from peergrid.models.fdtd3d.check import Subjects, check, growing
from peergrid.models.fdtd3d.constants import ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import AXES, CoaxialFeed, Component, Domain, Pictures, PlaneWave, TransmissionLine
from peergrid.models.fdtd3d.far_field import Surface, surfaces
from peergrid.models.fdtd3d.feed import Feed
from peergrid.models.fdtd3d.lattice import Lattice, electric_of
from peergrid.models.fdtd3d.line import LAST, Line
from peergrid.models.fdtd3d.media import Factors, factors
from peergrid.models.fdtd3d.plane_wave import faces, leaking, stages_of
from peergrid.models.fdtd3d.silence import coarse, silent
from peergrid.models.fdtd3d.sources import drives
from peergrid.models.fdtd3d.yee import neighbours
from peergrid.models.model import Model, Outcome
from peergrid.models.silence import rare
from peergrid.models.survey import Trace, Vector, Wanted
from peergrid.stencil import Problem, Receiver, Stage, Update

Sum = tuple[tuple[float, str], ...]
"""A recorded quantity, as the traces that are added up, each with its factor to SI units."""


@dataclass(frozen=True)
class Recorder:
    """A receiver as placed: for each of its outputs the traces that make it; none for what stays zero.

    name: of its group in results, if it has none of its own; given: its own name, or an empty text.
    """

    name: str
    node: Index
    outputs: Mapping[str, Sum]
    given: str


@dataclass(frozen=True)
class LineRecorder:
    """A transmission line as placed, and the traces of its last voltage and current."""

    source: TransmissionLine
    name: str
    voltage: str
    current: str

    def cell_length(self, dt: float) -> float:
        """Metres of a cell of the line."""
        return float(sqrt(3) * SPEED_OF_LIGHT * dt)


@dataclass(frozen=True)
class FeedRecorder:
    """A coaxial feed as placed, and the trace of its voltage."""

    source: CoaxialFeed
    name: str
    voltage: str


@dataclass(frozen=True, eq=False)
class BuiltDomain:
    """A problem with what its results need to be understood; a `BuiltModel` of `models.model`.

    units: the factor from each stored component to V/m or A/m.
    """

    model: Model
    domain: Domain
    lattice: Lattice
    problem: Problem
    units: Mapping[str, float]
    recorders: tuple[Recorder, ...]
    lines: tuple[LineRecorder, ...]
    feeds: tuple[FeedRecorder, ...] = ()
    far_fields: tuple[Surface, ...] = ()
    pictures: Pictures = field(default_factory=Pictures)

    @property
    def steps(self) -> int:
        return self.domain.steps

    @property
    def dt(self) -> float:
        return self.domain.dt

    @property
    def trace_start(self) -> float:
        """Of E; values of H are those of half a step before."""
        return self.domain.dt

    @property
    def spacing(self) -> tuple[float, ...]:
        return tuple(self.domain.spacing[axis] for axis in self.lattice.axes)

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple("xyz"[axis] for axis in self.lattice.axes)

    @property
    def origin(self) -> tuple[float, ...]:
        return (0.0,) * len(self.axes)

    @property
    def unit_names(self) -> Mapping[str, str]:
        return {component: "V/m" if component[0] == "E" else "A/m" for component in self.units}

    @property
    def warnings(self) -> tuple[str, ...]:
        silence = (*silent(self.lattice), *rare(self.model.snapshots.every, self.steps), *coarse(self.lattice))
        return (*silence, *growing(self.domain), *leaking(self.domain))

    @property
    def sources(self) -> tuple[Vector, ...]:
        """Positions of the sources, metres."""
        placed = (source for source in self.domain.sources if not isinstance(source, PlaneWave))
        return tuple(self.place(source.node) for source in placed)

    @property
    def receivers(self) -> Mapping[str, Vector]:
        """Positions by the problem's names of receivers, metres."""
        nodes = {f"rx{number}": recorder.node for number, recorder in enumerate(self.recorders, start=1)}
        nodes |= {line.name: line.source.node for line in self.lines}
        nodes |= {feed.name: feed.source.node for feed in self.feeds}
        return {one.name: self.place(nodes[one.name.split(".")[0]]) for one in self.problem.receivers}

    def place(self, node: Index) -> Vector:
        """The position of a node, metres along x, y and z."""
        return tuple(i * d for i, d in zip(node, self.domain.spacing, strict=True))

    def findings(self, field: Callable[[str], Array]) -> Mapping[str, Array]:
        """The fields far away, by the names of their boxes and of what there is of them."""
        from peergrid.models.fdtd3d.results import pattern  # takes a built domain

        return {
            f"{surface.name}.{output}": values
            for surface in self.far_fields
            for output, values in pattern(surface, {name: field(name) for name in surface.fields}).items()
        }

    def picture(self, path: Path) -> None:
        """Draw three slices of the media, with sources, receivers and absorbers."""
        from peergrid.models.fdtd3d.picture import picture_model  # takes matplotlib along, which is slow to come

        picture_model(path, self)

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        """Traces, sources, lines and final fields in `results.h5`, and pictures."""
        from peergrid.models.fdtd3d.results import write_results  # takes a built domain

        outcome.write_fields(
            lambda fields: write_results(folder / "results.h5", self, outcome.traces, fields, outcome.about),
            needed={name for surface in self.far_fields for name in surface.fields},
        )
        if self.pictures == Pictures() or not outcome.pictures:
            return (folder / "results.h5",)
        from peergrid.models.fdtd3d.gallery import draw_all  # takes matplotlib along, which is slow to come

        return (folder / "results.h5", *draw_all(folder, self, outcome.traces, outcome.snapshots))

    def write_survey(self, folder: Path, traces: Sequence[Trace], about: Mapping[str, str | int]) -> Path:
        """The traces of a survey side by side in `results.h5`, as gprMax merges them."""
        from peergrid.models.fdtd3d.results import write_survey  # takes a built domain

        write_survey(folder / "results.h5", self, traces, about)
        return folder / "results.h5"

    def write_others(self, merged: Path, wanted: Wanted) -> tuple[Path, ...]:
        """The sections of receivers."""
        if self.pictures.format is None:
            return ()
        from peergrid.models.fdtd3d.gallery import draw_sections  # takes matplotlib along, which is slow to come

        return draw_sections(merged, self, wanted)


def build(domain: Domain, model: Model | None = None, subjects: Subjects | None = None) -> BuiltDomain:
    """The problem of a domain; model: what it is of, by default the domain itself (`model.DomainModel`); subjects: what
    sentences call its parts.

    Raises UsageError where the domain cannot mean anything (see `check`).
    """
    from peergrid.models.fdtd3d.model import DomainModel  # which is built here

    check(domain, subjects or Subjects())
    lattice = Lattice.of(domain)
    grid = lattice.grid
    driven = drives(lattice)
    fields = {component: grid.field(component, driven.start(component)) for component in domain.live}
    placed = factors(lattice)
    units: dict[str, float] = {component: _unit(domain, component) for component in domain.live}
    magnetic, electric = (Half(lattice, fields, placed, electric).stages() for electric in (False, True))
    lines = [
        Line.of(lattice, source, f"line{number}")
        for number, source in enumerate((s for s in domain.sources if isinstance(s, TransmissionLine)), start=1)
    ]
    feeds = [
        Feed.of(lattice, source, f"feed{number}")
        for number, source in enumerate((s for s in domain.sources if isinstance(s, CoaxialFeed)), start=1)
    ]
    feeding = tuple(update for line in lines for update in line.updates(fields))
    edges = tuple(line.edge(fields) for line in lines)
    between = [Stage(feeding)] if feeding else []
    waves = faces(lattice)
    after_h, after_e = (stages_of(waves, fields, placed, letter) for letter in "HE")
    stages = [*magnetic, *wire.stages(lattice, fields, placed), *after_h,
              *_staged(driven.updates(fields, "H")), *_fed(feeds, fields, placed), *electric, *after_e, *between,
              *_staged(driven.updates(fields, "E")), *_staged([edges])]  # fmt: skip
    far = surfaces(domain)
    stages += [surface.stage(fields) for surface in far]
    heard = tuple(_record(lattice, units))
    recorded = tuple(
        LineRecorder(line.source, line.name, f"{line.name}.voltage", f"{line.name}.current") for line in lines
    )
    receivers = [*(one for _, needed in heard for one in needed), *_line_receivers(lines)]
    receivers += [Receiver(one.voltage.name, one.voltage.name, one.cell) for one in feeds]
    problem = Problem.of(stages, receivers)
    return BuiltDomain(
        model or DomainModel(domain),
        domain,
        lattice,
        problem,
        MappingProxyType(units),
        tuple(one for one, _ in heard),
        recorded,
        tuple(FeedRecorder(one.source, one.name, one.voltage.name) for one in feeds),
        far,
    )


def _unit(domain: Domain, component: Component) -> float:
    length = domain.spacing[AXES.index(component[1])]
    return 1 / length if component[0] == "E" else 1 / (ETA_0 * length)


def _record(lattice: Lattice, units: Mapping[str, float]) -> Iterator[tuple[Recorder, tuple[Receiver, ...]]]:
    """Each receiver as placed, with the problem's receivers that it needs."""
    for number, placed in enumerate(lattice.domain.receivers, start=1):
        cell, outputs, needed = lattice.cell(placed.node), dict[str, Sum](), list[Receiver]()
        for output in placed.outputs:
            name = f"rx{number}.{output}"
            if output[0] == "I":
                parts = list(_around(lattice, output, cell))
                needed += [Receiver(f"{name}.{k}", of, at) for k, (_, of, at) in enumerate(parts, start=1)]
                outputs[output] = tuple((factor, f"{name}.{k}") for k, (factor, _, _) in enumerate(parts, start=1))
            elif output in units:
                needed.append(Receiver(name, output, cell))
                outputs[output] = ((units[output], name),)
            else:
                outputs[output] = ()
        name = placed.name or f"rx{number}"
        yield Recorder(name, placed.node, MappingProxyType(outputs), placed.name), tuple(needed)


def _around(lattice: Lattice, current: str, cell: Index) -> Iterator[tuple[float, Component, Index]]:
    """The components of H around the edge that a current flows along: sign, which and where; A."""
    for sign, along, of in neighbours(electric_of(current[1])):
        axis = lattice.along(along)
        if axis is not None and of in lattice.domain.live:
            before = tuple(i - (k == axis) for k, i in enumerate(cell))
            if before[axis] < 0:
                continue
            yield sign / ETA_0, of, cell
            yield -sign / ETA_0, of, before


def _staged(found: Iterable[tuple[Update, ...]]) -> list[Stage]:
    return [Stage(updates) for updates in found if updates]


def _fed(feeds: Iterable[Feed], fields: Mapping[Component, Field], factors: Mapping[Component, Factors]) -> list[Stage]:
    """The stages of feeds, those of the same kind together."""
    together = zip(*(feed.stages(fields, factors) for feed in feeds), strict=True)
    return [Stage(tuple(update for stage in alike for update in stage.updates)) for alike in together]


def _line_receivers(lines: list[Line]) -> Iterator[Receiver]:
    for line in lines:
        for what in (line.voltage, line.current):
            yield Receiver(what.name, what.name, line.at(LAST).lo)

"""From a model to a problem: geometry, coefficients, stages, receivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import MappingProxyType

from peergrid.errors import UsageError
from peergrid.grid import Boundary, Grid, Index
from peergrid.io.rule import Point
from peergrid.models.fdtd import assembly, cpml, sources
from peergrid.models.fdtd.check import check, check_window
from peergrid.models.fdtd.coefficients import coefficients
from peergrid.models.fdtd.constants import ETA_0
from peergrid.models.fdtd.dispersion import judge, resolved
from peergrid.models.fdtd.materials import BUILT_IN, CONDUCTOR, Geometry, time_step
from peergrid.models.fdtd.model import Component, LineSource, PlaneWave, RadarModel, nearest
from peergrid.models.fdtd.raster import rasterise
from peergrid.models.fdtd.silence import silent
from peergrid.models.model import Outcome
from peergrid.models.resolution import Resolution
from peergrid.models.survey import Trace, Vector, Wanted
from peergrid.stencil import Problem, Receiver


@dataclass(frozen=True)
class ModelReceiver:
    """A receiver as placed: `position` (metres) is that of its node; `traces` names one trace for each field.

    array: the name of the array it belongs to, '' for a single receiver.
    """

    name: str
    array: str
    cell: Index
    position: Point
    traces: Mapping[Component, str]


UNIT_NAMES = {"Ez": "V/m", "Hx": "A/m", "Hy": "A/m"}


@dataclass(frozen=True)
class Emitter:
    """A source on the grid; a plane wave has the position of its sheet along one axis and the middle along the
    other.
    """

    kind: str
    cell: Index
    position: Point


@dataclass(frozen=True, eq=False)
class Built:
    """A problem with the data needed to interpret its results; a `BuiltModel` of `models.model`.

    dt: seconds; units: the value of one unit of each stored field in V/m or A/m; warnings: sentences for the user.
    """

    model: RadarModel
    problem: Problem
    geometry: Geometry
    dt: float
    steps: int
    recorders: tuple[ModelReceiver, ...]
    emitters: tuple[Emitter, ...]
    units: Mapping[str, float]
    resolution: Resolution
    warnings: tuple[str, ...]

    @property
    def sources(self) -> tuple[Vector, ...]:
        return tuple(emitter.position for emitter in self.emitters)

    @property
    def receivers(self) -> Mapping[str, Vector]:
        return {name: recorder.position for recorder in self.recorders for name in recorder.traces.values()}

    @property
    def unit_names(self) -> Mapping[str, str]:
        return UNIT_NAMES

    def picture(self, path: Path) -> None:
        """Draw the materials, sources, receivers and absorbers."""
        from peergrid.models.fdtd.pictures import picture_model  # imports matplotlib, which is slow

        picture_model(path, self)

    def write_survey(self, folder: Path, traces: Sequence[Trace], about: Mapping[str, str | int]) -> Path:
        """Traces side by side in `results.h5` as gprMax merges them."""
        from peergrid.models.fdtd.results import write_survey

        results = folder / "results.h5"
        write_survey(results, self, traces, about)
        return results

    def write_others(self, merged: Path, wanted: Wanted) -> tuple[Path, ...]:
        """A section for each receiver."""
        if not self.model.output.pictures:
            return ()
        from peergrid.models.fdtd.gallery import draw_sections  # imports matplotlib, which is slow

        return draw_sections(merged, self, wanted)

    @property
    def trace_start(self) -> float:
        """The start of Ez; values of Hx and Hy are those of half a step before."""
        return self.dt

    @property
    def spacing(self) -> tuple[float, ...]:
        return self.geometry.spacing

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        """Traces, final fields and materials in `results.h5`, and the pictures that the model asks for."""
        from peergrid.models.fdtd.results import write_results

        results = folder / "results.h5"
        outcome.write_fields(lambda fields: write_results(results, self, outcome.traces, fields, outcome.about))
        if not outcome.pictures or (not self.model.output.pictures and self.model.output.animation == "none"):
            return (results,)
        from peergrid.models.fdtd.gallery import draw_all  # imports matplotlib, which is slow

        return results, *draw_all(folder, self, outcome.traces, outcome.snapshots)


def build(model: RadarModel) -> Built:
    """The problem of a model. Raises UsageError if the model is not valid (see `check`)."""
    check(model)
    geometry = place(model)
    grid = Grid(geometry.nodes, tuple(_boundary(wraps) for wraps in model.periodic), model.grid.dtype)
    dt = time_step(geometry.used, geometry.spacing, model.grid.courant)
    steps = model.grid.steps or _steps(model, dt)
    recorders = tuple(_recorders(model, geometry))
    emitters = tuple(_emitters(model, geometry))
    fine = resolved(model, geometry)
    return Built(
        model=model,
        problem=_problem(model, grid, geometry, dt, steps, recorders, emitters),
        geometry=geometry,
        dt=dt,
        steps=steps,
        recorders=recorders,
        emitters=emitters,
        units=MappingProxyType({"Ez": 1.0, "Hx": geometry.spacing[1] / geometry.spacing[0] / ETA_0, "Hy": 1 / ETA_0}),
        resolution=fine,
        warnings=(
            *judge(fine, model),
            *_placement_warnings(model, geometry, recorders, emitters),
            *silent(model, dt, steps),
        ),
    )


def _steps(model: RadarModel, dt: float) -> int:
    check_window(model, dt)
    return ceil((model.grid.time_window or 0.0) / dt)


def place(model: RadarModel) -> Geometry:
    """The material of each cell."""
    materials = (*BUILT_IN, *model.materials)
    index = {material.name: number for number, material in enumerate(materials)}
    cells = rasterise(model.cells, model.grid.spacings, index[model.grid.background], model.shapes, index)
    return Geometry(cells, materials, model.grid.spacings, model.periodic)


def _problem(
    model: RadarModel, grid: Grid, geometry: Geometry, dt: float, steps: int,
    recorders: tuple[ModelReceiver, ...], emitters: tuple[Emitter, ...],
) -> Problem:  # fmt: skip
    layers = (
        cpml.layer(geometry, 0, (model.thickness("x-"), model.thickness("x+"))),
        cpml.layer(geometry, 1, (model.thickness("y-"), model.thickness("y+"))),
    )
    frame = assembly.Frame(grid, geometry, layers, model.absorber, dt)
    fields, factors = assembly.Fields.on(grid), coefficients(grid, geometry, dt)
    driven = sources.drives(frame, model.sources, [emitter.cell for emitter in emitters], steps)
    after_h, after_e = sources.stages(fields, driven)
    magnetic = assembly.magnetic_stage(fields, factors, assembly.cut(frame, half=True))
    electric = assembly.electric_stage(fields, factors, assembly.cut(frame, half=False))
    return Problem.of((magnetic, *after_h, electric, *after_e), _receivers(recorders))


def _receivers(recorders: tuple[ModelReceiver, ...]) -> Iterator[Receiver]:
    for recorder in recorders:
        for component, trace in recorder.traces.items():
            yield Receiver(trace, component, recorder.cell)


def _boundary(wraps: bool) -> Boundary:
    return "periodic" if wraps else "fixed"


def _recorders(model: RadarModel, geometry: Geometry) -> Iterator[ModelReceiver]:
    taken: set[str] = set()
    for name, array, position, components in _placed(model):
        if name in taken:
            raise UsageError(f"Receivers are expected to have different names, got '{name}' twice; rename one.")
        taken.add(name)
        cell = _node(geometry, position)
        traces: dict[Component, str] = {component: f"{name}.{component}" for component in components}
        yield ModelReceiver(name, array, cell, _position(geometry, cell), MappingProxyType(traces))


def _placed(model: RadarModel) -> Iterator[tuple[str, str, Point, tuple[Component, ...]]]:
    """Name, array, position and fields of every receiver, single ones first."""
    for number, receiver in enumerate(model.receivers, start=1):
        yield receiver.name or f"rx{number}", "", receiver.position, receiver.fields
    for number, array in enumerate(model.receiver_arrays, start=1):
        label = array.name or f"array{number}"
        for k in range(array.count):
            share = k / (array.count - 1)
            x, y = (a + (b - a) * share for a, b in zip(array.first, array.last, strict=True))
            yield f"{label}-{k + 1}", label, (x, y), array.fields


def _emitters(model: RadarModel, geometry: Geometry) -> Iterator[Emitter]:
    for source in model.sources:
        cell = _node(geometry, _source_position(model, source))
        yield Emitter(source.kind, cell, _position(geometry, cell))


def _source_position(model: RadarModel, source: LineSource | PlaneWave) -> Point:
    if isinstance(source, LineSource):
        return source.position
    middle = (model.grid.size[0] / 2, model.grid.size[1] / 2)
    return (source.position, middle[1]) if source.direction[1] == "x" else (middle[0], source.position)


def _node(geometry: Geometry, position: Point) -> Index:
    """The nearest node; across a periodic edge, its image."""
    return tuple(n % extent for n, extent in zip(nearest(position, geometry.spacing), geometry.nodes, strict=True))


def _position(geometry: Geometry, cell: Index) -> Point:
    return cell[0] * geometry.spacing[0], cell[1] * geometry.spacing[1]


def _placement_warnings(
    model: RadarModel, geometry: Geometry, recorders: tuple[ModelReceiver, ...], emitters: tuple[Emitter, ...]
) -> Iterator[str]:
    for recorder in recorders:
        if _absorbed(model, recorder.cell):
            yield f"Receiver '{recorder.name}' lies inside the absorber, where fields mean nothing; move it inwards."
        if "Ez" in recorder.traces and CONDUCTOR in sources.around(geometry, recorder.cell):
            yield f"Receiver '{recorder.name}' lies in or on a perfect conductor, where Ez stays zero; move it away."
    for number, (source, emitter) in enumerate(zip(model.sources, emitters, strict=True), start=1):
        if isinstance(source, LineSource) and _absorbed(model, emitter.cell):
            yield f"source[{number}] lies inside the absorber, which weakens it; move it inwards."
        across = "y" if isinstance(source, PlaneWave) and source.direction[1] == "x" else "x"
        if isinstance(source, PlaneWave) and across not in model.grid.periodic:
            yield (
                f"source[{number}] is a plane wave of finite width and diffracts at its edges; add '{across}' to "
                f"grid.periodic for an unbounded one."
            )


def _absorbed(model: RadarModel, cell: Index) -> bool:
    sides = ((model.thickness("x-"), model.thickness("x+")), (model.thickness("y-"), model.thickness("y+")))
    return any(
        i < low or i > n - high for i, n, (low, high) in zip(cell, model.cells, sides, strict=True) if low or high
    )

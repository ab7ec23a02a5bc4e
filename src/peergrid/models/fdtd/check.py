"""Requirements on a model beyond the types of its keys; each fault is one sentence with the key's path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from math import isclose

from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.io.rule import Point
from peergrid.models.fdtd.materials import BUILT_IN
from peergrid.models.fdtd.model import SIDES, LineSource, PlaneWave, RadarModel, nearest
from peergrid.models.fdtd.shapes import Box, Layer, Voxels
from peergrid.models.requirements import check_animation, check_distinct
from peergrid.models.survey import check_different, shifts

MOST = 10**9
"""The most cells along an axis, and the most time steps."""
MOST_MATERIALS = 10_000
MOST_RECEIVERS = 100_000
MOST_INCIDENT = 500_000
"""The most steps with a plane wave, whose samples are worked out on a line as long as half of them."""
FLATTEST = 10_000.0  # of the spacings along both axes one over the other


def check(model: RadarModel) -> None:
    """Raises UsageError for the first fault found."""
    _check_duration(model)
    _check_extent(model)
    _check_absorber(model)
    _check_materials(model)
    _check_shapes(model)
    _check_sources(model)
    _check_receivers(model)
    _check_output(model)
    _check_survey(model)


def check_window(model: RadarModel, dt: float) -> None:
    """Raises UsageError if the time of the run takes too many steps of dt seconds."""
    window = model.grid.time_window or 0.0
    waves = any(isinstance(source, PlaneWave) for source in model.sources)
    most = MOST_INCIDENT if waves else MOST
    if not window <= most * dt:
        meant = f", or give seconds: {window:g}e-9?" if window * 1e-9 <= most * dt else "."
        raise UsageError(
            f"grid.time_window is expected to be at most {most:,} steps of {dt:.3g} s{' with a plane wave' * waves}, "
            f"got {window:g} s; shorten it{meant}"
        )


def suggestion(got: str, known: Sequence[str]) -> str:
    """'did you mean ...?' if a known name is close, else the known names."""
    close = get_close_matches(got, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(repr(k) for k in known)}."


def _check_duration(model: RadarModel) -> None:
    if (model.grid.time_window is None) == (model.grid.steps is None):
        got = "none; add one" if model.grid.steps is None else "both; keep one"
        raise UsageError(f"Exactly one of grid.time_window and grid.steps is expected, got {got}.")


def _check_extent(model: RadarModel) -> None:
    dx, dy = model.grid.spacings
    if max(dx, dy) > FLATTEST * min(dx, dy):
        raise UsageError(
            f"grid.spacing is expected to differ by a factor of at most {FLATTEST:g} between the axes, got {dx:g} and "
            f"{dy:g} m; use cells that are nearer to squares."
        )
    for length, step, axis in zip(model.grid.size, model.grid.spacings, "xy", strict=True):
        if not length <= MOST * step:
            raise UsageError(
                f"grid.size along {axis} is expected to be at most {MOST:,} cells, got {length:g} m in cells of "
                f"{step:g} m; use a larger grid.spacing."
            )
    for length, step, count, axis in zip(model.grid.size, model.grid.spacings, model.cells, "xy", strict=True):
        if step > length:
            raise UsageError(
                f"grid.spacing is expected to be smaller than the grid, in metres, got {step:g} for {length:g} m along "
                f"{axis}; is it {step / 1000:g}?"
            )
        if not isclose(count * step, length, rel_tol=1e-6):
            raise UsageError(
                f"grid.size along {axis} is expected to be a whole number of cells of {step:g} m, got {length:g} m; "
                f"use {max(count, 1) * step:g}."
            )
        thickness = sum(model.thickness(side) for side in SIDES if side[0] == axis)
        if count < thickness + 3:
            raise UsageError(
                f"grid.size along {axis} is expected to leave at least 3 cells between the absorbers, got {count} "
                f"cells with {thickness} of absorber; enlarge the grid or lower absorber.cells."
            )


def _check_absorber(model: RadarModel) -> None:
    check_distinct(model.grid.periodic, "grid.periodic")
    check_distinct(model.absorber.sides or (), "absorber.sides")
    for side in model.absorber.sides or ():
        if side[0] in model.grid.periodic:
            raise UsageError(
                f"absorber.sides is expected to name no side of a periodic axis, got '{side}' with '{side[0]}' in "
                f"grid.periodic; remove one of them."
            )


def _check_materials(model: RadarModel) -> None:
    if len(model.materials) > MOST_MATERIALS:
        raise UsageError(
            f"material is expected to be at most {MOST_MATERIALS:,} tables, got {len(model.materials):,}; leave out "
            "some."
        )
    known = dict.fromkeys(m.name for m in BUILT_IN)
    for number, material in enumerate(model.materials, start=1):
        if material.name in known:
            raise UsageError(
                f"material[{number}].name is expected to be a new name, got '{material.name}' again; rename it."
            )
        known[material.name] = None
    for path, name in _named_materials(model):
        if name not in known:
            raise UsageError(f"{path} is expected to name a material, got '{name}'; {suggestion(name, list(known))}")


def _named_materials(model: RadarModel) -> Iterator[tuple[str, str]]:
    yield "grid.background", model.grid.background
    for number, shape in enumerate(model.shapes, start=1):
        if isinstance(shape, Voxels):
            yield from ((f"shape[{number}].materials[{k}]", name) for k, name in enumerate(shape.materials, start=1))
        else:
            yield f"shape[{number}].material", shape.material


def _check_shapes(model: RadarModel) -> None:
    for number, shape in enumerate(model.shapes, start=1):
        if isinstance(shape, Box) and not (shape.lower[0] < shape.upper[0] and shape.lower[1] < shape.upper[1]):
            raise UsageError(
                f"shape[{number}].upper is expected to lie above and right of lower {_show(shape.lower)}, "
                f"got {_show(shape.upper)}; swap or correct them."
            )
        if isinstance(shape, Layer) and not shape.bottom < shape.top:
            raise UsageError(
                f"shape[{number}].top is expected to lie above bottom {shape.bottom:g}, got {shape.top:g}; "
                f"swap or correct them."
            )


def _check_sources(model: RadarModel) -> None:
    waves = any(isinstance(source, PlaneWave) for source in model.sources)
    if waves and (model.grid.steps or 0) > MOST_INCIDENT:
        raise UsageError(
            f"grid.steps is expected to be at most {MOST_INCIDENT:,} with a plane wave, got {model.grid.steps:,}; make "
            "the run shorter, or use a line source."
        )
    for number, source in enumerate(model.sources, start=1):
        path = f"source[{number}].position"
        if isinstance(source, LineSource):
            _check_inside(model, source.position, path, margin=1)
        elif isinstance(source, PlaneWave):
            _check_sheet(model, source, path)


def _check_sheet(model: RadarModel, source: PlaneWave, path: str) -> None:
    along = source.direction[1]
    axis = "xy".index(along)
    if along in model.grid.periodic:
        raise UsageError(
            f"{path[:-9]}.direction is expected to be along an axis that is not periodic, got '{source.direction}'; "
            f"remove '{along}' from grid.periodic."
        )
    low, high = (model.thickness(side) for side in SIDES if side[0] == along)
    step, count = model.grid.spacings[axis], model.cells[axis]
    if not low + 1 <= round(source.position / step) <= count - high - 1:
        raise UsageError(
            f"{path} is expected to lie between {(low + 1) * step:g} and {(count - high - 1) * step:g} m, clear of the "
            f"absorber and the walls, got {source.position:g}; move the plane wave."
        )


def _check_receivers(model: RadarModel) -> None:
    count = len(model.receivers) + sum(array.count for array in model.receiver_arrays)
    if count > MOST_RECEIVERS:
        raise UsageError(
            f"receiver and receiver_array are expected to give at most {MOST_RECEIVERS:,} receivers, got {count:,}; "
            "use fewer, or snapshots."
        )
    for number, receiver in enumerate(model.receivers, start=1):
        _check_inside(model, receiver.position, f"receiver[{number}].position")
        check_distinct(receiver.fields, f"receiver[{number}].fields")
    for number, array in enumerate(model.receiver_arrays, start=1):
        _check_inside(model, array.first, f"receiver_array[{number}].first")
        _check_inside(model, array.last, f"receiver_array[{number}].last")
        check_distinct(array.fields, f"receiver_array[{number}].fields")
        if array.first == array.last:
            raise UsageError(
                f"receiver_array[{number}].last is expected to differ from first, got {_show(array.last)} for both; "
                f"use a [[receiver]] for a single place."
            )


def _check_output(model: RadarModel) -> None:
    output = model.output
    check_distinct(output.fields, "output.fields")
    if output.snapshots and not output.fields:
        raise UsageError(
            "output.fields is expected to name at least one field to take snapshots of, got none; add one."
        )
    check_animation(output.animation, output.snapshots, output.width, model.grid.size)


def _check_survey(model: RadarModel) -> None:
    """Check that every trace is a valid model, with an antenna on another node than in the trace before."""
    if model.survey is None:
        return
    moves = shifts(model)
    for number, trace in enumerate(map(model.moved, moves), start=1):
        try:
            _check_sources(trace)
            _check_receivers(trace)
        except UsageError as error:
            raise UsageError(f"survey, trace {number}: {error}") from None
    check_different(moves, lambda shift: _nodes(model.moved(shift)))


def _nodes(model: RadarModel) -> list[Index]:
    """The nodes of everything that moves from trace to trace."""
    placed = [source.position for source in model.sources if isinstance(source, LineSource)]
    placed += [receiver.position for receiver in model.receivers]
    placed += [end for array in model.receiver_arrays for end in (array.first, array.last)]
    return [nearest(position, model.grid.spacings) for position in placed]


def _check_inside(model: RadarModel, position: Point, path: str, margin: int = 0) -> None:
    """Check that a position is a node of the grid; margin: and not on a conducting wall."""
    for value, step, count, wraps in zip(position, model.grid.spacings, model.cells, model.periodic, strict=True):
        edge = 0 if wraps else margin
        if not edge <= round(value / step) <= count - edge or abs(value) > 1e9:
            inside = " and off its walls" if margin else ""
            raise UsageError(
                f"{path} is expected to lie in the grid of {model.grid.size[0]:g} by {model.grid.size[1]:g} m{inside}, "
                f"got {_show(position)}; move it inside."
            )


def _show(point: Point) -> str:
    return f"[{point[0]:g}, {point[1]:g}]"

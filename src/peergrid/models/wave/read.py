"""The reader of models of seismic waves: the kinds acoustic2d, acoustic3d, vti2d, vti3d, tti2d and tti3d."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import floor, isclose
from typing import Any

import numpy as np

from peergrid.errors import UsageError, about
from peergrid.io.schema import read_table
from peergrid.models.survey import traces
from peergrid.models.wave.medium import PARAMETERS, Medium
from peergrid.models.wave.model import KINDS, WaveModel
from peergrid.models.wave.propagator import SECOND, Propagator

DENSEST = 100  # receivers of an array on the length of a cell


def read(table: Mapping[str, Any]) -> WaveModel:
    """The model of a file's tables; a `Reader` of `models.model`."""
    model = read_table(WaveModel, table)
    if (model.grid.time is None) == (model.grid.steps is None):
        got = "neither" if model.grid.time is None else "both"
        raise UsageError(f"grid is expected to have a time or a number of steps, got {got}; give one of them.")
    if not model.sources:
        raise UsageError("A model is expected to have at least one source, got none; add [[source]].")
    for path, given in _places(model):
        if len(given) != model.ndim:
            raise UsageError(
                f"{path} is expected to have {model.ndim} numbers in a model of kind '{model.model.kind}', got "
                f"{len(given)}; correct it, or the kind."
            )
    _check_size(model)
    for path, name in _named(model):
        if name not in KINDS[model.equations] or (name == "azimuth" and model.ndim == 2):
            raise UsageError(f"{path} is no parameter of a model of kind '{model.model.kind}'; leave it out.")
    for number, layer in enumerate(model.layers, start=1):
        if layer.top > (bottom := model.grid.size[-1]):
            raise UsageError(
                f"layer[{number}].top is expected to be a depth from 0 to {bottom:g} m, got {layer.top:g}; correct it, "
                "or grid.size."
            )
        for name in PARAMETERS:
            if getattr(layer, name) is not None and getattr(model.medium, name) is None:
                raise UsageError(f"layer[{number}].{name} is expected beside medium.{name}, which is missing; add it.")
    if model.equations == "tti" and model.medium.tilt is None:
        raise UsageError("medium.tilt is expected to be a number or a file, but is missing; add it, or use a kind vti.")
    if model.equations != "acoustic" and model.grid.time_order == 4:
        raise UsageError(f"grid.{SECOND}")
    _check_density(model)
    _check_survey(model)
    return model


def _check_size(model: WaveModel) -> None:
    """Check that the nodes reach from one end of the medium to the other, as positions in it are metres."""
    for length, h, nodes, axis in zip(model.grid.size, model.spacings, model.nodes, model.axes, strict=True):
        if not isclose((nodes - 1) * h, length, rel_tol=1e-6):
            raise UsageError(
                f"grid.size along {axis} is expected to be a whole number of cells of {h:g} m, got {length:g} m; use "
                f"{max(nodes - 1, 1) * h:g}."
            )


def _check_density(model: WaveModel) -> None:
    """Check that receivers of an array are not so close that their traces hardly differ: each takes an update."""
    for number, array in enumerate(model.receiver_arrays, start=1):
        way = (abs(b - a) / h for a, b, h in zip(array.first, array.last, model.spacings, strict=True))
        cells = max(1.0, *way)
        if array.count > DENSEST * cells + 1:
            raise UsageError(
                f"receiver_array[{number}].count is expected to be at most {DENSEST} receivers to a cell, "
                f"{floor(DENSEST * cells) + 1:,} on {cells:.3g} cells, got {array.count:,}; use fewer."
            )


def _check_survey(model: WaveModel) -> None:
    """Check that every shot has its sources and receivers where a run takes them."""
    if model.survey is None:
        return
    waves = Propagator(Medium(model.nodes, model.spacings, 1000.0), model.scheme)

    def check(shots: Sequence[WaveModel]) -> None:
        waves.source_cells(np.array([one.position for shot in shots for one in shot.sources]))
        waves.frame.cells([place for shot in shots for place in _heard(shot)], "Receivers")

    shots = list(traces(model))
    try:
        check(shots)
    except UsageError:
        for number, shot in enumerate(shots, start=1):
            with about(f"survey, trace {number}"):
                check([shot])


def _heard(model: WaveModel) -> Iterator[tuple[float, ...]]:
    """The positions of single receivers, and of the ends of arrays."""
    yield from (one.position for one in model.receivers)
    for array in model.receiver_arrays:
        yield from (array.first, array.last)


def _places(model: WaveModel) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The positions and lengths, which need one number for each axis, each with its path."""
    yield "grid.size", model.grid.size
    if isinstance(model.grid.spacing, tuple):
        yield "grid.spacing", model.grid.spacing
    for number, source in enumerate(model.sources, start=1):
        yield f"source[{number}].position", source.position
    for number, receiver in enumerate(model.receivers, start=1):
        yield f"receiver[{number}].position", receiver.position
    for number, array in enumerate(model.receiver_arrays, start=1):
        yield f"receiver_array[{number}].first", array.first
        yield f"receiver_array[{number}].last", array.last


def _named(model: WaveModel) -> Iterator[tuple[str, str]]:
    """The parameters that are given, each with its path."""
    for name in PARAMETERS:
        if getattr(model.medium, name) is not None:
            yield f"medium.{name}", name
        for number, layer in enumerate(model.layers, start=1):
            if getattr(layer, name) is not None:
                yield f"layer[{number}].{name}", name
    if model.medium.elliptical is not None:
        yield "medium.elliptical", "elliptical"

"""The positions of a survey's traces in its results, with the attributes that gprMax has about them, and sections."""

from __future__ import annotations

from collections.abc import Sequence

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Array
from peergrid.io.dimensions import add_numbers, attach
from peergrid.models.survey import Trace, Vector, distances

STEPS = {"sources": "srcsteps", "receivers": "rxsteps"}
"""The attributes, each of a dataset."""


def write_positions(
    file: h5py.File, traces: Sequence[Trace], spacing: tuple[float, float, float], rows: Sequence[int | None]
) -> None:
    """Write `/survey/sources` and `/survey/receivers`, metres, shapes (traces, sources, 3) and (traces, receivers, 3).

    spacing: metres of a cell; attributes have the cells from the first trace to the second. rows: of a record of each
    receiver among those of a trace; without one its positions are not known, NaN.
    """
    found = {name: _positions([getattr(one, name) for one in traces]) for name in STEPS}
    unknown = np.full((len(traces), 3), np.nan)
    each = [unknown if row is None else found["receivers"][:, row] for row in rows]
    found["receivers"] = np.stack(each, axis=1) if each else unknown[:, :0, np.newaxis]
    counts = {name.removesuffix("s"): places.shape[1] for name, places in found.items()}
    add_numbers(file, {"trace": len(traces), **counts, "axis": 3})
    for name, places in found.items():
        file[f"survey/{name}"] = places
        attach(file[f"survey/{name}"], ["trace", name.removesuffix("s"), "axis"], "m")
        file.attrs[STEPS[name]] = _cells(places, spacing)


def read_section(file: h5py.File, record: str, receiver: int) -> tuple[Array, tuple[tuple[float, ...], str]]:
    """A section of a survey's results: the traces of a record, such as `rxs/rx1/Ez`, shape (traces, samples), and the
    place of each with the label of that axis; receiver: its row in `/survey/receivers`.
    """
    words, along = distances(file["survey/sources"][:], file["survey/receivers"][:, receiver])
    return file[record][:].T, (along, words)


def _positions(given: Sequence[Sequence[Vector]]) -> NDArray[np.float64]:
    """With 0 along an axis that a plane does not have."""
    whole = [[(*place, 0.0)[:3] for place in one] for one in given]
    return np.array(whole, np.float64).reshape(len(given), -1, 3)


def _cells(places: NDArray[np.float64], spacing: tuple[float, float, float]) -> tuple[int, ...]:
    """The cells from the first trace to the second, of the first object that moves."""
    if len(places) < 2 or not places.shape[1]:
        return 0, 0, 0
    ways = np.rint(np.nan_to_num(places[1] - places[0]) / np.array(spacing)).astype(int)
    way = next((one for one in ways if one.any()), ways[0])
    return tuple(int(step) for step in way)

"""Results in one HDF5 file in the layout of gprMax: `/rxs/rx1/Ez` and attributes, so that its plotting tools read them.

Beyond that layout there are the final fields (`/fields`) and the materials (`/geometry`). All values are in SI units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np

from peergrid.grid import Array
from peergrid.io.dimensions import AXES, add_axes, add_times, attach
from peergrid.io.hdf5 import creating
from peergrid.models.fdtd.build import UNIT_NAMES, Built, ModelReceiver
from peergrid.models.positions import write_positions
from peergrid.models.survey import Trace
from peergrid.version import VERSION

ATTRIBUTES = 60_000  # bytes: HDF5 keeps at most 64 KiB of them with an object
UNIT_OF_SOURCE = {"line": "A", "plane_wave": "V/m"}
PER_NAME = 16  # bytes of an entry that is a text


def write_results(
    path: Path,
    built: Built,
    traces: Mapping[str, Array],
    fields: Iterable[tuple[str, Array]],
    about: Mapping[str, str | int | float] | None = None,
) -> None:
    """Write traces, final fields and geometry.

    traces: by the names in `built.recorders`, one value per step, as stored by the run; fields: names and
    final values, one after another;
    about: further attributes of the file, such as devices and digest. Raises UsageError if the file cannot be written;
    it gets its name only when complete.
    """
    about = about or {}
    samples = 1 + (len(next(iter(traces.values()))) if traces else int(about.get("steps", built.steps)))
    with creating(path) as new:
        file = new.hdf5
        _describe(file, built, samples, about)
        _add_scales(file, built, samples)
        for number, (emitter, source) in enumerate(zip(built.emitters, built.model.sources, strict=True), start=1):
            group = file.create_group(f"srcs/src{number}")
            group.attrs["Type"] = emitter.kind
            group.attrs["Position"] = (*emitter.position, 0.0)
            group["waveform"] = source.waveform.sample(file["time"][:])
            attach(group["waveform"], ["time"], UNIT_OF_SOURCE[emitter.kind])
        for number, recorder in enumerate(built.recorders, start=1):
            _write_receiver(file.create_group(f"rxs/rx{number}"), built, recorder, traces)
        _write_fields(file, built, fields)
        _write_geometry(file, built)


def write_survey(path: Path, built: Built, traces: Sequence[Trace], about: Mapping[str, str | int]) -> None:
    """The traces of a survey side by side, shape (samples, traces) for each receiver and field, as gprMax merges them.

    built: the first trace's. Beside them `/survey/sources` and `/survey/receivers`: positions as placed, shapes
    (traces, sources, 3) and (traces, receivers, 3). Raises as `write_results`.
    """
    with creating(path) as new:
        file = new.hdf5
        _describe(file, built, built.steps + 1, about)
        add_times(file, built.steps + 1, built.dt)
        names = list(built.receivers)
        rows = [names.index(next(iter(recorder.traces.values()))) for recorder in built.recorders]
        write_positions(file, traces, tuple(file.attrs["dx_dy_dz"]), rows)
        row = 0
        for number, recorder in enumerate(built.recorders, start=1):
            group = file.create_group(f"rxs/rx{number}")
            group.attrs["Name"], group.attrs["Position"] = recorder.name, (*recorder.position, 0.0)
            for component in recorder.traces:
                shape = built.steps + 1, len(traces)
                section = group.create_dataset(component, shape, built.problem.grid.dtype)
                for column, one in enumerate(traces):
                    section[:, column] = from_rest(one.values[row])
                new.check()
                attach(section, ["time", "trace"], UNIT_NAMES[component])
                row += 1
        _write_geometry(file, built)


def _describe(file: h5py.File, built: Built, samples: int, about: Mapping[str, str | int | float]) -> None:
    (nx, ny), (dx, dy) = built.geometry.cells.shape, built.geometry.spacing
    file.attrs["Title"] = built.model.model.title
    file.attrs["peergrid"] = VERSION
    file.attrs["Iterations"] = samples
    file.attrs["nx_ny_nz"] = (nx, ny, 1)
    file.attrs["dx_dy_dz"] = (dx, dy, dx)
    file.attrs["dt"] = built.dt
    file.attrs["nsrc"] = len(built.emitters)
    file.attrs["nrx"] = len(built.recorders)
    file.attrs["srcsteps"] = (0, 0, 0)
    file.attrs["rxsteps"] = (0, 0, 0)
    for name, value in about.items():
        file.attrs[name] = value


def _add_scales(file: h5py.File, built: Built, samples: int) -> None:
    """Add the time of each sample and the positions of nodes as dimension scales."""
    add_times(file, samples, built.dt)
    add_axes(file, AXES[:2], built.geometry.spacing, built.problem.grid.shape)


def _write_receiver(group: h5py.Group, built: Built, recorder: ModelReceiver, traces: Mapping[str, Array]) -> None:
    group.attrs["Name"] = recorder.name
    group.attrs["Position"] = (*recorder.position, 0.0)
    for component, name in recorder.traces.items():
        group[component] = from_rest(traces[name], built.units[component])
        attach(group[component], ["time"], UNIT_NAMES[component])
    if set(recorder.traces) == set(UNIT_NAMES):  # tools that show all six components find zeros for the others
        for absent in ("Ex", "Ey", "Hz"):
            group[absent] = np.zeros_like(group["Ez"])


def from_rest(trace: Array, unit: float = 1.0) -> Array:
    """A trace in SI units with the field at rest before the first step: sample k is Ez at time k dt (H at k - 1/2)."""
    return np.concatenate([np.zeros(1, trace.dtype), trace * trace.dtype.type(unit)])


def _write_fields(file: h5py.File, built: Built, fields: Iterable[tuple[str, Array]]) -> None:
    group = file.create_group("fields")
    for name, values in fields:
        if name in built.units:
            group[name] = values * values.dtype.type(built.units[name])
            attach(group[name], AXES[: values.ndim], UNIT_NAMES[name])


def _write_geometry(file: h5py.File, built: Built) -> None:
    cells = file.create_dataset("geometry/cells", data=built.geometry.cells, compression="gzip", compression_opts=1)
    names = [material.name for material in built.geometry.materials]
    file["geometry/materials"] = names
    if sum(len(name.encode()) + PER_NAME for name in names) < ATTRIBUTES:
        cells.attrs["materials"] = names

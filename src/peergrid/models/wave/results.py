"""A model of waves as built, and its results: the gather as HDF5, SEG-Y and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

import h5py
import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.io.atomic import replacing
from peergrid.io.dimensions import add_axes, add_numbers, add_times, attach
from peergrid.io.hdf5 import creating
from peergrid.models.model import Outcome
from peergrid.models.survey import Trace, Vector
from peergrid.models.wave.model import WaveModel
from peergrid.models.wave.points import BEHIND, place
from peergrid.models.wave.shot import Gather, Shot
from peergrid.stencil import Problem
from peergrid.version import VERSION

MOST_SAMPLES = 32767  # of a trace in SEG-Y
CENTIMETRES = -100  # the scalar of SEG-Y's coordinates
ARRAYS = (
    ("traces", ("receiver", "time"), None),
    ("receivers", ("receiver", "axis"), "m"),
    ("sources", ("source", "axis"), "m"),
)
"""The arrays of a gather, their dimensions and their units."""


@dataclass(frozen=True, eq=False)
class BuiltWaves:
    """The problem of a model of waves."""

    model: WaveModel

    def __post_init__(self) -> None:
        _ = self.shot.problem

    @property
    def shot(self) -> Shot:
        return self.model.shot

    @property
    def problem(self) -> Problem:
        return self.shot.problem

    @property
    def steps(self) -> int:
        return self.shot.steps

    @property
    def dt(self) -> float:
        return self.shot.propagator.dt

    @property
    def trace_start(self) -> float:
        return 0.0

    @property
    def spacing(self) -> tuple[float, ...]:
        return self.model.spacings

    @property
    def axes(self) -> tuple[str, ...]:
        return ("x", "z") if self.model.ndim == 2 else ("x", "y", "z")

    @property
    def origin(self) -> tuple[float, ...]:
        first = self.shot.propagator.frame.inside.lo
        return tuple(-n * step for n, step in zip(first, self.spacing, strict=True))

    @property
    def units(self) -> dict[str, float]:
        return dict.fromkeys(self.model.waves, 1.0)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        silent = () if len(self.model.places) else ("The model has no receivers: nothing is recorded.",)
        return (*self.shot.warnings, *silent)

    @property
    def sources(self) -> tuple[Vector, ...]:
        return tuple(tuple(map(float, place)) for place in self.shot.source_positions)

    @property
    def receivers(self) -> Mapping[str, Vector]:
        places = (tuple(map(float, place)) for place in self.shot.receiver_positions)
        return dict(zip(self.shot.names, places, strict=True))

    def picture(self, path: Path) -> None:
        """Draw the medium with sources and receivers."""
        from peergrid.models.wave.picture import picture_medium  # takes matplotlib along

        picture_medium(path, self.shot, self.model.title)

    def write_survey(self, folder: Path, traces: Sequence[Trace], about: Mapping[str, str | int]) -> tuple[Path, ...]:
        """Write all shots to `gathers.h5`, to SEG-Y if requested, and a section of the first receiver's traces."""
        gathers = Gathers(traces, self.dt)
        written = [folder / "gathers.h5"]
        with creating(written[0]) as new:
            _write_gathers(new.hdf5, gathers, self, about)
        if self.model.output.segy:
            written.append(folder / "gathers.segy")
            write_segy(written[-1], gathers)
        if self.model.output.picture and len(traces) > 1:
            from peergrid.models.wave.picture import picture_survey  # imports matplotlib

            written.append(folder / "section.png")
            picture_survey(written[-1], traces, gathers, self.model.title, self.model.output.gain)
        return tuple(written)

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        gather = self.shot.gather(outcome.traces)
        written = [folder / "gather.h5"]
        with creating(written[0]) as new:
            _write_gather(new.hdf5, gather, self, outcome)
        if self.model.output.segy and len(gather.traces):
            written.append(folder / "gather.segy")
            write_segy(written[-1], [gather])
        if outcome.pictures and self.model.output.picture and len(gather.traces):
            from peergrid.models.wave.picture import picture_gather  # imports matplotlib

            written.append(folder / "gather.png")
            picture_gather(written[-1], gather, self.model.title)
        return tuple(written)


@dataclass(frozen=True)
class Gathers(Sequence[Gather]):
    """The gathers of a survey's shots, made from their traces on access."""

    traces: Sequence[Trace]
    dt: float

    def __len__(self) -> int:
        return len(self.traces)

    @overload
    def __getitem__(self, number: int) -> Gather: ...

    @overload
    def __getitem__(self, number: slice) -> list[Gather]: ...

    def __getitem__(self, number: int | slice) -> Gather | list[Gather]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        trace = self.traces[number]
        return Gather(trace.values, self.dt, np.array(trace.sources), np.array(trace.receivers))


def _write_gathers(file: h5py.File, gathers: Gathers, built: BuiltWaves, about: Mapping[str, str | int]) -> None:
    """Arrays of `_write_gather` with a first axis of shots."""
    file.attrs["title"], file.attrs["kind"] = built.model.title, built.model.model.kind
    file.attrs["peergrid"], file.attrs["dt"] = VERSION, built.dt
    for name, value in about.items():
        file.attrs[name] = value
    _add_scales(file, gathers[0], built)
    add_numbers(file, {"shot": len(gathers)})
    for number, gather in enumerate(gathers):
        for name, dimensions, unit in ARRAYS:
            values = getattr(gather, name)
            if not number:
                file.create_dataset(name, (len(gathers), *values.shape), values.dtype)
                attach(file[name], ["shot", *dimensions], unit)
            file[name][number] = values


def _write_gather(file: h5py.File, gather: Gather, built: BuiltWaves, outcome: Outcome) -> None:
    file.attrs["title"] = built.model.title
    file.attrs["kind"] = built.model.model.kind
    file.attrs["peergrid"] = VERSION
    file.attrs["dt"] = built.dt
    for name, value in outcome.about.items():
        file.attrs[name] = value
    _add_scales(file, gather, built)
    for name, dimensions, unit in ARRAYS:
        file[name] = getattr(gather, name)
        attach(file[name], dimensions, unit)
    for name, values in outcome.fields:
        if name in built.units:
            file[f"fields/{name}"] = built.shot.medium_part(values)
            attach(file[f"fields/{name}"], built.axes)


def _add_scales(file: h5py.File, gather: Gather, built: BuiltWaves) -> None:
    """Add dimension scales: seconds of samples, metres of nodes, numbers of receivers, sources and axes."""
    add_times(file, gather.traces.shape[1], gather.dt)
    add_axes(file, built.axes, built.spacing, built.model.nodes)
    add_numbers(file, {"receiver": len(gather.receivers), "source": len(gather.sources), "axis": len(built.spacing)})


def write_segy(path: Path, gathers: Sequence[Gather]) -> None:
    """Gathers as SEG-Y, one shot after another: 4-byte IEEE floats, positions in centimetres, sampled at the whole
    microseconds below dt.
    """
    import segyio

    dt = gathers[0].dt
    interval = max(1, int(dt * 1e6 * (1 + 1e-12)))
    first = sampled(gathers[0].traces, dt, interval * 1e-6)
    receivers, samples = first.shape
    if samples > MOST_SAMPLES or interval > MOST_SAMPLES:
        raise UsageError(
            f"SEG-Y holds at most {MOST_SAMPLES} samples of a trace, {MOST_SAMPLES} microseconds apart, got "
            f"{samples} of {interval}; leave output.segy out, or run for a shorter time."
        )
    spec = segyio.spec()
    spec.format, spec.sorting = 5, 0
    spec.samples = np.arange(samples) * interval / 1000
    spec.tracecount = receivers * len(gathers)
    with replacing(path) as partial, segyio.create(str(partial), spec) as file:
        file.bin.update({segyio.BinField.Interval: interval, segyio.BinField.Traces: receivers})
        for shot, gather in enumerate(gathers):
            for number, trace in enumerate(sampled(gather.traces, dt, interval * 1e-6)):
                place = shot * receivers + number
                file.header[place] = _header((shot, place, number), gather, samples, interval)
                file.trace[place] = trace.astype(np.float32)


def _header(numbers: tuple[int, int, int], gather: Gather, samples: int, interval: int) -> dict[int, int]:
    """numbers: of the shot, of the trace in the file, of the trace in its shot, from 0."""
    from segyio import TraceField as T

    def across(position: Array) -> tuple[int, int]:
        x, y = (position[0], position[1]) if len(position) == 3 else (position[0], 0.0)
        return round(float(x) * -CENTIMETRES), round(float(y) * -CENTIMETRES)

    shot, place, number = numbers
    source, receiver = gather.sources[0], gather.receivers[number]
    (sx, sy), (gx, gy), (mx, my) = across(source), across(receiver), across((source + receiver) / 2)
    return {
        T.TRACE_SEQUENCE_LINE: place + 1, T.TRACE_SEQUENCE_FILE: place + 1, T.FieldRecord: shot + 1,
        T.TraceNumber: number + 1, T.TraceIdentificationCode: 1,
        T.SourceX: sx, T.SourceY: sy, T.GroupX: gx, T.GroupY: gy, T.SourceGroupScalar: CENTIMETRES,
        T.CDP_X: mx, T.CDP_Y: my,
        T.ElevationScalar: CENTIMETRES, T.SourceDepth: round(float(source[-1]) * -CENTIMETRES),
        T.ReceiverGroupElevation: round(float(receiver[-1]) * CENTIMETRES),
        T.CoordinateUnits: 1, T.TRACE_SAMPLE_COUNT: samples, T.TRACE_SAMPLE_INTERVAL: interval,
        T.offset: round(float(np.linalg.norm(receiver - source))),
    }  # fmt: skip


def sampled(traces: Array, dt: float, interval: float) -> Array:
    """Traces resampled from dt to `interval`, seconds, by the windowed sinc that interpolates receivers."""
    count = int((traces.shape[1] - 1) * dt / interval * (1 + 1e-12)) + 1
    wide = np.pad(traces, ((0, 0), (16, 16)))
    found = np.empty((len(traces), count), traces.dtype)
    for k in range(count):
        at = place(16 + k * interval / dt)
        first = at.node - BEHIND
        found[:, k] = wide[:, first : first + len(at.weights)] @ np.array(at.weights)
    return found

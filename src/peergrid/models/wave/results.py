"""A model of waves as built, and its results: the gather as HDF5, SEG-Y and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.io.atomic import replacing
from peergrid.io.hdf5 import creating
from peergrid.models.model import Outcome
from peergrid.models.wave.model import WaveModel
from peergrid.models.wave.points import BEHIND, place
from peergrid.models.wave.shot import Gather, Shot
from peergrid.stencil import Problem
from peergrid.version import VERSION

MOST_SAMPLES = 32767  # of a trace in SEG-Y
CENTIMETRES = -100  # the scalar of SEG-Y's coordinates


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
    def spacing(self) -> tuple[float, ...]:
        return self.model.spacings

    @property
    def units(self) -> dict[str, float]:
        return dict.fromkeys(self.model.waves, 1.0)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        silent = () if len(self.model.places) else ("The model has no receivers: nothing is recorded.",)
        return (*self.shot.warnings, *silent)

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        gather = self.shot.gather(outcome.traces)
        written = [folder / "gather.h5"]
        with creating(written[0]) as new:
            _write_gather(new.hdf5, gather, self, outcome)
        if self.model.output.segy and len(gather.traces):
            written.append(folder / "gather.segy")
            write_segy(written[-1], gather)
        if self.model.output.picture and len(gather.traces):
            from peergrid.models.wave.picture import picture_gather  # takes matplotlib along

            written.append(folder / "gather.png")
            picture_gather(written[-1], gather, self.model.title)
        return tuple(written)


def _write_gather(file: h5py.File, gather: Gather, built: BuiltWaves, outcome: Outcome) -> None:
    file.attrs["title"] = built.model.title
    file.attrs["kind"] = built.model.model.kind
    file.attrs["peergrid"] = VERSION
    file.attrs["dt"] = built.dt
    for name, value in outcome.about.items():
        file.attrs[name] = value
    file["traces"] = gather.traces
    file["receivers"], file["sources"] = gather.receivers, gather.sources
    for name, values in outcome.fields:
        if name in built.units:
            file[f"fields/{name}"] = built.shot.medium_part(values)


def write_segy(path: Path, gather: Gather) -> None:
    """A gather as SEG-Y: 4-byte IEEE floats, positions in centimetres, sampled at the whole microseconds below dt."""
    import segyio

    interval = max(1, int(gather.dt * 1e6 * (1 + 1e-12)))
    traces = sampled(gather.traces, gather.dt, interval * 1e-6)
    if traces.shape[1] > MOST_SAMPLES or interval > MOST_SAMPLES:
        raise UsageError(
            f"SEG-Y holds at most {MOST_SAMPLES} samples of a trace, {MOST_SAMPLES} microseconds apart, got "
            f"{traces.shape[1]} of {interval}; leave output.segy out, or run for a shorter time."
        )
    spec = segyio.spec()
    spec.format, spec.sorting = 5, 0
    spec.samples = np.arange(traces.shape[1]) * interval / 1000
    spec.tracecount = len(traces)
    with replacing(path) as partial, segyio.create(str(partial), spec) as file:
        file.bin.update({segyio.BinField.Interval: interval, segyio.BinField.Traces: len(traces)})
        for number, (trace, position) in enumerate(zip(traces, gather.receivers, strict=True)):
            file.header[number] = _header(number, position, gather.sources[0], traces.shape[1], interval)
            file.trace[number] = trace.astype(np.float32)


def _header(number: int, receiver: Array, source: Array, samples: int, interval: int) -> dict[int, int]:
    from segyio import TraceField as T

    def across(position: Array) -> tuple[int, int]:
        x, y = (position[0], position[1]) if len(position) == 3 else (position[0], 0.0)
        return round(float(x) * -CENTIMETRES), round(float(y) * -CENTIMETRES)

    (sx, sy), (gx, gy) = across(source), across(receiver)
    return {
        T.TRACE_SEQUENCE_LINE: number + 1, T.TRACE_SEQUENCE_FILE: number + 1, T.FieldRecord: 1,
        T.TraceNumber: number + 1, T.TraceIdentificationCode: 1,
        T.SourceX: sx, T.SourceY: sy, T.GroupX: gx, T.GroupY: gy, T.SourceGroupScalar: CENTIMETRES,
        T.ElevationScalar: CENTIMETRES, T.SourceDepth: round(float(source[-1]) * -CENTIMETRES),
        T.ReceiverGroupElevation: round(float(receiver[-1]) * CENTIMETRES),
        T.CoordinateUnits: 1, T.TRACE_SAMPLE_COUNT: samples, T.TRACE_SAMPLE_INTERVAL: interval,
        T.offset: round(float(np.linalg.norm(receiver - source))),
    }  # fmt: skip


def sampled(traces: Array, dt: float, interval: float) -> Array:
    """Traces at times `interval` apart in place of dt, seconds, by the sinc that receivers have between nodes."""
    count = int((traces.shape[1] - 1) * dt / interval * (1 + 1e-12)) + 1
    wide = np.pad(traces, ((0, 0), (16, 16)))
    found = np.empty((len(traces), count), traces.dtype)
    for k in range(count):
        at = place(16 + k * interval / dt)
        first = at.node - BEHIND
        found[:, k] = wide[:, first : first + len(at.weights)] @ np.array(at.weights)
    return found

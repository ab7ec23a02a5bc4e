"""Gathers as SEG-Y, the format of seismic records, and what it cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.grid import Array
from peergrid.models.wave.points import BEHIND, place
from peergrid.models.wave.shot import Gather
from peergrid.version import VERSION

MOST = 32767  # samples of a trace, and microseconds between two
PARTS = (10_000, 1_000, 100)  # of a metre, in one of which a file has positions: those with the most that fit
LARGEST = 2**31 - 1  # of a coordinate
FARTHEST = LARGEST / PARTS[-1]  # metres


def check_segy(steps: int, dt: float, extent: Sequence[float]) -> None:
    """Raise UsageError for gathers that SEG-Y does not hold; extent: of the medium along each axis, metres."""
    interval, instead = interval_of(dt), "leave output.segy out: gather.h5, in HDF5, has the same traces."
    if not 1 <= interval <= MOST:
        raise UsageError(
            f"output.segy needs a time step from 1e-6 to {MOST * 1e-6:g} s, as it counts whole microseconds, got "
            f"{dt:.3g} s; {instead}"
        )
    if samples_of(steps, dt) > MOST:
        raise UsageError(
            f"output.segy needs at most {MOST} samples of a trace, got {samples_of(steps, dt)}; run for a shorter "
            f"time, or {instead}"
        )
    if max(extent) > FARTHEST:
        raise UsageError(
            f"output.segy needs a medium of at most {FARTHEST / 1e3:.0f} km along each axis, as it holds positions to "
            f"a centimetre, got {max(extent) / 1e3:.6g} km; {instead}"
        )


def interval_of(dt: float) -> int:
    """The whole microseconds between two samples in a file."""
    return int(dt * 1e6 * (1 + 1e-12))


def samples_of(steps: int, dt: float) -> int:
    """The samples of a trace in a file."""
    return _count(steps, dt, interval_of(dt) * 1e-6)


def parts_of(extent: Sequence[float]) -> int:
    """The parts of a metre in which a file has positions in a medium; extent: along each axis, metres."""
    return next((parts for parts in PARTS if max(extent) * parts <= LARGEST), PARTS[-1])


def write_segy(path: Path, gathers: Sequence[Gather], extent: Sequence[float]) -> None:
    """Gathers as SEG-Y, one shot after another: 4-byte IEEE floats, positions in tenths of a millimetre or, if they are
    too large, in milli- or centimetres, sampled at the whole microseconds below dt.

    extent: of the medium along each axis, metres.
    """
    import segyio

    dt, parts = gathers[0].dt, parts_of(extent)
    interval = interval_of(dt)
    samples, receivers = samples_of(gathers[0].traces.shape[1], dt), len(gathers[0].traces)
    spec = segyio.spec()
    spec.format, spec.sorting = 5, 0
    spec.samples = np.arange(samples) * interval / 1000
    spec.tracecount = receivers * len(gathers)
    with replacing(path) as partial, segyio.create(str(partial), spec) as file:
        file.text[0] = _textual_header(len(gathers), receivers, interval, parts)
        file.bin.update(_binary_header(interval, receivers))
        for shot, gather in enumerate(gathers):
            for number, trace in enumerate(sampled(gather.traces, dt, interval * 1e-6)):
                place = shot * receivers + number
                file.header[place] = _header((shot, place, number), gather, samples, interval, parts)
                file.trace[place] = trace.astype(np.float32)


def _textual_header(shots: int, receivers: int, interval: int, parts: int) -> str:
    """In place of segyio's, which has the date and a polarity of reflections: equal runs have equal bytes."""
    from segyio.tools import create_text_header

    return str(
        create_text_header(
            {
                1: f"PRESSURE OF SEISMIC WAVES, PEERGRID {VERSION.upper()}",
                2: f"SHOTS {shots}, RECEIVERS OF EACH {receivers}: FIELD RECORD AND TRACE NUMBER",
                3: f"X AND Y IN 1/{parts} M; DEPTHS AS DEPTH OF SOURCE AND ELEVATION OF GROUP",
                4: f"SAMPLES EVERY {interval} MICROSECONDS, THE FIRST AT TIME 0 OF THE SOURCES",
                39: "SEG Y REV1",
                40: "END TEXTUAL HEADER",
            }
        )
    )


def _binary_header(interval: int, receivers: int) -> dict[int, int]:
    """That of revision 1, the first with IEEE floats: metres, all traces of one length, none of them auxiliary."""
    from segyio import BinField as B

    return {
        B.Interval: interval, B.Traces: receivers, B.AuxTraces: 0, B.MeasurementSystem: 1, B.SEGYRevision: 1,
        B.SEGYRevisionMinor: 0, B.TraceFlag: 1,
    }  # fmt: skip


def _header(numbers: tuple[int, int, int], gather: Gather, samples: int, interval: int, parts: int) -> dict[int, int]:
    """numbers: of the shot, of the trace in the file, of the trace in its shot, from 0; parts: of a metre."""
    from segyio import TraceField as T

    def across(position: Array) -> tuple[int, int]:
        x, y = (position[0], position[1]) if len(position) == 3 else (position[0], 0.0)
        return round(float(x) * parts), round(float(y) * parts)

    shot, place, number = numbers
    source, receiver = gather.sources[0], gather.receivers[number]
    (sx, sy), (gx, gy), (mx, my) = across(source), across(receiver), across((source + receiver) / 2)
    return {
        T.TRACE_SEQUENCE_LINE: place + 1, T.TRACE_SEQUENCE_FILE: place + 1, T.FieldRecord: shot + 1,
        T.TraceNumber: number + 1, T.EnergySourcePoint: shot + 1, T.TraceIdentificationCode: 1,
        T.SourceX: sx, T.SourceY: sy, T.GroupX: gx, T.GroupY: gy, T.SourceGroupScalar: -parts,
        T.CDP_X: mx, T.CDP_Y: my,
        T.ElevationScalar: -parts, T.SourceDepth: round(float(source[-1]) * parts),
        T.ReceiverGroupElevation: round(float(receiver[-1]) * -parts),
        T.CoordinateUnits: 1, T.TRACE_SAMPLE_COUNT: samples, T.TRACE_SAMPLE_INTERVAL: interval,
        T.offset: round(float(np.linalg.norm(receiver - source))),
    }  # fmt: skip


def sampled(traces: Array, dt: float, interval: float) -> Array:
    """Traces resampled from dt to `interval`, seconds, by the windowed sinc that interpolates receivers."""
    count = _count(traces.shape[1], dt, interval)
    ahead = np.pad(traces, ((0, 0), (0, 16)), mode="reflect", reflect_type="odd")  # a wave goes on after the end
    wide = np.pad(ahead, ((0, 0), (16, 0)))
    found = np.empty((len(traces), count), traces.dtype)
    for k in range(count):
        at = place(16 + k * interval / dt)
        first = at.node - BEHIND
        found[:, k] = wide[:, first : first + len(at.weights)] @ np.array(at.weights)
    return found


def _count(steps: int, dt: float, interval: float) -> int:
    return int((steps - 1) * dt / interval * (1 + 1e-12)) + 1

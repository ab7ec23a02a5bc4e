"""Results in one HDF5 file in the layout of gprMax, so that its tools read them: `/rxs/rx1/Ez`, `/srcs`, `/tls`,
`/frills`.

Sample k of E is at time k dt, of H and of currents half a step earlier; sample 0 is what a run starts from. All values
are in SI units. Beyond that layout there are the final fields (`/fields`) and far fields (`/far_fields/far1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from peergrid.grid import Array, Index
from peergrid.io.dimensions import add_axes, add_times, attach
from peergrid.io.hdf5 import creating
from peergrid.models.fdtd3d.build import BuiltDomain, FeedRecorder, LineRecorder, Recorder
from peergrid.models.fdtd3d.domain import ElectricDipole, MagneticDipole, Source, VoltageSource
from peergrid.models.fdtd3d.far_field import Surface
from peergrid.models.fdtd3d.line import incident
from peergrid.models.positions import write_positions
from peergrid.models.survey import Trace
from peergrid.models.waveforms import Doubles
from peergrid.version import VERSION

KINDS = {ElectricDipole: "HertzianDipole", MagneticDipole: "MagneticDipole", VoltageSource: "VoltageSource"}
FAR = {"Etheta": "V s", "Ephi": "V s", "directivity": "1", "power": "J/Hz"}
"""The results of a field far away, and their units."""
_FAR = "far_fields/far{}"
UNITS = {"E": "V/m", "H": "A/m", "I": "A"}
"""Of a receiver's outputs, by their first letter."""
HEARD = 0.01  # of the strongest: frequencies at which a line's reflection is worked out


def write_results(
    path: Path,
    built: BuiltDomain,
    traces: Mapping[str, Array],
    fields: Iterable[tuple[str, Array]] = (),
    about: Mapping[str, str | int | float] | None = None,
) -> None:
    """Write traces, sources, lines and final fields.

    traces: by the problem's names of receivers, one value per step, as stored by the run; fields: names and final
    values, one after another; about: further attributes of the file. Raises UsageError where the file cannot be
    written; it appears under its name only when complete.
    """
    about = about or {}
    made = len(next(iter(traces.values()))) if traces else int(about.get("steps", built.steps))
    with creating(path) as new:
        file = new.hdf5
        _describe(file, built, made + 1, about)
        _write_sources(file, built)
        for number, line in enumerate(built.lines, start=1):
            _write_line(file.create_group(f"tls/tl{number}"), built, line, traces)
        for number, feed in enumerate(built.feeds, start=1):
            _write_feed(file.create_group(f"frills/frill{number}"), built, feed, traces[feed.voltage][:, np.newaxis])
        for number, recorder in enumerate(built.recorders, start=1):
            _write_receiver(file.create_group(f"rxs/rx{number}"), built, recorder, traces)
        group, sums = file.create_group("fields"), dict[str, Array]()
        needed = {name for surface in built.far_fields for name in surface.fields}
        for name, values in fields:
            if name in needed:
                sums[name] = values
            if name in built.units:
                group[name] = values * values.dtype.type(built.units[name])
                attach(group[name], built.axes, built.unit_names[name])
        for number, surface in enumerate(built.far_fields, start=1):
            if sums.keys() >= set(surface.fields):
                group = _directions(file, number, surface)
                for output, values in pattern(surface, sums).items():
                    group[output] = values
                    group[output].attrs["units"] = FAR[output]


def write_survey(path: Path, built: BuiltDomain, traces: Sequence[Trace], about: Mapping[str, str | int]) -> None:
    """The traces of a survey side by side, shape (samples, traces) for each receiver and output.

    built: the first trace's, whose positions `/srcs` and `/rxs` have; those of each trace are in `/survey/sources` and
    `/survey/receivers`, shapes (traces, sources, 3) and (traces, receivers, 3). Raises as
    `write_results`.
    """
    units = {one.name: built.units.get(one.field, 1.0) for one in built.problem.receivers}
    rows = [_row(recorder, list(units)) for recorder in built.recorders]
    with creating(path) as new:
        file = new.hdf5
        _describe(file, built, built.steps + 1, about)
        write_positions(file, traces, built.domain.spacing, rows)
        _write_sources(file, built)
        for number, recorder in enumerate(built.recorders, start=1):
            group = file.create_group(f"rxs/rx{number}")
            _name_receiver(group, built, recorder)
            for output in recorder.outputs:
                made = group.create_dataset(output, (built.steps + 1, len(traces)), built.domain.dtype)
                _describe_record(made, built, output)
        for number, line in enumerate(built.lines, start=1):
            group = file.create_group(f"tls/tl{number}")
            _describe_line(group, built, line, built.steps + 1)
            for output in ("Vtotal", "Itotal"):
                group.create_dataset(output, (built.steps + 1, len(traces)), built.domain.dtype)
        for number, feed in enumerate(built.feeds, start=1):
            row = [one.name for one in built.problem.receivers].index(feed.voltage)
            voltages = np.stack([one.values[row] for one in traces], axis=1)
            _write_feed(file.create_group(f"frills/frill{number}"), built, feed, voltages)
        for column, one in enumerate(traces):
            found = {name: values / unit for (name, unit), values in zip(units.items(), one.values, strict=True)}
            for number, line in enumerate(built.lines, start=1):
                for output, name in (("Vtotal", line.voltage), ("Itotal", line.current)):
                    file[f"tls/tl{number}/{output}"][:, column] = samples(built, ((1.0, name),), found)
            for number, recorder in enumerate(built.recorders, start=1):
                for output, parts in recorder.outputs.items():
                    file[f"rxs/rx{number}/{output}"][:, column] = samples(built, parts, found)
            for number, surface in enumerate(built.far_fields, start=1):
                group = file[_FAR.format(number)] if column else _directions(file, number, surface)
                for output, unit in FAR.items():
                    values = one.findings[f"{surface.name}.{output}"]
                    if not column:
                        group.create_dataset(output, (len(traces), *values.shape), values.dtype).attrs["units"] = unit
                    group[output][column] = values
            new.check()
        for number in range(1, len(built.lines) + 1):
            _write_reflection(file[f"tls/tl{number}"], built)


def _row(recorder: Recorder, names: Sequence[str]) -> int | None:
    """The place among the problem's receivers of one that belongs to a recorder; None if all its outputs stay zero."""
    return next((names.index(parts[0][1]) for parts in recorder.outputs.values() if parts), None)


def samples(built: BuiltDomain, parts: tuple[tuple[float, str], ...], traces: Mapping[str, Array]) -> Array:
    """The record of a receiver from sample 0 on, in the precision of the run."""
    dtype = np.dtype(built.domain.dtype)
    length = max((len(trace) for trace in traces.values()), default=0)
    total = np.zeros(length + 1)
    for factor, name in parts:
        total[1:] += factor * traces[name].astype(np.float64)
    return total.astype(dtype)


def _describe(file: h5py.File, built: BuiltDomain, count: int, about: Mapping[str, str | int | float]) -> None:
    """Write attributes and dimension scales; count: samples of records, fewer than asked for if a run was ended."""
    domain = built.domain
    attributes = {
        "Title": built.model.title, "peergrid": VERSION, "Iterations": count, "nx_ny_nz": domain.shape,
        "dx_dy_dz": domain.spacing, "dt": domain.dt, "nsrc": len(built.sources), "nrx": len(built.recorders),
        "srcsteps": (0, 0, 0), "rxsteps": (0, 0, 0),
    }  # fmt: skip
    for name, value in (attributes | dict(about)).items():
        file.attrs[name] = value
    add_times(file, count, domain.dt)
    add_axes(file, built.axes, built.spacing, [domain.nodes[axis] for axis in built.lattice.axes])


def _place(group: h5py.Group, built: BuiltDomain, node: Index) -> None:
    group.attrs["Position"] = built.place(node)
    group.attrs["GridPosition"] = node


def _name(given: str, kind: str, node: Index) -> str:
    """The name of a source or receiver: as given, or as gprMax calls it, by its kind and node."""
    return given or f"{kind}({','.join(map(str, node))})"


def _name_receiver(group: h5py.Group, built: BuiltDomain, recorder: Recorder) -> None:
    group.attrs["Name"] = _name(recorder.given, "Rx", recorder.node)
    _place(group, built, recorder.node)


def _write_receiver(group: h5py.Group, built: BuiltDomain, recorder: Recorder, traces: Mapping[str, Array]) -> None:
    _name_receiver(group, built, recorder)
    for output, parts in recorder.outputs.items():
        group[output] = samples(built, parts, traces)
        _describe_record(group[output], built, output)


def _describe_record(record: h5py.Dataset, built: BuiltDomain, output: str) -> None:
    """Say what a record is, in which unit and when; of a survey it has a second dimension, of traces."""
    attach(record, ["time", "trace"][: record.ndim], UNITS[output[0]])
    record.attrs["Quantity"] = output
    record.attrs["SampleInterval"] = built.dt
    record.attrs["TimeSampleOffset"] = 0.0 if output[0] == "E" else -0.5 * built.dt


def _write_sources(file: h5py.File, built: BuiltDomain) -> None:
    plain = [source for source in built.domain.sources if type(source) in KINDS]
    for number, source in enumerate(plain, start=1):
        _write_source(file.create_group(f"srcs/src{number}"), built, source)


def _write_source(group: h5py.Group, built: BuiltDomain, source: Source) -> None:
    assert isinstance(source, ElectricDipole | MagneticDipole | VoltageSource)
    group.attrs["Type"] = KINDS[type(source)]
    group.attrs["ID"] = _name(source.name, KINDS[type(source)], source.node)
    group.attrs["Polarisation"] = source.axis
    _place(group, built, source.node)
    whole = isinstance(source, MagneticDipole) or (isinstance(source, VoltageSource) and source.resistance == 0)
    unit = {ElectricDipole: "A", MagneticDipole: "V", VoltageSource: "V"}[type(source)]
    excitation = _excitation(group, built, source, unit)
    excitation["samples"] = source.drive.samples(built.steps + 1, built.dt, half=not whole)
    excitation.attrs["TimeSampleOffset"] = 0.0 if whole else 0.5 * built.dt
    if isinstance(source, VoltageSource):
        excitation.attrs["Resistance"] = source.resistance


def _excitation(group: h5py.Group, built: BuiltDomain, source: Source, unit: str) -> h5py.Group:
    excitation = group.create_group("excitation")
    stop = min(source.drive.stop, built.steps * built.dt)
    attributes = {
        "SampleInterval": built.dt,
        "SourceStartTime": source.drive.start,
        "SourceStopTime": stop,
        "Units": unit,
    }
    for name, value in attributes.items():
        excitation.attrs[name] = value
    return excitation


def _write_line(group: h5py.Group, built: BuiltDomain, line: LineRecorder, traces: Mapping[str, Array]) -> None:
    voltage, current = (samples(built, ((1.0, name),), traces) for name in (line.voltage, line.current))
    _describe_line(group, built, line, len(voltage))
    group["Vtotal"], group["Itotal"] = voltage, current
    _write_reflection(group, built)


def _write_reflection(group: h5py.Group, built: BuiltDomain) -> None:
    """The S11 of a line with its voltages, of a survey for each trace."""
    sent, total = group["Vinc"][:], group["Vtotal"][:]
    group["frequency"], group["S11"] = reflection(sent, (total.T - sent).T, built.dt, len(sent))


def _describe_line(group: h5py.Group, built: BuiltDomain, line: LineRecorder, count: int) -> None:
    """The attributes of a line, its excitation, and the first `count` samples of the wave sent along it."""
    source = line.source
    excitation = _excitation(group, built, source, "V")
    for name, half in (("samples_whole", False), ("samples_half", True)):
        excitation[name] = source.drive.samples(built.steps + 1, built.dt, half=half)
        excitation[name].attrs["TimeSampleOffset"] = 0.5 * built.dt if half else 0.0
    excitation["samples"] = excitation["samples_whole"]
    sent, current = incident(source, built.steps + 1, built.dt)
    group["Vinc"], group["Iinc"] = sent[:count], current[:count]
    group.attrs["ID"] = _name(source.name, "TransmissionLine", source.node)
    group.attrs["Polarisation"] = source.axis
    group.attrs["Resistance"] = source.resistance
    group.attrs["dl"] = line.cell_length(built.dt)
    group.attrs["TimeVoltageOffset"], group.attrs["TimeCurrentOffset"] = 0.0, -0.5 * built.dt
    _place(group, built, source.node)


def _write_feed(group: h5py.Group, built: BuiltDomain, feed: FeedRecorder, voltages: Array) -> None:
    """The voltages and currents of a feed, samples at k dt; voltages: shape (steps, traces).

    The last would follow from the magnetic field half a step after the run, so that there is one sample less than of
    others.
    """
    source = feed.source
    group.attrs["ID"] = _name(source.name, "MagneticFrillSource", source.node)
    group.attrs["Polarisation"], group.attrs["Z0"] = source.axis, source.resistance
    _place(group, built, source.node)
    samples = source.drive.samples(built.steps + 1, built.dt, half=False)
    excitation = _excitation(group, built, source, "V")
    excitation["samples"], excitation.attrs["TimeSampleOffset"] = samples, 0.0
    group["time"], samples = built.dt * np.arange(len(voltages)), samples[: len(voltages)]
    group["time"].attrs["units"] = "s"
    total = voltages.astype(np.float64)
    current = (samples[:, np.newaxis] - total) / source.resistance
    group["Vinc"] = 0.5 * samples
    if total.shape[1] == 1:
        total, current = total[:, 0], current[:, 0]
    group["Vtotal"], group["Itot"] = (values.astype(built.domain.dtype) for values in (total, current))
    back = (total.T - 0.5 * samples).T
    group["frequency"], group["S11"] = reflection(0.5 * samples, back, built.dt, built.steps + 1)


def pattern(surface: Surface, fields: Mapping[str, Array]) -> Mapping[str, Array]:
    """The field far away from the final fields of a box, r E in every pair of directions, by the names of `FAR`.

    Shapes are (frequencies, theta, phi), of the power (frequencies).
    """
    wished, found = surface.wished, surface.radiation(fields)
    theta, phi = np.meshgrid(wished.theta, wished.phi, indexing="ij")
    along_theta, along_phi = found.far(theta, phi)
    values: tuple[Any, ...] = along_theta, along_phi, found.directivity(theta, phi), found.power
    return dict(zip(FAR, values, strict=True))


def _directions(file: h5py.File, number: int, surface: Surface) -> h5py.Group:
    """The group of a field far away, with its frequencies and directions."""
    group, wished = file.create_group(_FAR.format(number)), surface.wished
    group.attrs["Name"] = wished.name or surface.name
    for name, values, unit in (
        ("frequency", wished.frequencies, "Hz"), ("theta", wished.theta, "degrees"), ("phi", wished.phi, "degrees"),
    ):  # fmt: skip
        group[name] = np.array(values)
        group[name].attrs["units"] = unit
    return group


def reflection(sent: Doubles, back: Doubles, dt: float, count: int) -> tuple[Doubles, np.ndarray]:
    """Frequencies (Hz), multiples of 1 / (count dt), at which a line is fed with a hundredth of the strongest at least,
    and S11 there; back: of a survey with a second dimension, of traces.
    """
    forward, backward = np.fft.rfft(sent, count), np.fft.rfft(back, count, axis=0)
    heard = np.abs(forward) > HEARD * np.abs(forward).max(initial=0.0)
    frequency = np.fft.rfftfreq(count, dt)
    return frequency[heard], (backward[heard].T / forward[heard]).T

"""A model of waves as built, and its results: the gather as HDF5, SEG-Y and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import overload

import h5py
import numpy as np

from peergrid.io.dimensions import add_axes, add_numbers, add_times, attach
from peergrid.io.hdf5 import creating
from peergrid.models.model import Outcome
from peergrid.models.silence import rare
from peergrid.models.survey import Trace, Vector, Wanted
from peergrid.models.wave.model import WaveModel
from peergrid.models.wave.segy import write_segy
from peergrid.models.wave.shot import Gather, Shot
from peergrid.stencil import Problem
from peergrid.version import VERSION

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
        return self.model.axes

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
        return (*self.shot.warnings, *silent, *rare(self.model.output.snapshots, self.steps))

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

    def write_survey(self, folder: Path, traces: Sequence[Trace], about: Mapping[str, str | int]) -> Path:
        """Write all shots to `gathers.h5`."""
        merged = folder / "gathers.h5"
        with creating(merged) as new:
            _write_gathers(new.hdf5, traces, self, about)
        return merged

    def write_others(self, merged: Path, wanted: Wanted) -> tuple[Path, ...]:
        """Write SEG-Y if requested, and a section of the first receiver's traces."""
        made: list[Path] = []
        with h5py.File(merged, "r") as file:
            gathers = Gathers(file)
            if self.model.output.segy:
                made.append(merged.with_suffix(".segy"))
                if wanted(made[-1]):
                    write_segy(made[-1], gathers, self.model.grid.size)
            if self.model.output.picture and len(gathers) > 1:
                made.append(merged.with_name("section.png"))
                if wanted(made[-1]):
                    from peergrid.models.wave.picture import picture_survey  # imports matplotlib

                    picture_survey(made[-1], file, self.model.title, self.model.output.gain)
        return tuple(made)

    def write(self, folder: Path, outcome: Outcome) -> tuple[Path, ...]:
        gather = self.shot.gather(outcome.traces)
        written = [folder / "gather.h5"]
        outcome.write_fields(lambda fields: _write_gather(written[0], gather, self, replace(outcome, fields=fields)))
        if self.model.output.segy and len(gather.traces):
            written.append(folder / "gather.segy")
            write_segy(written[-1], [gather], self.model.grid.size)
        if outcome.pictures and self.model.output.picture and len(gather.traces):
            from peergrid.models.wave.picture import picture_gather  # imports matplotlib

            written.append(folder / "gather.png")
            picture_gather(written[-1], gather, self.model.title)
        return tuple(written)


@dataclass(frozen=True)
class Gathers(Sequence[Gather]):
    """The gathers of a survey's shots, read from its merged file on access."""

    file: h5py.File

    def __len__(self) -> int:
        return len(self.file["traces"])

    @overload
    def __getitem__(self, number: int) -> Gather: ...

    @overload
    def __getitem__(self, number: slice) -> list[Gather]: ...

    def __getitem__(self, number: int | slice) -> Gather | list[Gather]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        traces, sources, receivers = (self.file[name][number] for name in ("traces", "sources", "receivers"))
        return Gather(traces, float(self.file.attrs["dt"]), sources, receivers)


def _gather(trace: Trace, dt: float) -> Gather:
    return Gather(trace.values, dt, np.array(trace.sources), np.array(trace.receivers))


def _write_gathers(file: h5py.File, traces: Sequence[Trace], built: BuiltWaves, about: Mapping[str, str | int]) -> None:
    """Arrays of `_write_gather` with a first axis of shots."""
    file.attrs["title"], file.attrs["kind"] = built.model.title, built.model.model.kind
    file.attrs["peergrid"], file.attrs["dt"] = VERSION, built.dt
    for name, value in about.items():
        file.attrs[name] = value
    _add_scales(file, _gather(traces[0], built.dt), built)
    add_numbers(file, {"shot": len(traces)})
    for number, trace in enumerate(traces):
        gather = _gather(trace, built.dt)
        for name, dimensions, unit in ARRAYS:
            values = getattr(gather, name)
            if not number:
                file.create_dataset(name, (len(traces), *values.shape), values.dtype)
                attach(file[name], ["shot", *dimensions], unit)
            file[name][number] = values


def _write_gather(path: Path, gather: Gather, built: BuiltWaves, outcome: Outcome) -> None:
    with creating(path) as new:
        _add_gather(new.hdf5, gather, built, outcome)


def _add_gather(file: h5py.File, gather: Gather, built: BuiltWaves, outcome: Outcome) -> None:
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

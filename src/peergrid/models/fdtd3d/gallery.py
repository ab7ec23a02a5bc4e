"""All the pictures that a run of a domain is to have, in one folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np

from peergrid.grid import Array
from peergrid.io.animation import Map, animate
from peergrid.io.colours import CONDUCTOR_TINT, Rgb, shades
from peergrid.io.pictures import curves, file_part, robust_limit, section, titled, unused
from peergrid.io.snapshots import SnapshotReader, read_snapshots
from peergrid.models.fdtd3d.build import BuiltDomain
from peergrid.models.fdtd3d.domain import AXES, PlaneWave
from peergrid.models.fdtd3d.picture import (
    CLASSES,
    media_classes,
    normals,
    picture_field,
    picture_model,
    section_ids,
    through,
)
from peergrid.models.fdtd3d.results import UNITS, samples
from peergrid.models.positions import read_section
from peergrid.models.survey import Wanted

MOST_SECTIONS = 12
FALL = 0.6  # of the range of colours, from frame to frame
SHOWN = 97.0  # per cent of the values below the amplitude that colours reach to: dipoles have strong fields beside them
PICTURED = re.compile(r"(snapshot|surfaces)-[EH][xyz]-\d{6,}\.(png|pdf|svg)")


def draw_all(folder: Path, built: BuiltDomain, traces: Mapping[str, Array], snapshots: Path | None) -> tuple[Path, ...]:
    """Draw the media, the receivers, a snapshot of each quarter of the run, and the animation; the files written.

    traces: as for `write_results`; snapshots: the file of a finished `SnapshotWriter`, or None.
    """
    made: list[Path] = []
    wished = built.pictures
    if wished.format is not None:
        made.append(folder / f"model.{wished.format}")
        picture_model(made[-1], built)
        if any(len(trace) for trace in traces.values()):
            made += _draw_receivers(folder, built, traces)
    if snapshots is None or (wished.format is None and wished.animation == "none"):
        return tuple(made)
    with read_snapshots(snapshots) as reader:
        if reader.steps and wished.format is not None:
            made += _draw_snapshots(folder, built, reader)
        if reader.steps and wished.animation != "none":
            made.append(folder / f"animation.{wished.animation}")
            _animate(made[-1], built, reader)
    return tuple(made)


def draw_sections(merged: Path, built: BuiltDomain, wanted: Wanted) -> tuple[Path, ...]:
    """The section of a survey for each receiver, of its first output, beside its merged results; of many receivers the
    first ones alone. Only the wanted ones are drawn.
    """
    made: list[Path] = []
    with h5py.File(merged, "r") as file:
        for number, recorder in enumerate(built.recorders[:MOST_SECTIONS], start=1):
            output, parts = next(((o, p) for o, p in recorder.outputs.items() if p), ("", ()))
            if not parts:
                continue
            name = f"section-{file_part(recorder.name)}.{built.pictures.format}"
            made.append(unused(merged.with_name(name), made))
            if wanted(made[-1]):
                values, across = read_section(file, f"rxs/rx{number}/{output}", number - 1)
                section(
                    made[-1], values, across, (built.dt * 1e9, "ns"), gain=built.pictures.gain,
                    title=titled(built.model.title, f"{output} at '{recorder.name}'"),
                    quantity=(output, UNITS[output[0]]),
                )  # fmt: skip
    return tuple(made)


def _draw_receivers(folder: Path, built: BuiltDomain, traces: Mapping[str, Array]) -> list[Path]:
    made: list[Path] = []
    for recorder in built.recorders[:MOST_SECTIONS]:
        made.append(unused(folder / f"receiver-{file_part(recorder.name)}.{built.pictures.format}", made))
        values = {
            f"{output} ({_unit(output)})": samples(built, parts, traces) for output, parts in recorder.outputs.items()
        }
        place = ", ".join(f"{x:g}" for x in built.place(recorder.node))
        curves(made[-1], values, built.dt * 1e9, "time (ns)", f"Receiver '{recorder.name}' at ({place}) m")
    return made


def _unit(output: str) -> str:
    return {"E": "V/m", "H": "A/m", "I": "A"}[output[0]]


def _draw_snapshots(folder: Path, built: BuiltDomain, reader: SnapshotReader) -> list[Path]:
    made: list[Path] = []
    last = len(reader.steps) - 1
    numbers = sorted({round(last * quarter / 4) for quarter in range(1, 5)})
    for earlier in folder.glob("s*-*-[0-9]*.*"):  # of another run into this folder
        if PICTURED.fullmatch(earlier.name):
            earlier.unlink()
    for field in built.model.snapshots.fields:
        slices = {number: {n: _slice(built, reader, field, number, n) for n in normals(built)} for number in numbers}
        limits = {n: max(robust_limit(values, SHOWN) for values in own.values()) for n, own in slices.items()}
        if built.pictures.colours == "common":
            limits = dict.fromkeys(limits, max(limits.values()))
        for number in numbers:
            made.append(folder / f"snapshot-{field}-{reader.steps[number]:06d}.{built.pictures.format}")
            picture_field(made[-1], built, field, slices[number], reader.times[number], limits[number])
            if built.pictures.surfaces and built.domain.invariant is None:
                from peergrid.models.fdtd3d.isosurface import picture_surfaces  # takes an extra along

                made.append(folder / f"surfaces-{field}-{reader.steps[number]:06d}.{built.pictures.format}")
                values, level = reader.frame(field, number), built.pictures.surfaces * limits[number]
                picture_surfaces(made[-1], built, field, values, reader.times[number], level)
    return made


def _slice(built: BuiltDomain, reader: SnapshotReader, field: str, number: int, normal: int) -> Array:
    """The values of a snapshot in the plane through the slices' node, normal to an axis, shape (across, up)."""
    if built.domain.invariant is not None:
        return reader.frame(field, number)
    kept = through(built)[normal] // built.model.snapshots.stride
    return reader.frame(field, number, tuple(kept if axis == normal else slice(None) for axis in range(3)))


def _animate(path: Path, built: BuiltDomain, reader: SnapshotReader) -> None:
    """All snapshots of the first field in one slice."""
    domain, field = built.domain, built.model.snapshots.fields[0]
    normal, across, up = built.pictures.animated(domain.invariant)
    middle = through(built)
    places = [(built.place(one.node), 1) for one in built.recorders]
    places += [(built.place(one.node), 3) for one in domain.sources if not isinstance(one, PlaneWave)]
    at = "" if domain.invariant is not None else f", {AXES[normal]} = {middle[normal] * domain.spacing[normal]:.4g} m"
    lengths = [n * d for n, d in zip(domain.shape, domain.spacing, strict=True)]
    shown = Map(
        titled(built.model.title, f"{field}{at}"), built.unit_names[field], (lengths[across], lengths[up]),
        (f"{AXES[across]} (m)", f"{AXES[up]} (m)"), media_classes(built)[section_ids(built, normal, middle)], _tints(),
        [((place[across], place[up]), radius) for place, radius in places], built.pictures.width, (SHOWN, FALL),
    )  # fmt: skip
    own = built.pictures.colours == "own"
    animate(path, shown, reader.times, lambda number: _slice(built, reader, field, number, normal), own)


def _tints() -> Rgb:
    """The colour of each class of media, the conductors' last."""
    return np.concatenate([shades(np.arange(CLASSES, dtype=np.float64)), np.array([CONDUCTOR_TINT], np.uint8)])

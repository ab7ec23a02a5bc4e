"""All pictures that the output section of a model requests, in one folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

import h5py

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.io.animation import Map, animate
from peergrid.io.pictures import file_part, robust_limit, titled, unused
from peergrid.io.snapshots import read_snapshots
from peergrid.models.fdtd.build import UNIT_NAMES, Built
from peergrid.models.fdtd.pictures import (
    picture_model,
    picture_receiver,
    picture_section,
    picture_snapshot,
    picture_survey,
)
from peergrid.models.fdtd.tints import material_tints
from peergrid.models.survey import Wanted

MOST_SECTIONS = 12
PICTURED = re.compile(r"snapshot-(Ez|Hx|Hy)-\d{6,}\.(png|pdf|svg)")


def draw_all(folder: Path, built: Built, traces: Mapping[str, Array], snapshots: Path | None) -> tuple[Path, ...]:
    """Draw the model, the receivers, a snapshot of each quarter of the run, and the animation; the files written.

    traces: as in `write_results`; snapshots: the file of a finished `SnapshotWriter`, or None.
    """
    made: list[Path] = []
    if built.model.output.pictures:
        made.append(folder / f"model.{built.model.output.format}")
        picture_model(made[-1], built)
        made += _draw_receivers(folder, built, traces) if _begun(traces) else []
        made += _draw_snapshots(folder, built, snapshots) if snapshots else []
    if snapshots and built.model.output.animation != "none" and _any(snapshots):
        made.append(folder / f"animation.{built.model.output.animation}")
        animation(made[-1], built, snapshots)
    return tuple(made)


def animation(path: Path, built: Built, snapshots: Path) -> None:
    """The animation of all snapshots of the first field, as .gif or .mp4.

    Raises UsageError if there are none, and for MP4 without imageio-ffmpeg.
    """
    field, output = built.model.output.fields[0], built.model.output
    marks = [(r.position, 1) for r in built.recorders] + [(e.position, 3) for e in built.emitters]
    shown = Map(
        titled(built.model.title, field), UNIT_NAMES[field], built.model.grid.size, ("x (m)", "y (m)"),
        built.geometry.cells, material_tints(built.geometry.materials), marks, output.width,
    )  # fmt: skip
    with read_snapshots(snapshots) as reader:
        if not reader.steps:
            raise UsageError(f"An animation is expected to have at least one snapshot, '{snapshots}' has none.")
        animate(path, shown, reader.times, lambda number: reader.frame(field, number), output.colours == "own")


def draw_sections(merged: Path, built: Built, wanted: Wanted) -> tuple[Path, ...]:
    """The section of a survey for each receiver, of its first field, beside its merged results; if there are many
    receivers, only of the first ones. Only the wanted ones are drawn.
    """
    made: list[Path] = []
    with h5py.File(merged, "r") as file:
        for number, recorder in enumerate(built.recorders[:MOST_SECTIONS]):
            name = f"section-{file_part(recorder.name)}.{built.model.output.format}"
            made.append(unused(merged.with_name(name), made))
            if wanted(made[-1]):
                picture_survey(made[-1], built, number, file)
    return tuple(made)


def _draw_receivers(folder: Path, built: Built, traces: Mapping[str, Array]) -> list[Path]:
    made: list[Path] = []
    for array, members in groupby(built.recorders, key=lambda recorder: recorder.array):
        if array:
            made.append(unused(folder / f"section-{file_part(array)}.{built.model.output.format}", made))
            picture_section(made[-1], built, tuple(members), traces)
            continue
        for recorder in members:
            made.append(unused(folder / f"receiver-{file_part(recorder.name)}.{built.model.output.format}", made))
            picture_receiver(made[-1], built, recorder, traces)
    return made


def _draw_snapshots(folder: Path, built: Built, snapshots: Path) -> list[Path]:
    made: list[Path] = []
    output = built.model.output
    with read_snapshots(snapshots) as reader:
        last = len(reader.steps) - 1
        numbers = sorted({round(last * quarter / 4) for quarter in range(1, 5)} if last >= 0 else ())
        for earlier in folder.glob("snapshot-*-[0-9]*.*"):  # of another run into this folder
            if PICTURED.fullmatch(earlier.name):
                earlier.unlink()
        for field in output.fields:
            common = output.colours == "common" and numbers
            limit = max(robust_limit(reader.frame(field, number)) for number in numbers) if common else None
            for number in numbers:
                made.append(folder / f"snapshot-{field}-{reader.steps[number]:06d}.{output.format}")
                picture_snapshot(made[-1], built, field, reader.frame(field, number), reader.times[number], limit)
    return made


def _begun(traces: Mapping[str, Array]) -> bool:
    return any(len(trace) for trace in traces.values())


def _any(snapshots: Path) -> bool:
    with read_snapshots(snapshots) as reader:
        return bool(reader.steps)

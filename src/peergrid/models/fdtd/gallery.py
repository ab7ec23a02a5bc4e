"""All the pictures that a model's output section asks for, in one folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, count, groupby
from pathlib import Path

from peergrid.grid import Array
from peergrid.io.pictures import robust_limit
from peergrid.io.snapshots import read_snapshots
from peergrid.models.fdtd.animation import animate
from peergrid.models.fdtd.build import Built
from peergrid.models.fdtd.pictures import (
    picture_model,
    picture_receiver,
    picture_section,
    picture_snapshot,
    picture_survey,
)
from peergrid.models.survey import Trace

MOST_SECTIONS = 12
PICTURED = re.compile(r"snapshot-(Ez|Hx|Hy)-\d{6,}\.(png|pdf|svg)")


def draw_all(folder: Path, built: Built, traces: Mapping[str, Array], snapshots: Path | None) -> tuple[Path, ...]:
    """Draw the model, the receivers, a snapshot of each quarter of the run, and the animation; the files written.

    traces: as for `write_results`; snapshots: the file of a finished `SnapshotWriter`, or None.
    """
    made: list[Path] = []
    if built.model.output.pictures:
        made.append(folder / f"model.{built.model.output.format}")
        picture_model(made[-1], built)
        made += _draw_receivers(folder, built, traces) if _begun(traces) else []
        made += _draw_snapshots(folder, built, snapshots) if snapshots else []
    if snapshots and built.model.output.animation != "none" and _any(snapshots):
        made.append(folder / f"animation.{built.model.output.animation}")
        animate(made[-1], built, snapshots, built.model.output.fields[0])
    return tuple(made)


def draw_sections(folder: Path, built: Built, traces: Sequence[Trace]) -> tuple[Path, ...]:
    """The section of a survey for each receiver, of its first field; of many receivers the first ones alone."""
    made: list[Path] = []
    row = 0
    for recorder in built.recorders[:MOST_SECTIONS]:
        made.append(_free(folder / f"section-{_safe(recorder.name)}.{built.model.output.format}", made))
        picture_survey(made[-1], built, recorder, row, traces)
        row += len(recorder.traces)
    return tuple(made)


def _draw_receivers(folder: Path, built: Built, traces: Mapping[str, Array]) -> list[Path]:
    made: list[Path] = []
    for array, members in groupby(built.recorders, key=lambda recorder: recorder.array):
        if array:
            made.append(_free(folder / f"section-{_safe(array)}.{built.model.output.format}", made))
            picture_section(made[-1], built, tuple(members), traces)
            continue
        for recorder in members:
            made.append(_free(folder / f"receiver-{_safe(recorder.name)}.{built.model.output.format}", made))
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


def _safe(name: str) -> str:
    """A name as part of a file name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def _free(path: Path, made: list[Path]) -> Path:
    """A path that none of those made has: two names may be the same as parts of file names."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(one for one in chain([path], numbered) if one not in made)

"""Warnings about runs that would show nothing: without sources, too short for the pulse, or without snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.models.fdtd.model import RadarModel
from peergrid.models.silence import rare, unsent


def silent(model: RadarModel, dt: float, steps: int) -> Iterator[str]:
    """Warnings about a run of `steps` steps of dt seconds that would show nothing."""
    if not model.sources:
        yield "The model has no source, so that every field stays zero; add a [[source]]."
    duration = steps * dt
    for number, source in enumerate(model.sources, start=1):
        yield from unsent(f"source[{number}]", source.waveform, duration, "grid.time_window (s) or the number of steps")
    yield from rare(model.output.snapshots, steps)

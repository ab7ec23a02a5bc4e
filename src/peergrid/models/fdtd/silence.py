"""Warnings about runs that would show nothing: without sources, too short for the pulse, or without snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.models.fdtd.model import RadarModel


def silent(model: RadarModel, dt: float, steps: int) -> Iterator[str]:
    """Warnings about a run of `steps` steps of dt seconds that would show nothing."""
    if not model.sources:
        yield "The model has no source, so that every field stays zero; add a [[source]]."
    duration = steps * dt
    for number, source in enumerate(model.sources, start=1):
        peak = source.waveform.peak()
        if peak > duration:
            yield (
                f"source[{number}] is at its strongest after {peak:.3g} s, but the run ends after {duration:.3g} s; "
                "look at its frequency (Hz) and delay (s), and at grid.time_window (s) or the number of steps."
            )
    if model.output.snapshots > steps:
        yield (
            f"output.snapshots asks for one every {model.output.snapshots} steps, but the run has {steps}; use a "
            "smaller number."
        )

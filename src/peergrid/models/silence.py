"""Warnings about runs that would show nothing: sources that are late, or begin too early, and rare snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.models.waveforms import Known, Samples


def unsent(source: str, waveform: Known, duration: float, length: str, start: float = 0.0) -> Iterator[str]:
    """Warnings about a source in a run of `duration` seconds; source: its name; length: what sets the duration; start:
    when its waveform begins, seconds.
    """
    peak = start + waveform.peak()
    if peak > duration:
        yield (
            f"{source} is at its strongest after {peak:.3g} s, but the run ends after {duration:.3g} s; look at its "
            f"frequency (Hz) and delay (s), and at {length}."
        )
    if isinstance(waveform, Samples) and (begin := waveform.begin()) < 0:
        yield (
            f"{source} sends nothing before 0 s, but its samples begin at {begin:.3g} s; add {-begin:.3g} s to its "
            "delay to send all."
        )


def rare(every: int, steps: int) -> Iterator[str]:
    """A warning about snapshots every so many steps of which a run has none."""
    if every > steps:
        yield (f"output.snapshots asks for one every {every} steps, but the run has {steps}; use a smaller number.")

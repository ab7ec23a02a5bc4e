"""The resolution of a grid: waves on a grid run slower with fewer cells per wavelength."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ADVISED = 10.0
"""Cells per shortest wavelength for accurate waves."""


@dataclass(frozen=True)
class Resolution:
    """The highest significant frequency (Hz), the slowest material, and the cells to a wavelength there.

    A frequency is significant where a waveform's spectrum is above 1 % (-40 dB) of its largest value; the wavelength is
    that in the material without its losses; the cells are counted along the axis with the larger spacing.
    """

    frequency: float
    material: str
    cells: float

    @property
    def facts(self) -> str:
        """The cells, and what they are those of, in a sentence."""
        return f"got {self.cells:.2g} ('{self.material}' at {self.frequency / 1e9:.3g} GHz)"


def resolution(frequency: float, speeds: Mapping[str, float], spacing: float) -> Resolution:
    """Cells of the grid for the shortest wave; infinitely many without a frequency or a material.

    speeds: of waves in each material, m/s.
    """
    if not speeds or frequency == 0:
        return Resolution(frequency, "vacuum", float("inf"))
    slowest = min(speeds, key=lambda name: speeds[name])
    return Resolution(frequency, slowest, speeds[slowest] / (frequency * spacing))

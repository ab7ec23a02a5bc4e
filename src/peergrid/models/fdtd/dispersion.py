"""A check of the grid's resolution: waves on a grid run slower with fewer cells per wavelength."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.errors import UsageError
from peergrid.models.fdtd.constants import SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import CONDUCTOR, Geometry
from peergrid.models.fdtd.model import RadarModel

ADVISED = 10.0
REQUIRED = 5.0


@dataclass(frozen=True)
class Resolution:
    """The highest significant frequency (Hz), the slowest material, and the cells to a wavelength there.

    A frequency is significant where a waveform's spectrum is above 1 % (-40 dB) of its largest value; the wavelength is
    that in the material without its losses; the cells are counted along the axis with the larger spacing.
    """

    frequency: float
    material: str
    cells: float


def resolution(model: RadarModel, geometry: Geometry) -> Resolution:
    """Cells of the grid for the shortest wave; infinitely many without sources."""
    frequency = max((source.waveform.highest_frequency() for source in model.sources), default=0.0)
    media = [m for m in geometry.used if m != CONDUCTOR]
    if not media or frequency == 0:
        return Resolution(frequency, "vacuum", float("inf"))
    slowest = max(media, key=lambda m: m.slowness)
    wavelength = SPEED_OF_LIGHT / (frequency * slowest.slowness)
    return Resolution(frequency, slowest.name, wavelength / max(geometry.spacing))


def judge(found: Resolution, model: RadarModel) -> tuple[str, ...]:
    """The warnings about a resolution. Raises UsageError below 5 cells per wavelength unless the model allows it."""
    if found.cells >= ADVISED:
        return ()
    advised = max(model.grid.spacings) * found.cells / ADVISED
    where = f"'{found.material}' at {found.frequency / 1e9:.3g} GHz"
    facts = f"got {found.cells:.1f} ({where}); use grid.spacing = {advised:.2g}"
    if found.cells < REQUIRED and not model.grid.allow_underresolved:
        raise UsageError(
            f"grid.spacing is expected to give at least {REQUIRED:g} cells per shortest wavelength, {facts}, or allow "
            f"it with grid.allow_underresolved = true."
        )
    return (
        f"grid.spacing should give at least {ADVISED:g} cells per shortest wavelength, {facts} for accurate waves.",
    )

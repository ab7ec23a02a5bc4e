"""A check of the grid's resolution."""

from __future__ import annotations

from peergrid.errors import UsageError
from peergrid.models.fdtd.constants import SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import CONDUCTOR, Geometry
from peergrid.models.fdtd.model import RadarModel
from peergrid.models.resolution import ADVISED, Resolution, resolution

REQUIRED = 5.0


def resolved(model: RadarModel, geometry: Geometry) -> Resolution:
    """Cells of the grid for the shortest wave; infinitely many without sources."""
    frequency = max((source.waveform.highest_frequency() for source in model.sources), default=0.0)
    speeds = {one.name: SPEED_OF_LIGHT / one.slowness for one in geometry.used if one != CONDUCTOR}
    return resolution(frequency, speeds, max(geometry.spacing))


def judge(found: Resolution, model: RadarModel) -> tuple[str, ...]:
    """The warnings about a resolution. Raises UsageError below 5 cells per wavelength unless the model allows it."""
    if found.cells >= ADVISED:
        return ()
    facts = f"{found.facts}; use grid.spacing = {max(model.grid.spacings) * found.cells / ADVISED:.2g}"
    if found.cells < REQUIRED and not model.grid.allow_underresolved:
        raise UsageError(
            f"grid.spacing is expected to give at least {REQUIRED:g} cells per shortest wavelength, {facts}, or allow "
            f"it with grid.allow_underresolved = true."
        )
    return (
        f"grid.spacing should give at least {ADVISED:g} cells per shortest wavelength, {facts} for accurate waves.",
    )

"""Electromagnetic waves by finite differences in time: the 2D ground-penetrating radar (TMz fields Ez, Hx, Hy)."""

from peergrid.models.fdtd.build import Built, Recorder, build
from peergrid.models.fdtd.model import RadarModel

__all__ = ["Built", "RadarModel", "Recorder", "build"]

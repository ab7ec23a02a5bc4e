"""Electromagnetic waves by finite differences in time: the 2D ground-penetrating radar (TMz fields Ez, Hx, Hy)."""

from peergrid.models.fdtd.build import Built, ModelReceiver, build
from peergrid.models.fdtd.model import RadarModel
from peergrid.models.fdtd.read import read

__all__ = ["Built", "ModelReceiver", "RadarModel", "build", "read"]

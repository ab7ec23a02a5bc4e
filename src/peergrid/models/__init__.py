"""Kinds of models with a common protocol (`model`), each a package that uses grid and stencil; `read` reads any
kind.
"""

from peergrid.models.model import (
    AxesNamed,
    BuiltModel,
    ForeignModel,
    Head,
    Memory,
    Model,
    MomentsBuilt,
    Outcome,
    PicturedBuilt,
    Reader,
    RunSpec,
    Snapshots,
    UnitsNamed,
)
from peergrid.models.modelfile import parse, read

__all__ = [
    "AxesNamed",
    "BuiltModel",
    "ForeignModel",
    "Head",
    "Memory",
    "Model",
    "MomentsBuilt",
    "Outcome",
    "PicturedBuilt",
    "Reader",
    "RunSpec",
    "Snapshots",
    "UnitsNamed",
    "parse",
    "read",
]

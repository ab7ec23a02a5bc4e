"""Kinds of models behind one protocol (`model`), each a package on top of grid and stencil; `read` reads any."""

from peergrid.models.model import (
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

"""Maxwell's equations on a Yee grid in three dimensions, and in the planes of two: radar, antennas, dispersive media.

Read first `domain` (a model as data, rasterised), then `yee` (the stencils), `absorber`, `media`, `sources` and `line`
(the numbers that go into them), `lattice` (what is where), `assembly` and `build` (from a domain to the stages of a
step).
"""

from peergrid.models.fdtd3d.build import BuiltDomain, build
from peergrid.models.fdtd3d.domain import (
    AXES,
    COMPONENTS,
    PEC,
    PMC,
    SIDES,
    VACUUM,
    Absorber,
    Domain,
    Drive,
    ElectricDipole,
    FarField,
    Grading,
    MagneticDipole,
    Medium,
    Pictures,
    PlaneWave,
    Pole,
    Receiver,
    Slab,
    Stretch,
    TransmissionLine,
    VoltageSource,
    Wire,
    debye,
    drude,
    lorentz,
)
from peergrid.models.fdtd3d.model import DomainModel, check_pictures, drawn, memory, remembered

__all__ = [
    "AXES",
    "COMPONENTS",
    "PEC",
    "PMC",
    "SIDES",
    "VACUUM",
    "Absorber",
    "BuiltDomain",
    "Domain",
    "DomainModel",
    "Drive",
    "ElectricDipole",
    "FarField",
    "Grading",
    "MagneticDipole",
    "Medium",
    "Pictures",
    "PlaneWave",
    "Pole",
    "Receiver",
    "Slab",
    "Stretch",
    "TransmissionLine",
    "VoltageSource",
    "Wire",
    "build",
    "check_pictures",
    "debye",
    "drawn",
    "drude",
    "lorentz",
    "memory",
    "remembered",
]

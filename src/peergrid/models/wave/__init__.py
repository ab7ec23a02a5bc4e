"""Seismic waves: acoustic, VTI and TTI media in 2D and 3D, with sources and receivers anywhere (`docs/waves.md`).

Read `stencils` (the updates), `propagator` (from a medium to the stages of a step), `shot` (sources and receivers).
"""

from peergrid.models.wave.medium import Medium
from peergrid.models.wave.propagator import Propagator
from peergrid.models.wave.read import read
from peergrid.models.wave.scheme import Scheme
from peergrid.models.wave.shot import Gather, PointSource, Shot
from peergrid.models.waveforms import Gaussian, Ricker, Samples

__all__ = ["Gather", "Gaussian", "Medium", "PointSource", "Propagator", "Ricker", "Samples", "Scheme", "Shot", "read"]

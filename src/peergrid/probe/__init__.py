"""Measure the machine: one file per experiment, one profile with every number and its uncertainty.

The experiments are in `registry`, which imports the compiler of their loops.
"""

from peergrid.probe.compare import Difference, Expected, Shortfall, differences, expected, flags
from peergrid.probe.experiment import Bench, Impossible, Lack, Measurement, Probe, result
from peergrid.probe.profile import Outcome, Profile, read, write
from peergrid.probe.session import measure

__all__ = [
    "Bench",
    "Difference",
    "Expected",
    "Impossible",
    "Lack",
    "Measurement",
    "Outcome",
    "Probe",
    "Profile",
    "Shortfall",
    "differences",
    "expected",
    "flags",
    "measure",
    "read",
    "result",
    "write",
]

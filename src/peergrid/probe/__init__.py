"""Measure the machine: one file per experiment, one profile with every number and its uncertainty."""

from peergrid.probe.compare import Difference, Expected, Flag, differences, expected, flags
from peergrid.probe.experiment import Bench, Impossible, Lack, Probe, Result, result
from peergrid.probe.profile import Outcome, Profile, read, write
from peergrid.probe.registry import PROBES, choose
from peergrid.probe.session import measure

__all__ = [
    "PROBES",
    "Bench",
    "Difference",
    "Expected",
    "Flag",
    "Impossible",
    "Lack",
    "Outcome",
    "Probe",
    "Profile",
    "Result",
    "choose",
    "differences",
    "expected",
    "flags",
    "measure",
    "read",
    "result",
    "write",
]

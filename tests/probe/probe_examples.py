"""Made-up machines, results and profiles for the tests of this folder."""

from __future__ import annotations

from peergrid.machine import Cpu, Gpu, Machine, Missing, NumaNode, PcieLink, Software
from peergrid.probe.experiment import Measurement, Scalar, result
from peergrid.probe.profile import Outcome, Profile, new


def machine(gpus: int = 0) -> Machine:
    """A small host with `gpus` H200-like GPUs."""
    cpu = Cpu("Some CPU", "x86_64", 1, 4, 4, (0, 1, 2, 3), ())
    missing = () if gpus else (Missing("GPUs", "no driver"),)
    found = tuple(_gpu(index) for index in range(gpus))
    software = Software("Linux", "3.12", "580", "13.0", "", "", "")
    return Machine(1 << 34, cpu, (NumaNode(0, (0, 1, 2, 3), 1 << 34, (10,)),), found, (), (), software, (), missing)


def _gpu(index: int) -> Gpu:
    pcie = PcieLink(5, 16, 6.3e10)
    facts = (132, 141 << 30, 4.8e12, 60 << 20, 1.98e9, 3, False, 0, (0, 1), False, pcie, "device", "none")
    pci = f"0000:0{index}:00.0"
    return Gpu(index, "NVIDIA H200", f"GPU-{index}", pci, (pci,), "9.0", *facts)


def outcome(*results: Measurement, name: str = "host-copy", status: str = "done", reason: str = "") -> Outcome:
    """An outcome with these results."""
    return Outcome(name, "host", "Copy bandwidth", "B/s", "By copying.", status, reason, 1.5, results)


def number(quantity: str, value: float, unit: str = "B/s", share: float = 0.01, **at: Scalar) -> Measurement:
    """A result whose samples lie within `share` of the value."""
    return result(quantity, unit, [value * (1 - share), value, value * (1 + share)], at)


def profile(*results: Measurement, gpus: int = 0) -> Profile:
    """A profile that holds these results."""
    return new(machine(gpus), (outcome(*results),), quick=True)

"""The figures of families of kernels: how close each comes to a machine's memory, arithmetic and clock.

They were calibrated on steps that `benchmarks/cuda/forecasts.py` measured on H200s, on grid sizes other than those that
forecasts are compared with; for other GPUs they are scaled by memory, arithmetic and clock of the machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from peergrid.costs.machine import Machine


@dataclass(frozen=True, slots=True)
class Family:
    """The figures of a family of kernels.

    memory: their share of the copy bandwidth; issue: of all instructions that a GPU issues; chain: cycles for each
    instruction of a lane that waits for the one before.
    """

    memory: float
    issue: float
    chain: float


def figures() -> dict[str, Any]:
    """The calibrated figures: `families` of kernels, and `calls` and `delays` of the machine on which that was done."""
    found: dict[str, Any] = json.loads((files("peergrid.costs") / "figures.json").read_text())
    return found


FAMILIES = {name: Family(**given) for name, given in figures()["families"].items()}
USUAL = Family(0.6, 0.3, 10.0)  # of an unknown family


def bandwidth(machine: Machine, touched: float) -> float:
    """The memory bandwidth (B/s) of a pass over arrays of so many bytes, part of which the last cache still holds."""
    cached = min(1.0, max(0.0, 1.5 - touched / machine.cache))
    return 1 / (cached / machine.cache_bandwidth + (1 - cached) / machine.bandwidth)

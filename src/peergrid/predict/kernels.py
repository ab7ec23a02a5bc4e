"""The time of a launch on a GPU: the slower of memory, arithmetic, and the longest chain, with figures of its family.

The figures of `FAMILIES` were calibrated on steps that `benchmarks/cuda/forecasts.py` measured on an H200, on sizes of
grids that no forecast is compared with; for other GPUs they are scaled by memory, arithmetic and clock of the machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

from peergrid.predict.launches import KernelWork
from peergrid.predict.machine import Machine

POWER = 4.0  # of the mean by which what overlaps is put together: alike, memory and arithmetic get in each other's way


@dataclass(frozen=True, slots=True)
class Family:
    """The figures of a family of kernels.

    memory: their share of the copy bandwidth; issue: of all instructions that a GPU issues; chain: cycles for each
    instruction of a lane that waits for the one before.
    """

    memory: float
    issue: float
    chain: float


class Duration(NamedTuple):
    """Seconds of a launch: `busy`, what it takes of the whole GPU; `alone`, what it lasts on an idle one."""

    busy: float
    alone: float


def figures() -> dict[str, Any]:
    """The calibrated figures: `families` of kernels, and `calls` and `delays` of the machine on which that was done."""
    found: dict[str, Any] = json.loads((files("peergrid.predict") / "figures.json").read_text())
    return found


FAMILIES = {name: Family(**given) for name, given in figures()["families"].items()}
USUAL = Family(0.6, 0.3, 10.0)  # of a family that nothing is known of


def bandwidth(machine: Machine, touched: float) -> float:
    """Bytes per second of memory where a pass goes through so many: what the last cache still has comes from there."""
    cached = min(1.0, max(0.0, 1.5 - touched / machine.cache))
    return 1 / (cached / machine.cache_bandwidth + (1 - cached) / machine.bandwidth)


def duration(work: KernelWork, machine: Machine, families: dict[str, Family] = FAMILIES) -> Duration:
    """Seconds of a launch without its start."""
    family = families.get(work.family, USUAL)
    memory = work.moved / (bandwidth(machine, work.touched) * family.memory)
    arithmetic = work.results / (machine.arithmetic * family.issue)
    busy: float = (memory**POWER + arithmetic**POWER) ** (1 / POWER)
    chain = work.chain * family.chain / machine.clock
    return Duration(busy, float((busy**POWER + chain**POWER) ** (1 / POWER)))

"""The time of a launch on a GPU: the longest of memory, arithmetic and dependent chain, by figures of its family."""

from __future__ import annotations

from typing import NamedTuple

from peergrid.costs.families import FAMILIES, USUAL, Family, bandwidth
from peergrid.costs.machine import Machine
from peergrid.predict.launches import KernelWork

POWER = 4.0  # exponent of the mean of overlapping times: similar ones of memory and arithmetic slow each other down


class Duration(NamedTuple):
    """Seconds of a launch: `busy`, of the whole GPU's throughput; `alone`, its duration on an idle GPU."""

    busy: float
    alone: float


def duration(work: KernelWork, machine: Machine, families: dict[str, Family] = FAMILIES) -> Duration:
    """Seconds of a launch without its start."""
    family = families.get(work.family, USUAL)
    memory = work.moved / (bandwidth(machine, work.touched) * family.memory)
    arithmetic = work.results / (machine.arithmetic * family.issue)
    busy: float = (memory**POWER + arithmetic**POWER) ** (1 / POWER)
    chain = work.chain * family.chain / machine.clock
    return Duration(busy, float((busy**POWER + chain**POWER) ** (1 / POWER)))

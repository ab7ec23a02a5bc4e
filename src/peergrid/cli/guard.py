"""Refuse a model that cannot fit before any of its arrays exist."""

from __future__ import annotations

from math import prod

from peergrid.errors import DoesNotFit
from peergrid.models.fdtd.memory import HostMemory, host_memory, most_steps
from peergrid.models.fdtd.model import RadarModel
from peergrid.runtime.devices import Devices
from peergrid.runtime.fit import RESERVE, check_host_memory, free_memory, gibibytes, rounded

ARRAYS = 8  # two slots of three fields and two coefficients: the least that any model of this kind needs on a GPU


def check_model_memory(model: RadarModel, devices: Devices, writing: bool) -> HostMemory:
    """The memory of the host that a run of the model takes; writing: whether it leaves results.

    Raises DoesNotFit where that exceeds what is free, or what the model needs at least exceeds what GPUs have free.
    """
    needed, cells = host_memory(model, computing=devices.kind == "cpu", writing=writing), prod(model.cells)
    free, steps = free_memory(), most_steps(model)
    if needed.steps > RESERVE * free:
        raise DoesNotFit(
            f"The signals of sources and the records of receivers over {steps:,} steps need {gibibytes(needed.steps)} "
            f"of memory and {gibibytes(free)} are free: use at most about "
            f"{rounded(steps * RESERVE * free / needed.steps)} steps, or fewer receivers and sources."
        )
    check_host_memory(needed.cells + needed.steps, cells)
    if devices.kind == "cuda":
        from peergrid.runtime.cuda.memory.room import check_least

        check_least(devices.ordinals, cells * (4 if model.grid.dtype == "float32" else 8) * ARRAYS, cells)
    return needed


def check_description_memory(model: RadarModel) -> None:
    """Raise DoesNotFit where the host has too little memory free for the cells of a model that is not run here."""
    described, free = host_memory(model, computing=False, writing=False), free_memory()
    needed = described.cells + described.steps
    if needed > RESERVE * free:
        raise DoesNotFit(
            f"Describing the model takes {gibibytes(needed)} of this host's memory and {gibibytes(free)} are free: "
            "plan it on a host with more, or with a coarser grid."
        )

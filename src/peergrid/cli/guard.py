"""Refuse a model that needs too much memory, before any array is allocated."""

from __future__ import annotations

from math import prod

from peergrid.errors import DoesNotFit
from peergrid.models import Memory, Model
from peergrid.runtime.devices import Devices
from peergrid.runtime.fit import RESERVE, check_host_memory, free_memory, gibibytes, rounded


def check_model_memory(model: Model, devices: Devices, writing: bool) -> Memory:
    """The host memory that a run of the model takes; writing: the run writes results.

    Raises DoesNotFit if the host, or the GPUs, have less memory free than the model needs at least.
    """
    needed, cells = model.memory(computing=devices.kind == "cpu", writing=writing), prod(model.shape)
    free, steps = free_memory(), needed.steps
    if needed.records > RESERVE * free:
        most = int(steps * RESERVE * free / needed.records)
        fewer = f"at most about {rounded(most)} steps, or fewer" if most > 1 else "fewer"
        raise DoesNotFit(
            f"The signals of sources and the records of receivers over {steps:,} steps need "
            f"{gibibytes(needed.records)} of memory and {gibibytes(free)} are free: use {fewer} receivers and sources."
        )
    check_host_memory(needed.cells + needed.records, cells)
    if devices.kind == "cuda":
        from peergrid.runtime.cuda.memory.room import check_least

        check_least(devices.ordinals, needed.devices, cells)
    return needed


def check_description_memory(model: Model) -> None:
    """Raise DoesNotFit if the host has too little memory free for the cells of a model that is not run here."""
    described, free = model.memory(computing=False, writing=False), free_memory()
    needed = described.cells + described.records
    if needed > RESERVE * free:
        raise DoesNotFit(
            f"Describing the model takes {gibibytes(needed)} of this host's memory and {gibibytes(free)} are free; its "
            f"fields take at least {gibibytes(described.devices)} of the GPUs': use a host with more, or a coarser "
            "grid."
        )

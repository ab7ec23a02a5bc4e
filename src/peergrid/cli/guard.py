"""Refuse a model that cannot fit before any of its arrays exist."""

from __future__ import annotations

from math import prod

from peergrid.models.fdtd.model import RadarModel
from peergrid.runtime.devices import Devices
from peergrid.runtime.fit import check_host_memory

ARRAYS = 8  # two slots of three fields and two coefficients: the least that any model of this kind needs


def check_model_memory(model: RadarModel, devices: Devices) -> None:
    """Raise DoesNotFit where the least memory of the model exceeds what is free on the host, or on a GPU."""
    cells = prod(model.cells)
    needed = cells * (4 if model.grid.dtype == "float32" else 8) * ARRAYS
    if devices.kind == "cpu":
        check_host_memory(needed, cells)
        return
    from peergrid.runtime.cuda.memory.room import check_least

    check_least(devices.ordinals, needed, cells)

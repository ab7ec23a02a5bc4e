"""Looking for values that are not finite, where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.grid import Box, Index
from peergrid.runtime.cuda.commands.replay import invoke
from peergrid.runtime.cuda.commands.rows import ARGUMENTS
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext

NOWHERE = (1 << 63) - 1
BLOCKS, THREADS = 1024, 256


def first_nonfinite(execution: ExecutionContext, name: str, slot: int) -> Index | None:
    """The first owned cell, in the order of the devices, where a state field is NaN or infinite."""
    for device in execution.devices.mine:
        owned = execution.memory.owned(device, name)
        if not owned.empty and (place := _search(execution, device, name, slot, owned)) is not None:
            return tuple(int(i) + o for i, o in zip(place, owned.lo, strict=True))
    return None


def _search(execution: ExecutionContext, device: int, name: str, slot: int, owned: Box) -> tuple[Any, ...] | None:
    driver, block = execution.devices.driver, execution.memory.plan.blocks[device][name]
    found = execution.found(device)
    execution.devices.enter(device)
    driver.upload(found, np.array([NOWHERE], np.int64))
    values = np.zeros(1, service.SEARCH)
    values["values"] = execution.memory.pointer(device, name, slot) + block.index(owned.lo) * block.itemsize
    pitches = block.pitches[:-1]
    values["pitch"][0, 2 - len(pitches) :] = pitches
    values["shape"] = (1,) * (3 - owned.ndim) + owned.shape
    values["found"] = found
    pointers = np.array([values.ctypes.data], np.uint64)
    kernel = execution.utility_kernel(device, f"search_{block.itemsize}")
    blocks = min(BLOCKS, -(-owned.size // THREADS))
    words = (kernel, blocks, 1, 1, THREADS, 1, 1, 0, 0, int(pointers.ctypes.data), 0)
    execution.check(
        invoke(execution.entry("cuLaunchKernel"), words), f"Searching '{name}' for values that are not finite"
    )
    assert len(words) == ARGUMENTS
    driver.synchronize()
    answer = np.empty(1, np.int64)
    driver.download(answer, found)
    return None if answer[0] == NOWHERE else np.unravel_index(int(answer[0]), owned.shape)

"""Looking for values that are not finite, where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.grid import Box, Index
from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule.ops import Queue

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
    block, driver = execution.memory.plan.blocks[device][name], execution.devices.on(device)
    found = execution.once(("found", device), lambda: execution.devices.allocate(device, 8))
    driver.upload(found, np.array([NOWHERE], np.int64))
    values = np.zeros(1, service.SEARCH)
    values["values"] = execution.memory.address(device, name, slot, owned.lo)
    pitches = block.pitches[:-1]
    values["pitch"][0, 2 - len(pitches) :] = pitches
    values["shape"] = (1,) * (3 - owned.ndim) + owned.shape
    values["found"] = found
    kernel = execution.utility_kernel(device, f"search_{block.itemsize}")
    commands, blocks = CommandWriter(execution.devices), min(BLOCKS, -(-owned.size // THREADS))
    commands.launch(-1, Queue(device, "search"), kernel, blocks, THREADS, values)
    issue(execution.devices, commands.finish(), f"Searching '{name}' for values that are not finite")
    driver.synchronize()
    answer = np.empty(1, np.int64)
    driver.download(answer, found)
    return None if answer[0] == NOWHERE else np.unravel_index(int(answer[0]), owned.shape)

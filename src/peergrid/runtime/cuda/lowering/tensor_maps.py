"""The maps by which launches whose planes come by tensor copies find the fields of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from peergrid.codegen.cuda.stream3d.tensors import Stored
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.memory.blocks import BlockLayout


def tensor_maps(
    execution: ExecutionContext, device: int, made: Callable[..., tuple[NDArray[Any], ...]], values: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """The last struct of a launch, if there are such copies, as `made` by its kernel; values: its arguments."""
    blocks = execution.memory.plan.blocks[device]
    return made(values[0], lambda name: stored(blocks[name]), execution.devices.on(device).tensor_map)


def stored(block: BlockLayout) -> Stored:
    """The cells of a full field in memory, the padding before its first column included."""
    (planes, rows, _), (*first, column) = block.extent, block.box.lo
    return Stored((*first, column - block.lead), planes, rows)

"""The maps by which launches whose planes come by tensor copies find the fields of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.tensors import Stored, tensors
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.memory.blocks import BlockLayout


def tensor_maps(
    execution: ExecutionContext, device: int, rings: Rings, values: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """The last struct of a launch, if there are such copies; values: its arguments."""
    if not rings.shape.tensor:
        return ()
    blocks = execution.memory.plan.blocks[device]
    return (tensors(rings, values[0], stored(blocks), execution.devices.on(device).tensor_map),)


def stored(blocks: Mapping[str, BlockLayout]) -> dict[str, Stored]:
    """The cells of full fields in memory, the padding before their first columns included."""
    found = {}
    for name, block in blocks.items():
        if block.field.full:
            (planes, rows, _), (*first, column) = block.extent, block.box.lo
            found[name] = Stored((*first, column - block.lead), planes, rows)
    return found

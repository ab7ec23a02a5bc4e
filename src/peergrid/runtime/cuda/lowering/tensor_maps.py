"""The maps by which launches whose planes come by tensor copies find the fields of a device."""

from __future__ import annotations

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
    stored = {name: _stored(block) for name, block in blocks.items() if block.field.full}
    return (tensors(rings, values[0], stored, execution.devices.on(device).tensor_map),)


def _stored(block: BlockLayout) -> Stored:
    """The cells of a block, the padding before its first column included."""
    (planes, rows, _), (*first, column) = block.extent, block.box.lo
    return Stored((*first, column - block.lead), planes, rows)

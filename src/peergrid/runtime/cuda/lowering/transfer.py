"""A halo as runs of values in two blocks of memory, and the descriptors the driver's copies take. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.grid import Box, Index
from peergrid.runtime.cuda.memory.blocks import BlockLayout
from peergrid.schedule import ops

UNIFIED = 4  # CU_MEMORYTYPE_UNIFIED: the address says where it is
Words = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Side:
    """One end of a copy: address of the first value, and bytes from run to run along the outer axes."""

    address: int
    pitches: Index


@dataclass(frozen=True)
class Transfer:
    """`counts` runs (along at most two outer axes) of `run` contiguous bytes each."""

    source: Side
    target: Side
    counts: Index
    run: int

    @property
    def bytes(self) -> int:
        return self.run * int(np.prod(self.counts, dtype=np.int64))

    def packed(self, address: int) -> Side:
        """A side without gaps at an address, as staging memory is."""
        pitches: list[int] = []
        step = self.run
        for count in reversed(self.counts):
            pitches.insert(0, step)
            step *= count
        return Side(address, tuple(pitches))


def transfer_of(
    op: ops.Transfer, blocks: Sequence[Mapping[str, BlockLayout]], addresses: tuple[int, int] = (0, 0)
) -> Transfer:
    """The runs of an operation's cells; blocks: the memory of every device, by field; addresses: of the two blocks."""
    source, target = (blocks[device][op.field] for device in (op.source_device, op.target_device))
    return transfer(source, target, (op.source_box, op.target_box), addresses)


def transfer(source: BlockLayout, target: BlockLayout, boxes: tuple[Box, Box], addresses: tuple[int, int]) -> Transfer:
    """The runs of a copy between boxes of one shape in two blocks that start at `addresses`.

    Rows that are whole on both sides are one run, padding included; it is copied along with them.
    """
    size = source.itemsize
    places = (source.index(boxes[0].lo), target.index(boxes[1].lo))
    ends = [a + p * size for a, p in zip(addresses, places, strict=True)]
    shape = boxes[0].shape
    axis, run = len(shape) - 1, shape[-1]
    whole = _whole(source, boxes[0], axis) and _whole(target, boxes[1], axis)
    while axis > 0 and (shape[axis - 1] == 1 or (whole and source.pitches[axis - 1] == target.pitches[axis - 1])):
        run += (shape[axis - 1] - 1) * source.pitches[axis - 1]
        axis -= 1
        whole = whole and _whole(source, boxes[0], axis) and _whole(target, boxes[1], axis)
    return Transfer(
        Side(ends[0], tuple(p * size for p in source.pitches[:axis])),
        Side(ends[1], tuple(p * size for p in target.pitches[:axis])),
        shape[:axis],
        run * size,
    )


def _whole(block: BlockLayout, box: Box, axis: int) -> bool:
    return block.box.lo[axis] == box.lo[axis] and block.box.hi[axis] == box.hi[axis]


def memcpy_2d(source: Side, target: Side, counts: Index, run: int) -> Words:
    """A CUDA_MEMCPY2D between unified addresses, shape (16,)."""
    ends = [[0, 0, UNIFIED, 0, side.address, 0, side.pitches[0]] for side in (source, target)]
    return np.array([*ends[0], *ends[1], run, counts[0]], np.int64)


def memcpy_3d(source: Side, target: Side, counts: Index, run: int) -> Words:
    """A CUDA_MEMCPY3D between unified addresses, shape (25,); planes are whole numbers of rows."""
    ends = [
        [0, 0, 0, 0, UNIFIED, 0, side.address, 0, 0, side.pitches[1], side.pitches[0] // side.pitches[1]]
        for side in (source, target)
    ]
    return np.array([*ends[0], *ends[1], run, counts[1], counts[0]], np.int64)

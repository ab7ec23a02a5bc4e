"""A kernel as what an executor needs to launch it: its text, its entry, and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import REGION
from peergrid.grid import Box


@dataclass(frozen=True)
class Program:
    """One kernel: its text, its entry, threads of a block and bytes of shared memory.

    whole: whether a multiprocessor shall give all it can as shared memory, so that other kernels find room beside.
    """

    source: str = field(repr=False)
    entry: str
    threads: int
    shared_bytes: int
    tiles_per_block: int
    whole: bool = True


@dataclass(frozen=True, eq=False)
class Launch:
    """A program over tiles (dtype REGION) with the receivers they serve (dtype RECEIVER)."""

    program: Program
    regions: NDArray[Any]
    receivers: NDArray[Any]

    @property
    def blocks(self) -> int:
        return -(-len(self.regions) // self.program.tiles_per_block)


def regions_of(boxes: Sequence[Box]) -> NDArray[Any]:
    """Tiles as the table that kernels read."""
    rows = np.zeros(len(boxes), REGION)
    if boxes:
        rows["lo"][:, : boxes[0].ndim] = [tile.lo for tile in boxes]
        rows["hi"][:, : boxes[0].ndim] = [tile.hi for tile in boxes]
    return rows

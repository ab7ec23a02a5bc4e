"""A kernel as what an executor needs to launch it: its text, its entry, and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import RECEIVER, REGION
from peergrid.grid import Box
from peergrid.stencil import Problem


@dataclass(frozen=True)
class Program:
    """One kernel: its text, its entry, threads of a block and bytes of shared memory.

    whole: whether a multiprocessor shall give all it can as shared memory, so that other kernels find room beside.
    """

    source: str = field(repr=False)
    entry: str
    threads: int
    shared_bytes: int
    tiles_per_block: int = 1
    whole: bool = True


@dataclass(frozen=True, eq=False)
class Launch:
    """A program over tiles (dtype REGION) with the receivers they serve (dtype RECEIVER)."""

    program: Program
    regions: NDArray[Any]
    receivers: NDArray[Any] = field(default_factory=lambda: np.zeros(0, RECEIVER))

    @property
    def blocks(self) -> int:
        return -(-len(self.regions) // self.program.tiles_per_block)

    @property
    def extents(self) -> NDArray[Any]:
        """The cells of each tile along the axes, shape (tiles, 3)."""
        extents: NDArray[Any] = self.regions["hi"] - self.regions["lo"]
        return extents


def regions_of(boxes: Sequence[Box]) -> NDArray[Any]:
    """Tiles as the table that kernels read."""
    rows = np.zeros(len(boxes), REGION)
    if boxes:
        rows["lo"][:, : boxes[0].ndim] = [tile.lo for tile in boxes]
        rows["hi"][:, : boxes[0].ndim] = [tile.hi for tile in boxes]
    return rows


def numbered(tiles: Sequence[tuple[int, Box]]) -> NDArray[Any]:
    """The same of tiles of several places, each with the number of its place as `variant`."""
    rows = regions_of([tile for _, tile in tiles])
    rows["variant"] = [number for number, _ in tiles]
    return rows


def receiver_table(problem: Problem, numbers: Sequence[int]) -> NDArray[Any]:
    """Receivers as the table that kernels read."""
    table, fields = np.zeros(len(numbers), RECEIVER), list(problem.fields)
    for row, number in zip(table, numbers, strict=True):
        receiver = problem.receivers[number]
        row["cell"][: problem.grid.ndim] = receiver.cell
        row["field"], row["number"] = fields.index(receiver.field), number
    return table


def serving(problem: Problem, boxes: Sequence[Box], recorded: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Tiles that serve receivers as the table that kernels read, each with the receivers in it; and the table of these.

    A tile says where its receivers begin by `first`, and how many they are by `variant`.
    """
    rows, axes, heard = regions_of(boxes), problem.grid.ndim, receiver_table(problem, recorded)
    served, count = [heard[:0]], 0
    for row in rows:
        inside = (heard["cell"] >= row["lo"]) & (heard["cell"] < row["hi"])
        served.append(heard[inside[:, :axes].all(axis=1)])
        row["first"], row["variant"] = count, len(served[-1])
        count += len(served[-1])
    return rows, np.concatenate(served)

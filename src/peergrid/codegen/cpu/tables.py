"""A program: pieces of work as tables of integers that the compiled driver carries out.

Every grid counts as (stream, y, x): 1D grids have one row and one y, 2D grids one y.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.plan import Storage, StreamPlan
from peergrid.codegen.cpu.work import Access, Piece, Tile
from peergrid.grid import Box, Index
from peergrid.stencil import Problem

Table = NDArray[np.int64]
Triple = tuple[int, int, int]
AXES = {1: (2,), 2: (0, 2), 3: (0, 1, 2)}
LINE = 64  # bytes of a cache line
PAGE = 4096  # addresses that differ by a multiple of this collide in a first-level cache


@dataclass(frozen=True)
class Buffer:
    """A place in scratch memory: bytes from its start, between rows (planes), between lines; rows kept."""

    offset: int
    row: int
    line: int
    depth: int


@dataclass(frozen=True)
class Program:
    """A pass over one box.

    functions: the distinct row functions' sources; tiles: first and last front, first and last node; nodes: lag, first
    and last work; works: first and last row, function, first operand, operands, lines, cells; operands: storage, row
    relative to the front, line, cell; storages: what the storage numbers mean; buffers: of windows and sinks, `scratch`
    bytes in all.
    """

    functions: tuple[str, ...]
    tiles: Table
    nodes: Table
    works: Table
    operands: Table
    storages: tuple[Storage, ...]
    buffers: Mapping[Storage, Buffer]
    scratch: int


@dataclass
class _Packer:
    """The tables while they are filled."""

    depths: tuple[int, ...]
    functions: dict[str, int] = field(default_factory=dict)
    storages: dict[Storage, int] = field(default_factory=dict)
    tiles: list[tuple[int, ...]] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)
    works: list[tuple[int, ...]] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)

    def tile(self, tile: Tile, origins: dict[int, Box]) -> None:
        first_node, fronts = len(self.nodes), []
        for node in tile.plan.nodes:
            first = len(self.works)
            for piece in tile.pieces(node):
                self._work(piece, node.lag, origins)
                fronts += [self.works[-1][0] + node.lag, self.works[-1][1] + node.lag]
            self.nodes.append((node.lag, first, len(self.works)))
        self.tiles.append((min(fronts, default=0), max(fronts, default=0), first_node, len(self.nodes)))

    def _work(self, piece: Piece, lag: int, origins: dict[int, Box]) -> None:
        lo, hi = lifted(piece.box.lo, 0), lifted(piece.box.hi, 1)
        number = self.functions.setdefault(piece.code.text, len(self.functions))
        count = len(piece.accesses)
        self.works.append((lo[0], hi[0], number, len(self.operands), count, hi[1] - lo[1], hi[2] - lo[2]))
        self.operands += [self._operand(access, lo, lag, origins) for access in piece.accesses]

    def _operand(self, access: Access, cell: Triple, lag: int, origins: dict[int, Box]) -> tuple[int, ...]:
        storage = access.storage
        number = self.storages.setdefault(storage, len(self.storages))
        if not access.shift:
            return number, 0, *access.place
        row, line, column = lifted(access.shift, 0)
        if storage.kind != "window":
            return number, row - lag, cell[1] + line, cell[2] + column
        origin = lifted(origins[storage.number].lo, 0)
        behind = (lag - row) % self.depths[storage.number]
        return number, -behind, cell[1] + line - origin[1], cell[2] + column - origin[2]


def program(problem: Problem, plan: StreamPlan, tiles: Iterable[Box], recorded: tuple[int, ...]) -> Program:
    """The tables of a pass over disjoint tiles."""
    parts = [Tile(problem, plan, box, recorded) for box in tiles]
    origins = [window_boxes(tile) for tile in parts]
    packer = _Packer(plan.depths)
    for tile, origin in zip(parts, origins, strict=True):
        packer.tile(tile, origin)
    shapes = [_extent(origins, number) for number in range(len(plan.depths))]
    wanted = {Storage("window", number=n): (plan.depths[n], *shape) for n, shape in enumerate(shapes)}
    widest = max((work[6] for work in packer.works), default=0)
    wanted.update({storage: (1, 1, widest) for storage in packer.storages if storage.kind == "sink"})
    buffers, size = _buffers(wanted, problem.itemsize)
    return Program(
        functions=tuple(packer.functions),
        tiles=_table(packer.tiles, 4),
        nodes=_table(packer.nodes, 3),
        works=_table(packer.works, 7),
        operands=_table(packer.operands, 4),
        storages=tuple(packer.storages),
        buffers=buffers,
        scratch=size,
    )


def window_boxes(tile: Tile) -> dict[int, Box]:
    """For each window the cells of the tile whose values pass through it."""
    boxes: dict[int, Box] = {}
    for node in tile.plan.nodes:
        for name, home in node.after.items():
            if home.kind == "window":
                region = tile.region(node, name)
                boxes[home.number] = boxes[home.number].hull(region) if home.number in boxes else region
    return boxes


def lifted(index: Index, rest: int) -> Triple:
    """An index as (stream, y, x), with `rest` along the axes that the grid has not."""
    triple = [rest] * 3
    for axis, value in zip(AXES[len(index)], index, strict=True):
        triple[axis] = value
    return triple[0], triple[1], triple[2]


def _extent(tiles: list[dict[int, Box]], number: int) -> tuple[int, int]:
    """Lines and cells that a window holds of each row, enough for every tile."""
    shapes = [lifted(boxes[number].shape, 1) for boxes in tiles if not boxes[number].empty]
    return max((s[1] for s in shapes), default=0), max((s[2] for s in shapes), default=0)


def _buffers(wanted: Mapping[Storage, Triple], itemsize: int) -> tuple[dict[Storage, Buffer], int]:
    """Places for rows × lines × cells one after another, lines on cache lines; and the bytes of all."""
    buffers: dict[Storage, Buffer] = {}
    offset = 0
    for storage, (rows, lines, cells) in wanted.items():
        line = _rounded(cells * itemsize)
        buffers[storage] = Buffer(offset, lines * line, line, rows)
        offset += rows * lines * line + LINE
    return buffers, offset


def _rounded(size: int) -> int:
    """Up to whole cache lines, and off multiples of a page."""
    lines = -(-size // LINE) * LINE
    return lines + LINE if lines % PAGE == 0 else lines


def _table(rows: list[tuple[int, ...]], columns: int) -> Table:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)

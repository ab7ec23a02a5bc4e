"""A program: pieces of work as tables of integers that the compiled driver carries out.

Every grid counts as (stream, y, x): 1D grids have one row and one y, 2D grids one y.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cpu.plan import Storage, StreamPlan
from peergrid.codegen.cpu.work import Form, Numbers, Piece, Placement, Records, Tile
from peergrid.grid import Box, Index
from peergrid.stencil import Problem

Table = NDArray[np.int64]
Triple = tuple[int, int, int]
Windows = Mapping[int, Box]
Part = tuple[int, Sequence[Piece] | Records]  # a node's lag, and what is done there
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
class DriverTables:
    """A pass over one box, as tables with a row of integers for each

    tile      first and last front, first and last node
    node      lag, first and last band; records are nodes of their own
    band      first and last row, first and last work, first and last work on several rows at once: rows on which a
              node does the same
    work      function, first and last operand, lines, cells of each line
    operand   storage, and on the band's first row: row, line, cell

    at_once: rows of a work on several; functions: the distinct row functions' sources; storages: what the storage
    numbers mean; buffers: of windows and sinks, in `scratch` bytes.
    """

    at_once: int
    functions: tuple[str, ...]
    tiles: Table
    nodes: Table
    bands: Table
    works: Table
    operands: Table
    storages: tuple[Storage, ...]
    buffers: Mapping[Storage, Buffer]
    scratch: int

    @property
    def driver_bytes(self) -> int:
        """Bytes that the driver needs for itself while it runs: five words of each operand and one of each node."""
        return 8 * (5 * len(self.operands) + len(self.nodes))


@dataclass
class _Packer:
    """The tables while they are filled."""

    at_once: int
    functions: dict[str, int] = field(default_factory=dict)
    storages: dict[Storage, int] = field(default_factory=dict)
    tiles: _Rows = field(default_factory=lambda: _Rows(4))
    nodes: _Rows = field(default_factory=lambda: _Rows(3))
    bands: _Rows = field(default_factory=lambda: _Rows(6))
    works: _Rows = field(default_factory=lambda: _Rows(5))
    operands: _Rows = field(default_factory=lambda: _Rows(4))

    def tile(self, parts: Iterable[Part], windows: Windows) -> None:
        """One tile: its nodes as lags and what is done there."""
        first_node = len(self.nodes)
        fronts: list[int] = []
        for lag, work in parts:
            first = len(self.bands)
            span = self._records(work, windows) if isinstance(work, Records) else self._bands(work, windows)
            fronts += [edge + lag for edge in span]
            self.nodes.append((lag, first, len(self.bands)))
        if fronts:
            self.tiles.append((min(fronts), max(fronts), first_node, len(self.nodes)))

    def _bands(self, pieces: Sequence[Piece], windows: Windows) -> Iterator[int]:
        """The bands of pieces; their rows."""
        for low, high, present in _together(pieces):
            first = len(self.works)
            for piece in present:
                self._work(piece.box, piece.single, low, windows)
            several = len(self.works)
            if high - low >= self.at_once > 1:
                for piece in present:
                    assert piece.several is not None  # its box has as many rows as the band
                    self._work(piece.box, piece.several, low, windows)
            self.bands.append((low, high, first, several, several, len(self.works)))
            yield from (low, high)

    def _records(self, records: Records, windows: Windows) -> tuple[int, int]:
        """The bands of records, one for each row that has any; their rows. There may be a million of them."""
        order = np.argsort(records.cells[:, 0], kind="stable") if records.cells.shape[1] > 1 else slice(None)
        numbers, cells = records.numbers[order], _lifted_all(records.cells[order])
        rows, starts = np.unique(cells[:, 0], return_index=True)
        ends = np.append(starts[1:], len(cells)) + len(self.works)
        self.bands.extend(np.stack([rows, rows + 1, starts + len(self.works), ends, ends, ends], axis=1))
        function = self.functions.setdefault(records.code.text, len(self.functions))
        operands = len(self.operands) + 2 * np.arange(len(cells))
        ones = np.ones_like(operands)
        self.works.extend(np.stack([function * ones, operands, operands + 2, ones, ones], axis=1))
        trace = self._storage(Storage("traces"))
        to = np.stack([trace * ones, 0 * ones, numbers, records.step * ones], axis=1)
        at = np.column_stack([self._storage(records.source) * ones, cells - _origin(records.source, windows)])
        self.operands.extend(np.stack([to, at], axis=1).reshape(-1, 4))
        return int(rows[0]), int(rows[-1]) + 1

    def _storage(self, storage: Storage) -> int:
        return self.storages.setdefault(storage, len(self.storages))

    def _work(self, box: Box, form: Form, row: int, windows: Windows) -> None:
        _, y, x = lifted(box.lo, 0)
        _, y_end, x_end = lifted(box.hi, 1)
        number = self.functions.setdefault(form.code.text, len(self.functions))
        first = len(self.operands)
        self.operands.extend(self._operand(access, (row, y, x), windows) for access in form.accesses)
        self.works.append((number, first, len(self.operands), y_end - y, x_end - x))

    def _operand(self, access: Placement, cell: Triple, windows: Windows) -> tuple[int, ...]:
        number = self._storage(access.storage)
        if not access.shift:
            return number, 0, *access.place
        row, line, column = lifted(access.shift, 0)
        _, first_line, first_column = _origin(access.storage, windows)
        return number, cell[0] + row, cell[1] + line - first_line, cell[2] + column - first_column


class _Rows:
    """A table that grows by rows, and by arrays of rows."""

    def __init__(self, columns: int) -> None:
        self._parts: list[Table] = [np.empty((0, columns), dtype=np.int64)]
        self._last: list[tuple[int, ...]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, row: tuple[int, ...]) -> None:
        self._last.append(row)
        self._count += 1

    def extend(self, rows: Iterable[tuple[int, ...]] | Table) -> None:
        if isinstance(rows, np.ndarray):
            self._parts += [self._closed(), rows]
            self._last = []
            self._count += len(rows)
        else:
            for row in rows:
                self.append(row)

    def table(self) -> Table:
        return np.concatenate([*self._parts, self._closed()])

    def _closed(self) -> Table:
        return np.array(self._last, dtype=np.int64).reshape(len(self._last), self._parts[0].shape[1])


def program(
    problem: Problem,
    plan: StreamPlan,
    tiles: Iterable[Box],
    recorded: Sequence[int] | Numbers,
    left: frozenset[str] = frozenset(),
) -> DriverTables:
    """The tables of a pass over disjoint tiles; recorded, left: as of a `Tile`."""
    packer = _Packer(plan.at_once)
    windows: list[Windows] = []
    borders: dict[Storage, Triple] = {}
    for tile in _in_order(problem, plan, tiles, np.asarray(recorded, dtype=np.int64), left):
        parts = list(_parts(tile))
        column = _main_column(pieces for _, pieces in parts if not isinstance(pieces, Records))
        windows.append(_windows(tile, column, LINE // problem.itemsize))
        packer.tile(parts, windows[-1])
        for storage, box in tile.borders():
            _, lines, cells = borders.get(storage, (0, 0, 0))
            borders[storage] = (box.shape[0], max(lines, box.shape[1]), max(cells, box.shape[2]))
    shapes = [_extent(windows, number) for number in range(len(plan.depths))]
    wanted = {Storage("window", number=n): (plan.depths[n], *shape) for n, shape in enumerate(shapes)}
    works = packer.works.table()
    widest = int(works[:, 4].max(initial=0))
    wanted.update(borders)
    wanted.update({storage: (1, 1, widest) for storage in packer.storages if storage.kind == "sink"})
    buffers, size = _buffers(wanted, problem.itemsize)
    return DriverTables(
        at_once=plan.at_once,
        functions=tuple(packer.functions),
        tiles=packer.tiles.table(),
        nodes=packer.nodes.table(),
        bands=packer.bands.table(),
        works=works,
        operands=packer.operands.table(),
        storages=tuple(packer.storages),
        buffers=buffers,
        scratch=size,
    )


def _in_order(
    problem: Problem, plan: StreamPlan, boxes: Iterable[Box], recorded: Numbers, left: frozenset[str]
) -> Iterator[Tile]:
    """The tiles, each with its neighbours where all follow one another along axis 1 alone."""
    found = list(boxes)
    beside = all(one.with_axis(1, two.lo[1], two.hi[1]) == two for one, two in pairwise(found) if one.ndim == 3)
    follow = beside and all(one.ndim == 3 and one.hi[1] == two.lo[1] for one, two in pairwise(found))
    neighbours: list[Box | None] = [None, *found, None] if follow else [None] * (len(found) + 2)
    for number, box in enumerate(found):
        yield Tile(problem, plan, box, recorded, left, neighbours[number], neighbours[number + 2])


def _parts(tile: Tile) -> Iterator[Part]:
    """The lags and pieces of a tile's nodes; records are nodes, so that they do not cut the bands of the others."""
    for node in tile.plan.nodes:
        yield node.lag, tuple(tile.pieces(node))
        for records in tile.records(node):
            yield node.lag, records


def _together(pieces: Sequence[Piece]) -> Iterator[tuple[int, int, list[Piece]]]:
    """First and last row of each band of pieces that are all present on all of its rows, in order; and the pieces."""
    spans = [(lifted(piece.box.lo, 0)[0], lifted(piece.box.hi, 1)[0]) for piece in pieces]
    edges = sorted({edge for span in spans for edge in span})
    place = {edge: number for number, edge in enumerate(edges)}
    present: list[list[Piece]] = [[] for _ in edges]
    for piece, (low, high) in zip(pieces, spans, strict=True):
        for band in present[place[low] : place[high]]:
            band.append(piece)
    for (low, high), found in zip(pairwise(edges), present, strict=False):
        if found:
            yield low, high, found


def _windows(tile: Tile, column: int, cells: int) -> Windows:
    """For each window the cells of the tile whose values pass through it.

    The boxes start a whole number of cache lines of `cells` before `column`, so that the longest rows lie on lines.
    """
    boxes: dict[int, Box] = {}
    for node in tile.plan.nodes:
        for name, home in node.after.items():
            if home.number >= 0:
                region = tile.region(node, name)
                boxes[home.number] = boxes[home.number].hull(region) if home.number in boxes else region
    return {number: _aligned(box, column, cells) for number, box in boxes.items()}


def _aligned(box: Box, column: int, cells: int) -> Box:
    axis = box.ndim - 1
    lo = box.lo[axis]
    return box if box.empty else box.with_axis(axis, lo - (lo - column) % cells, box.hi[axis])


def _main_column(pieces: Iterable[Iterable[Piece]]) -> int:
    """The column at which the rows of most values begin."""
    values: Counter[int] = Counter()
    for piece in chain.from_iterable(pieces):
        values[piece.box.lo[-1]] += piece.box.size * len(piece.single.accesses)
    return max(values, key=values.__getitem__, default=0)


def lifted(index: Index, rest: int) -> Triple:
    """An index as (stream, y, x), with `rest` along the axes that the grid has not."""
    triple = [rest] * 3
    for axis, value in zip(AXES[len(index)], index, strict=True):
        triple[axis] = value
    return triple[0], triple[1], triple[2]


def _lifted_all(cells: Numbers) -> Table:
    """As `lifted`, of many indices, shape (indices, axes)."""
    triples = np.zeros((len(cells), 3), dtype=np.int64)
    triples[:, AXES[cells.shape[1]]] = cells
    return triples


def _origin(storage: Storage, windows: Windows) -> Triple:
    """The first cell of a storage, in rows of the grid, which a window wraps itself."""
    if storage.kind != "window":
        return 0, 0, 0
    _, line, column = lifted(windows[storage.number].lo, 0)
    return 0, line, column


def _extent(tiles: Sequence[Windows], number: int) -> tuple[int, int]:
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

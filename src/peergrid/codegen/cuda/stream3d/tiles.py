"""The division of a box into the tiles of thread blocks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import ceil

from peergrid.codegen.cuda.blocked.tiles import Tiles, chunks, parted, spans
from peergrid.codegen.cuda.stream3d.core import streamed
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.grid import Box

LINE = 8  # a memory sector of single precision
LEAST_PLANES = 16


def tiles_and_rest(
    rings: Rings, box: Box, slots: int, recorded: Iterable[Box] = (), least: int = LEAST_PLANES
) -> Tiles:
    """The tiles of a box and, as its boundary, the boxes that they leave: layers of other updates, and planes around
    the cells of sources and of receivers to serve. slots: tiles that run at once; least: planes of a tile.
    """
    inside, points = streamed(rings.problem, rings.steps, box, recorded)
    if inside.empty:
        return Tiles((), (box,))
    interior, rest = [], list(box - inside)
    for tile in tiles(rings, inside, slots, least):
        free, left = parted(tile, points, 1, rings.early)
        interior += free
        rest += left
    return Tiles(tuple(interior), tuple(rest))


def tiles(rings: Rings, box: Box, slots: int, least: int = LEAST_PLANES) -> tuple[Box, ...]:
    """Disjoint tiles, those that share cells close to one another; slots: how many run at once."""
    rows, columns = across(rings, box)
    planes = spans(box.lo[0], box.hi[0], pieces(rings, box, len(rows) * len(columns), slots, least))
    return tuple(
        Box((zlo, ylo, xlo), (zhi, yhi, xhi)) for (zlo, zhi), (ylo, yhi), (xlo, xhi) in product(planes, rows, columns)
    )


def least_planes(rings: Rings, box: Box, slots: int) -> int:
    """The fewest planes of a tile: fewer than usual where tiles would be too few for all that run at once."""
    rows, columns = across(rings, box)
    return min(LEAST_PLANES, max(4, ceil(box.shape[0] * len(rows) * len(columns) / slots)))


def first(tiles: Iterable[Box], boxes: Iterable[Box]) -> tuple[tuple[Box, ...], int]:
    """The tiles, those that hold cells of the boxes before the others; and how many these are."""
    wanted, found = tuple(boxes), tuple(tiles)
    early = tuple(tile for tile in found if any(tile.overlaps(box) for box in wanted))
    known = frozenset(early)
    return (*early, *(tile for tile in found if tile not in known)), len(early)


def pieces(rings: Rings, box: Box, count: int, slots: int, least: int = LEAST_PLANES) -> int:
    """In how many pieces a box is cut along axis 0 that is cut into `count` tiles along the others."""
    return chunks(box.shape[0], count, slots, rings.early, 1, least)


def across(rings: Rings, box: Box) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The rows and the columns of tiles."""
    most_rows, most_columns = useful(rings)
    return _cut(box.lo[1], box.hi[1], most_rows, 1), _cut(box.lo[2], box.hi[2], most_columns, _align(rings))


def useful(rings: Rings) -> tuple[int, int]:
    """Rows and columns of a tile that it stores, at most."""
    growth, shape, width = rings.reads.growth, rings.shape, rings.width
    left = -(-growth.below[2] // width) * width
    return shape.rows - growth.below[1] - growth.above[1], (shape.columns - left - growth.above[2]) // _align(
        rings
    ) * _align(rings)


def _align(rings: Rings) -> int:
    """Columns at multiples of which tiles meet: those of a copy where tiles lose columns, else of a memory sector."""
    return rings.width if rings.reads.growth.below[2] or rings.reads.growth.above[2] else LINE


def _cut(lo: int, hi: int, most: int, align: int) -> list[tuple[int, int]]:
    """The fewest spans of at most `most`, of nearly equal length, that meet at multiples of `align`."""
    first = lo // align * align
    units = -(-(hi - first) // align)
    count = -(-units // (most // align))
    return [(max(lo, a), b) for a, b in spans(first, hi, count, align)]

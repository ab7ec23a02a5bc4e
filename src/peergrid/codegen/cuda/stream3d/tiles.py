"""How a box is cut into the tiles of thread blocks."""

from __future__ import annotations

from itertools import product

from peergrid.codegen.cuda.blocked.tiles import chunks, spans
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.grid import Box

LINE = 8  # a memory sector of single precision
LEAST_PLANES = 16


def tiles(rings: Rings, box: Box, slots: int) -> tuple[Box, ...]:
    """Disjoint tiles, those that share cells close to one another; slots: how many run at once."""
    rows, columns = across(rings, box)
    pieces = chunks(box.shape[0], len(rows) * len(columns), slots, rings.early, 1, LEAST_PLANES)
    planes = spans(box.lo[0], box.hi[0], pieces)
    return tuple(
        Box((zlo, ylo, xlo), (zhi, yhi, xhi)) for (zlo, zhi), (ylo, yhi), (xlo, xhi) in product(planes, rows, columns)
    )


def across(rings: Rings, box: Box) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The rows and the columns of tiles."""
    most_rows, most_columns = useful(rings)
    return _cut(box.lo[1], box.hi[1], most_rows, 1), _cut(box.lo[2], box.hi[2], most_columns, _align(rings))


def useful(rings: Rings) -> tuple[int, int]:
    """Rows and columns of a tile that it stores, at most."""
    growth, shape, width = rings.growth, rings.shape, rings.width
    left = -(-growth.below[2] // width) * width
    return shape.rows - growth.below[1] - growth.above[1], (shape.columns - left - growth.above[2]) // _align(
        rings
    ) * _align(rings)


def _align(rings: Rings) -> int:
    """Columns at multiples of which tiles meet: those of a copy where tiles lose columns, else of a memory sector."""
    return rings.width if rings.growth.below[2] or rings.growth.above[2] else LINE


def _cut(lo: int, hi: int, most: int, align: int) -> list[tuple[int, int]]:
    """The fewest spans of at most `most`, of nearly equal length, that meet at multiples of `align`."""
    first = lo // align * align
    units = -(-(hi - first) // align)
    count = -(-units // (most // align))
    return [(max(lo, a), b) for a, b in spans(first, hi, count, align)]

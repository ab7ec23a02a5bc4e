"""The tiles of a pass, and the division of the interior along axis 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from peergrid.codegen.regions import FAR
from peergrid.grid import Box
from peergrid.grid.box import intersect


@dataclass(frozen=True)
class Tiles:
    """Disjoint or agreeing boxes that cover the box of a pass; those of a strip with its number."""

    interior: tuple[Box, ...]
    boundary: tuple[Box, ...]
    layer: tuple[tuple[int, Box], ...] = ()


def chunks(rows: int, strips: int, slots: int, lost: int, align: int, least: int, most: int = FAR) -> int:
    """In how many chunks to cut the rows: the fewest rows, redundant ones included, for the busiest slot.

    least, most: rows of a chunk.
    """

    def busiest(count: int) -> int:
        return ceil(strips * count / slots) * (_round_up(ceil(rows / count), align) + lost)

    fewest = max(1, ceil(rows / most))
    return min(range(fewest, max(fewest, rows // least) + 1), key=busiest)


def parted(tile: Box, points: Iterable[Box], align: int, least: int) -> tuple[list[Box], list[Box]]:
    """The parts of a tile that no point touches, and the rows (planes in 3D) that are left to others: bands from one
    multiple of `align` to another, with at least so many rows between them.
    """
    bands = _bands(tile, intersect(points, tile), align, least)
    ends = [tile.lo[0], *(row for band in bands for row in band), tile.hi[0]]
    inside = [tile.with_axis(0, lo, hi) for lo, hi in zip(ends[::2], ends[1::2], strict=True) if lo < hi]
    return inside, [tile.with_axis(0, lo, hi) for lo, hi in bands]


def _bands(tile: Box, points: Iterable[Box], align: int, least: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for point in sorted(points, key=lambda box: box.lo[0]):
        lo, hi = max(tile.lo[0], point.lo[0] // align * align), min(tile.hi[0], _round_up(point.hi[0], align))
        if found and lo - found[-1][1] < least:
            lo, hi = found[-1][0], max(hi, found.pop()[1])
        found.append((lo, hi))
    return found


def spans(lo: int, hi: int, count: int, align: int = 1) -> Iterator[tuple[int, int]]:
    """The range cut into `count` spans of nearly equal length, at multiples of `align` from its start."""
    units = ceil((hi - lo) / align)
    for k in range(count):
        first, last = lo + units * k // count * align, min(hi, lo + units * (k + 1) // count * align)
        if first < last:
            yield first, last


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple

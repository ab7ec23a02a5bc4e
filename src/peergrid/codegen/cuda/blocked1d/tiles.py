"""The interior tiles and the boundary tiles of a pass over a 1D box."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil

from peergrid.codegen.cuda.blocked.interior import allowed, obstacles
from peergrid.codegen.cuda.blocked.tiles import Tiles, spans
from peergrid.codegen.cuda.blocked1d.shape import ALIGN, Tile1D
from peergrid.grid import Box
from peergrid.grid.box import subtract

WAVES = 4  # ranges that follow one another where one runs: the last of them end together


def tiles(tile: Tile1D, box: Box, slots: int, recorded: Iterable[int] = ()) -> Tiles:
    """The ranges of interior tiles and the boundary tiles that advance `box`; slots: warps that run at once.

    recorded: receivers to serve, which boundary tiles do, some of them on cells that interior tiles make, too.
    """
    inside = box & allowed(tile.problem, tile.shape.steps, box)
    free = subtract((inside,), *obstacles(tile.problem, tile.shape.steps))
    ranges = [part for part in map(_aligned, free) if part.shape[0] >= tile.useful]
    rest = subtract((box,), *ranges)
    boundary = [piece for part in rest for piece in _cut(part, ceil(part.shape[0] / tile.shape.most))]
    heard = tile.problem.receiver_boxes(recorded)
    boundary += dict.fromkeys(cell for cell in heard if not any(piece.covers(cell) for piece in boundary))
    units = sum(ceil(part.shape[0] / tile.useful) for part in ranges)
    share = min(1.0, WAVES * slots / max(1, units))
    interior = [
        piece for part in ranges for piece in _cut(part, ceil(share * ceil(part.shape[0] / tile.useful)), tile.useful)
    ]
    return Tiles(tuple(interior), tuple(boundary))


def _aligned(box: Box) -> Box:
    lo, hi = -(-box.lo[0] // ALIGN) * ALIGN, box.hi[0] // ALIGN * ALIGN
    return Box((lo,), (max(lo, hi),))


def _cut(box: Box, count: int, unit: int = 1) -> Iterator[Box]:
    for lo, hi in spans(box.lo[0], box.hi[0], count, unit):
        yield Box((lo,), (hi,))

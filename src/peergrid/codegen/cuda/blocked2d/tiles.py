"""The tiles of a pass: the cells of the interior kernel, and those of the kernel for edges and confined updates.

The *core* (see `blocked.interior`) is tiled in strips and chunks; the rows of an interior tile that a source or a
receiver touches are handed over. Tiles may overlap: where two compute a cell, both find the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil

from peergrid.codegen.cuda.blocked.interior import allowed, core_of, obstacles
from peergrid.codegen.cuda.blocked.reach import overhead
from peergrid.codegen.cuda.blocked.tiles import Tiles, chunks, parted, spans
from peergrid.codegen.regions import FAR
from peergrid.grid import Box
from peergrid.grid.box import intersect, subtract
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

NEAR = 8  # rows within which receivers share a tile


@dataclass(frozen=True)
class Cut:
    """The layout of tiles: useful columns of an interior tile and the columns it loads beside them; useful columns and
    most rows of a boundary tile; multiples at which interior tiles begin and end, along rows and columns; fewest and
    most rows of an interior tile.
    """

    columns: int
    margin: int
    boundary_columns: int
    boundary_rows: int
    align: tuple[int, int]
    least_rows: int
    most_rows: int = FAR


@dataclass(frozen=True)
class Strip:
    """Cells that a kernel of its own serves, not that of boundary tiles (see `strips`): the axis normal to its side,
    its cells, those of them left to boundary tiles, and the most columns and rows of a tile.
    """

    axis: int
    box: Box
    excluded: tuple[Box, ...]
    columns: int
    rows: int


@remembered(8)
def tiles(
    problem: Problem,
    steps: int,
    box: Box,
    cut: Cut,
    slots: int,
    recorded: tuple[int, ...] = (),
    strips: tuple[Strip, ...] = (),
) -> Tiles:
    """The tiles of advancing `box`; slots: how many interior tiles run at once; recorded: receivers to serve.

    A boundary tile serves a receiver; where a cell has another tile it gets a small one besides. With a norm no cell
    may be summed up twice, and rows with receivers are left to boundary tiles.
    """
    heard = problem.receiver_boxes(recorded)
    summed = cut.align[0] > 1
    interior_cut = replace(cut, boundary_columns=0, boundary_rows=0)
    interior, left = _interior(problem, steps, box, interior_cut, slots, heard if summed else ())
    rest: list[Box] = list(left)
    layer = []
    for number, strip in enumerate(strips):
        inside, rest = _parted(rest, strip, heard if summed else (), cut.align if summed else (1, 1))
        layer += [(number, tile) for part in inside for tile in _pieces(part, strip.rows, strip.columns, cut.align)]
    boundaries = list(boundary_tiles(rest, cut))
    boundaries += _besides([cell for cell in heard if not any(tile.covers(cell) for tile in boundaries)], cut)
    boundary = sorted(boundaries, key=rows_of, reverse=True)  # the long ones begin first
    return Tiles(interior, tuple(boundary), tuple(sorted(layer, key=lambda tile: rows_of(tile[1]), reverse=True)))


def rows_of(tile: Box) -> int:
    """The rows of a tile."""
    return tile.hi[0] - tile.lo[0]


@remembered(8)
def _interior(
    problem: Problem, steps: int, box: Box, cut: Cut, slots: int, closed: tuple[Box, ...]
) -> tuple[tuple[Box, ...], tuple[Box, ...]]:
    """The interior tiles, and the boxes that are left; closed: cells that no interior tile may touch."""
    core, points = _core(problem, steps, box, cut.margin, closed)
    core, lost = _aligned(core, cut), overhead(problem, steps)
    interior, rest = [], list(box - core)
    for strips in _strips(core, cut, slots, lost):
        whole = strips[0].hull(strips[-1])
        near = [point for point in points if whole.overlaps(point)]
        for tile in strips:
            inside, left = parted(tile, near, cut.align[0], lost) if near else ([tile], [])
            interior += inside
            rest += left
    return tuple(interior), tuple(rest)


def grid_core(problem: Problem, steps: int, cut: Cut) -> Box:
    """The core of a whole grid, with its interior tiles; empty if there are none."""
    return _aligned(_core(problem, steps, problem.grid.box, cut.margin)[0], cut)


@remembered()
def _core(
    problem: Problem, steps: int, box: Box, margin: int, closed: tuple[Box, ...] = ()
) -> tuple[Box, tuple[Box, ...]]:
    """The core of a box for any tiles, and the boxes in it that none may touch; margin: columns loaded beside one."""
    core, points = core_of(box & allowed(problem, steps, box, margin), [*obstacles(problem, steps), *closed])
    return core, tuple(points)


def _aligned(core: Box, cut: Cut) -> Box:
    """The part of a core that interior tiles can cover; empty where that is narrower than they are."""
    lo = tuple(-(-a // n) * n for a, n in zip(core.lo, cut.align, strict=True))
    hi = tuple(b // n * n for b, n in zip(core.hi, cut.align, strict=True))
    return Box(lo, hi if hi[1] - lo[1] >= cut.columns else lo)


def _strips(core: Box, cut: Cut, slots: int, lost: int) -> Iterator[list[Box]]:
    """Strips of the core, chunk by chunk; the last strip of a chunk may overlap the one before it."""
    if core.empty:
        return
    strips = ceil(core.shape[1] / cut.columns)
    count = chunks(core.shape[0], strips, slots, lost, cut.align[0], cut.least_rows, cut.most_rows)
    lefts = [min(core.lo[1] + strip * cut.columns, core.hi[1] - cut.columns) for strip in range(strips)]
    for lo, hi in spans(core.lo[0], core.hi[0], count, cut.align[0]):
        yield [Box((lo, left), (hi, left + cut.columns)) for left in lefts]


def _besides(cells: Iterable[Box], cut: Cut) -> Iterable[Box]:
    """Small tiles that hold the cells, those of a few rows and columns in one."""
    found: dict[tuple[int, int], Box] = {}
    for cell in cells:
        place = cell.lo[0] // NEAR, cell.lo[1] // cut.boundary_columns
        found[place] = found.get(place, cell).hull(cell)
    return found.values()


def _parted(
    boxes: Iterable[Box], strip: Strip, heard: Iterable[Box], align: tuple[int, int]
) -> tuple[list[Box], list[Box]]:
    """The parts of the boxes in a strip, and the rest; excluded boxes in the strip, and receivers there, exclude its
    whole breadth, from one multiple of `align` to another.
    """
    inside, rest = list[Box](), list[Box]()
    along = 1 - strip.axis
    unit = align[along]
    excluded = (*strip.excluded, *(cell for cell in heard if cell.overlaps(strip.box)))
    broad = [
        strip.box.with_axis(along, bar.lo[along] // unit * unit, ceil(bar.hi[along] / unit) * unit) for bar in excluded
    ]
    for box in boxes:
        parts = intersect((box,), strip.box)
        rest += box - strip.box
        for bar in broad:
            rest += intersect(parts, bar)
            parts = subtract(parts, bar)
        inside += parts
    return inside, rest


def _pieces(box: Box, rows: int, columns: int, align: tuple[int, int]) -> Iterator[Box]:
    """The box cut into tiles of at most so many rows and columns."""
    for lo, hi in spans(box.lo[0], box.hi[0], ceil(box.shape[0] / rows), align[0]):
        for left in range(box.lo[1] // align[1] * align[1], box.hi[1], columns):
            yield Box((lo, max(left, box.lo[1])), (hi, min(left + columns, box.hi[1])))


def boundary_tiles(boxes: Iterable[Box], cut: Cut) -> Iterator[Box]:
    """The boxes cut into boundary tiles."""
    for box in boxes:
        yield from _pieces(box, cut.boundary_rows, cut.boundary_columns, (cut.align[0], 1))

"""The tiles of a pass over a 3D box: which cells the plain kernel advances, and which the one that knows everything.

Plain tiles may lie at the edges of the grid; layers that confined updates reach are cut off the box (see
`blocked.plain`), and of a plain tile that a source or a receiver touches the planes around it are handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from peergrid.codegen.cuda.blocked.plain import core_of
from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.codegen.cuda.blocked.tiles import Tiles, bands, chunks, overhead, spans
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.walls import core
from peergrid.grid import Box
from peergrid.stencil import Problem

LINE = 8  # columns at multiples of which tiles meet: a memory sector of single precision
Span = tuple[int, int]


def tiles3d(
    problem: Problem,
    shape: Shape3D,
    box: Box,
    slots: int,
    recorded: Iterable[int] = (),
    edge: tuple[int, int, int] | None = (64, 16, 16),
    least_planes: int = 16,
) -> Tiles:
    """The tiles of advancing `box`.

    slots: plain tiles that run at once; recorded: receivers to serve; edge: most planes, rows and columns of an edge
    tile (None: what is not plain stays in few boxes); least_planes: fewest of a plain one.
    """
    allowed, barred = core(problem, shape.steps)
    inside, points = core_of(box & allowed, [*barred, *(Box.cell(problem.receivers[k].cell) for k in recorded)])
    if inside.empty:
        return Tiles((), (box,) if edge is None else tuple(_edges([box], edge)))
    lost = overhead(problem, shape.steps)
    plain, rest = [], list(box - inside)
    for tile in _plain(problem, shape, inside, slots, lost, least_planes):
        cut = bands(tile, [tile & point for point in points if tile.overlaps(point)], 1, lost)
        rest += [tile.with_axis(0, lo, hi) for lo, hi in cut]
        ends = [tile.lo[0], *(plane for band in cut for plane in band), tile.hi[0]]
        plain += [tile.with_axis(0, lo, hi) for lo, hi in zip(ends[::2], ends[1::2], strict=True) if lo < hi]
    if edge is None:
        return Tiles(tuple(plain), tuple(rest))
    return Tiles(tuple(plain), tuple(sorted(_edges(rest, edge), key=lambda tile: -tile.shape[0])))


def _plain(problem: Problem, shape: Shape3D, inside: Box, slots: int, lost: int, least_planes: int) -> Iterator[Box]:
    """Chunk by chunk, so that tiles which share cells run at about the same time."""
    rows, columns = across(problem, shape, inside)
    count = chunks(inside.shape[0], len(rows) * len(columns), slots, lost, 1, least_planes)
    for (zlo, zhi), (ylo, yhi), (xlo, xhi) in product(spans(inside.lo[0], inside.hi[0], count), rows, columns):
        yield Box((zlo, ylo, xlo), (zhi, yhi, xhi))


def across(problem: Problem, shape: Shape3D, inside: Box) -> tuple[list[Span], list[Span]]:
    """The rows and the columns of tiles over a box."""
    growth, grid = reach(problem, shape.steps), problem.grid

    def fits(axis: int, most: int, align: int) -> Callable[[Span], bool]:
        def test(span: Span) -> bool:
            lo, hi = span[0] - growth.below[axis], span[1] + growth.above[axis]
            if not grid.periodic[axis]:
                lo, hi = max(lo, 0), min(hi, grid.shape[axis])
            return hi - lo // align * align <= most

        return test

    rows = _laid(inside.lo[1], inside.hi[1], 1, shape.height, fits(1, shape.height, 1))
    return rows, _laid(
        inside.lo[2], inside.hi[2], LINE, shape.width, fits(2, shape.width, shape.align(problem.itemsize))
    )


def _laid(lo: int, hi: int, align: int, most: int, fits: Callable[[Span], bool]) -> list[Span]:
    """The fewest spans, of nearly equal length where these fit: tiles that cost the same stay side by side, and what
    they share in the cache.
    """
    full = _full(lo, hi, align, most, fits)
    first = lo // align * align
    even = [(max(lo, a), min(hi, b)) for a, b in spans(first, -(-hi // align) * align, len(full), align)]
    return even if len(even) == len(full) and all(map(fits, even)) else full


def _full(lo: int, hi: int, align: int, most: int, fits: Callable[[Span], bool]) -> list[Span]:
    """Spans as long as fit, at most `most`, meeting at multiples of `align`.

    Raises ValueError where not even the shortest fit.
    """
    found = list[Span]()
    while lo < hi:
        if fits((lo, hi)):
            return [*found, (lo, hi)]
        ends = range(lo // align * align + align, hi, align)
        longest = next((end for end in reversed(ends[: 1 + most // align]) if fits((lo, end))), None)
        if longest is None:
            raise ValueError(f"No tile is wide enough for the cells from {lo} on and what they read.")
        found.append((lo, longest))
        lo = longest
    return found


def _edges(boxes: Iterable[Box], most: Sequence[int]) -> Iterator[Box]:
    """The boxes cut into edge tiles."""
    for box in boxes:
        cuts = [spans(lo, hi, -(-(hi - lo) // n)) for lo, hi, n in zip(box.lo, box.hi, most, strict=True)]
        for (zlo, zhi), (ylo, yhi), (xlo, xhi) in product(*map(list, cuts)):
            yield Box((zlo, ylo, xlo), (zhi, yhi, xhi))

"""Tiles whose values in flight stay in a core's own cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import ceil, prod

from peergrid.codegen.cpu.plan import StreamPlan, source_rows, stream_plan
from peergrid.grid import Box, Index
from peergrid.stencil import Growth, Problem, footprint, write_box

SHARE = 0.75  # of the cache; the rest is for rows of the slots, tables and whatever else runs
SHARE_3D = 0.5  # the same of 3D tiles, of which larger ones lose little by little: planes come from the next level
SHARE_OF_MANY = 0.75  # the same where many values are in flight: every cache line is prefetched (see `prefetch`)
MANY = 48  # values in flight for each cell of a tile's cross-section
BEYOND = 0.25  # additional time for each time that the share is exceeded
MOST_BEYOND = 3  # times
NEXT = 8  # times as much a core has of the cache behind: beyond that share more time is added in the same way
LARGE = 32  # second-level caches: of a pass that moves more, nothing is left in the last level for the next
NARROWEST = 64  # cells along the last axis: below, a row function's start costs more than its cells
SHORTEST = 256  # the same in 3D, where the lines of a tile should follow one another in memory to be fetched ahead
ROW_START = 200  # cells in whose time a row begins: its pointers, its first loads, which no prefetcher foresees


@dataclass(frozen=True)
class Weight:
    """Bytes in flight for each cell of a tile's cross-section, and the cells added around it along each plane axis.

    margins: of what is read; computed: of what the nodes compute, on average; share: of the cache that a 3D tile takes.
    """

    bytes_per_cell: int
    margins: Index
    computed: tuple[float, ...]
    share: float = SHARE_3D


def tiled_plan(
    problem: Problem, cache_bytes: int, box: Box, steps: int, *, rotate: bool = False, second: int | None = None
) -> tuple[StreamPlan, tuple[Box, ...]]:
    """The plan of a pass over a box, and tiles for a cache of that size.

    second: bytes of the second level, where tiles are cut for more.
    """
    past_cache = _traffic(problem, box) > LARGE * (second or cache_bytes)
    plan = stream_plan(problem, steps, past_cache, rotate)
    return plan, tiles(problem, plan, box, cache_bytes)


def _traffic(problem: Problem, box: Box) -> int:
    """Bytes that a pass over a box has to read and to write."""
    cells = {name: write_box(problem, name, box).size for name, field in problem.fields.items() if field.full}
    return problem.itemsize * sum(n * (2 if name in problem.state else 1) for name, n in cells.items())


def weigh(problem: Problem, plan: StreamPlan) -> Weight:
    """The memory of a tile of a plan; confined fields count only if they span most of the grid."""
    inputs = footprint(problem, plan.steps).inputs
    growth = reduce(Growth.__or__, (inputs[name] for name in problem.state))
    margins = tuple(a + b for a, b in zip(growth.below, growth.above, strict=True))
    streamed = [problem.fields[name] for name in problem.coefficients if problem.fields[name].full]
    lag = max((node.lag for node in plan.nodes), default=0)
    read = source_rows(problem, plan)
    rows = sum(_rows(problem, plan)) + len(streamed) * (lag + 1)
    rows += sum(max(2, read.get(name, 0)) for name in problem.state if _large(problem, name))
    first = 1 if problem.grid.ndim > 1 else 0
    share = SHARE_OF_MANY if rows > MANY else SHARE_3D
    return Weight(rows * problem.itemsize, margins[first:], _computed(problem, plan)[first:], share)


def _computed(problem: Problem, plan: StreamPlan) -> tuple[float, ...]:
    """The cells added around a tile along each axis, on average over the nodes."""
    targets = footprint(problem, plan.steps).targets
    grown = [reduce(Growth.__or__, targets[node.step][node.stage].values()) for node in plan.nodes]
    return tuple(sum(one.below[a] + one.above[a] for one in grown) / len(grown) for a in range(problem.grid.ndim))


def tiles(problem: Problem, plan: StreamPlan, box: Box, cache_bytes: int) -> tuple[Box, ...]:
    """The box cut across the stream into tiles that fit, with as few redundant cells as may be."""
    weight = weigh(problem, plan)
    axes = tuple(range(1, box.ndim)) or (0,)
    extents = tuple(box.shape[axis] for axis in axes)
    parts = min(_splits(extents), key=lambda counts: _cost(extents, counts, weight, cache_bytes))
    return tuple(_cut(box, axes, parts))


def _rows(problem: Problem, plan: StreamPlan) -> Iterator[int]:
    """The rows of every window that most rows of the tile pass through."""
    names = {home.number: name for node in plan.nodes for name, home in node.after.items() if home.kind == "window"}
    return (plan.depths[number] for number, name in names.items() if _large(problem, name))


def _large(problem: Problem, name: str) -> bool:
    """True where a field spans most of the grid."""
    return 2 * problem.fields[name].box.size > problem.grid.box.size


def _splits(extents: Index) -> Iterator[Index]:
    """Numbers of parts along each axis, none narrower than worth while."""
    narrowest = (8, SHORTEST) if len(extents) == 2 else (NARROWEST,)
    return product(*(_counts(extent, least) for extent, least in zip(extents, narrowest, strict=True)))


def _counts(extent: int, least: int) -> list[int]:
    most = max(1, extent // least)
    return sorted({min(most, ceil(most / k)) for k in range(1, most + 1)} | set(range(1, min(most, 32) + 1)))


def _cost(extents: Index, counts: Index, weight: Weight, cache_bytes: int) -> tuple[float, int]:
    """Cells computed for each cell wanted, more where a tile does not fit; then the number of tiles.

    Short rows cost more in one and two dimensions: each begins with as much work as `ROW_START` cells are. A tile that
    does not fit costs thrice as much there.
    """
    sizes = tuple(ceil(extent / count) for extent, count in zip(extents, counts, strict=True))
    if len(extents) == 2:
        around = [m if count > 1 else 0.0 for m, count in zip(weight.computed, counts, strict=True)]
        redundant = prod((s + m) / s for s, m in zip(sizes, around, strict=True))
        averages = [m / 2 if count > 1 else 0.0 for m, count in zip(weight.margins, counts, strict=True)]
        taken = prod(s + m for s, m in zip(sizes, averages, strict=True)) * weight.bytes_per_cell
        filled = taken / (weight.share * cache_bytes)
        return redundant * (1 + _beyond(filled) + _beyond(filled / NEXT)), prod(counts)
    grown = tuple(size + margin for size, margin in zip(sizes, weight.margins, strict=True))
    redundancy = prod(g / s for g, s in zip(grown, sizes, strict=True)) * (1 + ROW_START / grown[-1])
    fits = prod(grown) * weight.bytes_per_cell <= SHARE * cache_bytes
    return redundancy * (1 if fits else 3), prod(counts)


def _beyond(filled: float) -> float:
    """The additional time for values that take so many times what a cache has for them."""
    return BEYOND * min(MOST_BEYOND, max(0.0, filled - 1))


def _cut(box: Box, axes: tuple[int, ...], counts: Index) -> Iterator[Box]:
    for place in product(*(range(count) for count in counts)):
        tile = box
        for axis, at, count in zip(axes, place, counts, strict=True):
            extent = box.shape[axis]
            tile = tile.with_axis(axis, box.lo[axis] + at * extent // count, box.lo[axis] + (at + 1) * extent // count)
        yield tile

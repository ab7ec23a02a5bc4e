"""Which kernel makes many passes on devices: told from the problem and what the GPUs are, before anything is compiled.

A pass lasts as long as the block that has the most to do. Blocks take edge tiles first, then plain ones, which are as
short as the blocks left over have room for: low edge tiles are soon done, but take many blocks. `MIXED_ROWS` are tried
by counting, in rows of a plain tile. Measured on H200s, 8 steps of Jacobi and 4 or 8 of waves, 512 to 4096 rows of 4096
cells: a row of a plain tile takes 0.34 to 0.5 µs, one of an edge tile 0.4 to 0.9 of that; what is counted best is the
fastest of all, or within 6 % of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from peergrid.codegen.cuda.blocked.shared import RESERVED, multiprocessor
from peergrid.codegen.cuda.blocked.tiles import overhead
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.choose.shape2d import registers
from peergrid.codegen.cuda.linked.persistent import PersistentKernel
from peergrid.grid import Box

ALONE_ROWS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 32)  # of tiles on the smallest grids, where all are edge tiles
MIXED_ROWS, MIXED_WARPS = (16, 24, 32, 48, 64, 96, 128), (8, 4)  # of edge tiles beside plain ones; of blocks
LEAST_COLUMNS, LEAST_ROWS = 16, 16  # of an edge tile; of a plain one
EDGE_ROW = 0.6  # what a row of an edge tile costs, in rows of a plain one
REGISTERS = 1 << 16  # of a multiprocessor
BESIDE = 24  # registers of a lane beside those that the rows of a plain tile take
SQUEEZED, TWICE = 144, 128  # up to so many registers, compilers rather spill some than take more than half of them


def suited(
    made: PassKernel, boxes: Sequence[Box], most: int, multiprocessors: Sequence[int]
) -> PersistentKernel | None:
    """The kernel with the shortest tiles of which each block takes one; else one with plain tiles, too.

    boxes: what each device owns; most: bytes of shared memory that a block can have; multiprocessors: of each device.
    """
    if PersistentKernel(made, plain=False, room=most).block.columns < LEAST_COLUMNS:
        return None
    for kernel in _fitting(PersistentKernel(made, plain=False, room=most), ALONE_ROWS):
        tiles = (_count(box, kernel.rows, kernel.block.columns) for box in boxes)
        if all(count <= n for count, n in zip(tiles, multiprocessors, strict=True)):
            return kernel
    narrow = replace(made, shape=replace(made.shape, columns=2), least_rows=LEAST_ROWS)
    short = narrow if narrow.cut.columns >= LEAST_COLUMNS else replace(made, least_rows=LEAST_ROWS)
    for warps in MIXED_WARPS:
        found = list(_fitting(PersistentKernel(short, warps=warps, room=most), MIXED_ROWS))
        if found:
            return min(found, key=lambda kernel: _longest(kernel, boxes, multiprocessors))
    return None


def _fitting(kernel: PersistentKernel, choices: Sequence[int]) -> Iterator[PersistentKernel]:
    """The kernel with so many rows of an edge tile, as long as a block can have the shared memory."""
    for rows in choices:
        made = replace(kernel, rows=rows)
        if made.program.shared_bytes > kernel.room:
            return
        yield made


def _longest(kernel: PersistentKernel, boxes: Sequence[Box], multiprocessors: Sequence[int]) -> float:
    """Rows of plain tiles that the busiest block of all devices takes as long as."""
    each, last = _blocks(kernel), len(boxes) - 1
    places = (
        (box.shape, count, at in (0, last) and at)
        for at, (box, count) in enumerate(zip(boxes, multiprocessors, strict=True))
    )
    alike = dict(zip(places, boxes, strict=True))  # between the ends, boxes of one shape have as many tiles
    return max(_busiest(kernel, box, max(1, each * count)) for (_, count, _), box in alike.items())


def _busiest(kernel: PersistentKernel, box: Box, blocks: int) -> float:
    """The same of one device with so many blocks; block `b` takes units `b`, `b + blocks` and so on, edges first."""
    plain, edge, _ = kernel.tables(box, blocks)
    beside = overhead(kernel.made.problem, kernel.made.steps)
    edge_cost = EDGE_ROW * (kernel.rows + beside)
    plain_cost = beside + max((hi - lo for lo, hi in zip(plain["lo"][:, 0], plain["hi"][:, 0], strict=True)), default=0)
    units = kernel.units(plain, edge)
    return max(
        edges * edge_cost + (ceil((units - b) / blocks) - edges) * plain_cost
        for b in range(min(blocks, units))
        for edges in [max(0, ceil((len(edge) - b) / blocks))]
    )


def _blocks(kernel: PersistentKernel) -> int:
    """How many blocks a multiprocessor runs at once, as compilers are used to leave registers."""
    made = kernel.made
    taken = registers(made.problem, made.steps, made.shape.columns) + BESIDE
    taken = min(taken, TWICE) if taken <= SQUEEZED else taken
    within = multiprocessor(kernel.room) // (kernel.program.shared_bytes + RESERVED)
    return max(1, min(within, REGISTERS // (kernel.threads * -(-taken // 8) * 8)))


def _count(box: Box, rows: int, columns: int) -> int:
    """How many tiles cover a box."""
    return -(-box.shape[0] // rows) * -(-box.shape[1] // columns)

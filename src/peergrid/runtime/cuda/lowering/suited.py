"""Which kernel makes many passes on devices: shapes are tried until one has the room that its blocks need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from peergrid.codegen.cuda.blocked.shared import RESERVED, multiprocessor
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.choose.shape2d import registers
from peergrid.codegen.cuda.linked.persistent import PersistentKernel
from peergrid.grid import Box

ALONE_ROWS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 32)  # of tiles on the smallest grids, where all are edge tiles
MIXED_ROWS, MIXED_WARPS = (16, 32), (8, 4)  # of edge tiles beside plain ones; of blocks
MOST_EDGES = 0.4  # of the blocks that run at once, beside plain tiles
LEAST_COLUMNS, LEAST_ROWS = 16, 16  # of an edge tile; of a plain one
CROWD = 24  # warps for which kernels with plain tiles leave room on a multiprocessor, where few registers are missing
CROWDED = range(57, 69)  # registers that the rows of a lane take, for which compilers leave no such room by themselves
FEW, MANY = 64, 1024  # multiprocessors that most GPUs have, and more than any has

Room = Callable[[PersistentKernel], Sequence[int]]
"""How many blocks of a kernel each device runs at once."""


def suited(made: PassKernel, boxes: Sequence[Box], most: int, room: Room) -> PersistentKernel | None:
    """The kernel with the shortest tiles of which each block takes one; else one with plain tiles, too.

    boxes: what each device owns; most: bytes of shared memory that a block can have.
    """
    alone = PersistentKernel(made, plain=False, room=most)
    if alone.block.columns < LEAST_COLUMNS:
        return None
    tall = _tallest(alone, ALONE_ROWS)
    if tall is not None and _tiles(tall, boxes) < MANY:
        found = room(tall)
        for rows in (rows for rows in ALONE_ROWS if rows <= tall.rows):
            if all(_count(box, rows, alone.block.columns) <= n for box, n in zip(boxes, found, strict=True)):
                return replace(alone, rows=rows)
    for kernel in _mixed(made, most):
        if all(found := room(kernel)):
            low = replace(kernel, rows=MIXED_ROWS[0])
            few = len(low.tables(boxes[0], found[0])[1]) <= MOST_EDGES * found[0]
            return low if few else kernel
    return None


def likely(made: PassKernel, boxes: Sequence[Box], most: int) -> Iterator[PersistentKernel]:
    """The kernels that are tried or found on most devices."""
    alone = PersistentKernel(made, plain=False, room=most)
    if alone.block.columns < LEAST_COLUMNS:
        return
    tall = _tallest(alone, ALONE_ROWS)
    tiles = MANY if tall is None else _tiles(tall, boxes)
    if tall is not None and tiles < MANY:
        yield tall
    if tiles > FEW:
        for kernel in islice(_mixed(made, most), 1):
            yield from (kernel, replace(kernel, rows=MIXED_ROWS[0]))


def _mixed(made: PassKernel, most: int) -> Iterator[PersistentKernel]:
    """Kernels with plain tiles whose blocks fit, those of more warps first."""
    narrow = replace(made, shape=replace(made.shape, columns=2), least_rows=LEAST_ROWS)
    short = narrow if narrow.cut.columns >= LEAST_COLUMNS else replace(made, least_rows=LEAST_ROWS)
    crowded = registers(made.problem, made.steps, short.shape.columns) in CROWDED
    for warps in MIXED_WARPS:
        kernel = _tallest(PersistentKernel(short, warps=warps, room=most), MIXED_ROWS)
        if kernel is None:
            continue
        blocks = CROWD // warps
        fits = blocks * (kernel.program.shared_bytes + RESERVED) <= multiprocessor(most)
        yield replace(kernel, blocks=blocks) if crowded and fits else kernel


def _tallest(kernel: PersistentKernel, choices: Sequence[int]) -> PersistentKernel | None:
    """The kernel with the most of these rows of an edge tile for which a block can have the shared memory."""
    found = (replace(kernel, rows=rows) for rows in reversed(choices))
    return next((made for made in found if made.program.shared_bytes <= kernel.room), None)


def _tiles(kernel: PersistentKernel, boxes: Sequence[Box]) -> int:
    """How many tiles cover the largest box."""
    return max(_count(box, kernel.rows, kernel.block.columns) for box in boxes)


def _count(box: Box, rows: int, columns: int) -> int:
    """How many tiles cover a box."""
    return -(-box.shape[0] // rows) * -(-box.shape[1] // columns)

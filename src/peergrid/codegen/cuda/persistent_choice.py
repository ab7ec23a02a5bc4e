"""The choice of the kernel that makes many passes, from the problem and the GPUs, before anything is compiled.

A pass lasts as long as the block that has the most to do. Blocks take boundary tiles first, then interior ones, which
are as short as the blocks left over have room for: low boundary tiles are soon done, but take many blocks. So the
heights `GpuModel.persistent_rows` are compared by counting, in rows of an interior tile. On H200s
(`benchmarks/cuda/edge_rows.py`) a row of an interior tile takes 0.34 to 0.5 µs, one of a boundary tile 0.4 to 0.9 of
that, with absorbers 4 to 6 times as long (before profiles lay in shared memory).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from peergrid.codegen.cuda.blocked.interior import obstacles
from peergrid.codegen.cuda.blocked.levels import levels
from peergrid.codegen.cuda.blocked.reach import overhead
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.tiles import rows_of
from peergrid.codegen.cuda.choose.shape2d import pass_kernel, registers
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.costs.families import FAMILIES
from peergrid.costs.machine import Machine
from peergrid.grid import Box
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

ALONE_ROWS = (4, 6, 8, 10, 12, 14, 16, 20, 24, 32)  # of tiles on the smallest grids, where all are boundary tiles
LEAST_COLUMNS, LEAST_ROWS = 16, 16  # of a boundary tile; of an interior one
BOUNDARY_ROW = 0.6  # what a row of a boundary tile costs, in rows of an interior one
ABSORBING_ROW = 5.0  # the same where stages differ from place to place, as absorbers make them
TOGETHER = 0.1  # what the work of all blocks counts beside that of the busiest
BESIDE = 24  # registers of a lane beside those that the rows of an interior tile take
SQUEEZED, TWICE = 144, 128  # a lane that needs up to 144 registers gets 128, room for two blocks of eight warps:
# compilers rather spill the others


@remembered()
def persistent_kernel(
    problem: Problem, steps: int, boxes: tuple[Box, ...], gpu: GpuModel, multiprocessors: tuple[int, ...]
) -> PersistentKernel | None:
    """The kernel with the shortest tiles of which each block takes one; else one with interior tiles, too.

    steps: of a pass; boxes: what each device owns; gpu: the model of the GPU; multiprocessors: of each device,
    which may have a part of a GPU.
    """
    made = pass_kernel(problem, steps, least=1, gpu=gpu)
    if made is None:
        return None
    alone = PersistentKernel(made, interior=False, gpu=gpu)
    if alone.block.columns < LEAST_COLUMNS:
        return None
    for kernel in _within_shared(alone, ALONE_ROWS):
        tiles = (_count(box, kernel.rows, kernel.block.columns) for box in boxes)
        if all(count <= n for count, n in zip(tiles, multiprocessors, strict=True)):
            return kernel
    narrow = replace(made, shape=replace(made.shape, columns=2), least_rows=LEAST_ROWS)
    short = narrow if narrow.cut.columns >= LEAST_COLUMNS else replace(made, least_rows=LEAST_ROWS)
    works = tuple(_different(made, boxes, multiprocessors))
    for warps in gpu.persistent_warps:
        found = list(_within_shared(PersistentKernel(short, warps=warps, gpu=gpu), gpu.persistent_rows))
        if found:
            return min(found, key=lambda kernel: _cost(kernel, works))
    return None


def saves_launches(problem: Problem, steps: int, cells: int, machine: Machine) -> bool:
    """True where a pass over so many cells of a device may lose less by its blocks, which have fewer loads under way
    than those of a kernel of its own, than a launch takes.
    """
    plan = levels(problem, steps)
    moved = cells * plan.moved * problem.itemsize / machine.bandwidth
    lost = moved / FAMILIES["persistent with interior tiles"].memory - moved / FAMILIES["interior 2D"].memory
    return lost <= machine.calls.launch + machine.delays.arrival + machine.delays.start


def _within_shared(kernel: PersistentKernel, choices: Sequence[int]) -> Iterator[PersistentKernel]:
    """The kernel with so many rows of a boundary tile, as long as a block can have the shared memory."""
    for rows in choices:
        made = replace(kernel, rows=rows)
        if made.shared_bytes > kernel.gpu.block_shared:
            return
        yield made


def _cost(kernel: PersistentKernel, works: Sequence[tuple[Box, int]]) -> float:
    """The cost of a pass for the slowest device, in rows of interior tiles; works: each box with its
    multiprocessors.
    """
    each = resident(kernel)
    return max(_cost_of(kernel, box, max(1, each * count)) for box, count in works)


def _different(made: PassKernel, boxes: Sequence[Box], multiprocessors: Sequence[int]) -> Iterable[tuple[Box, int]]:
    """One of all boxes that have the same tiles for as many multiprocessors: as large, with the same ends of the grid
    and the same obstacles to interior tiles.
    """
    excluded, last = obstacles(made.problem, made.steps), len(boxes) - 1
    found: dict[object, tuple[Box, int]] = {}
    for at, (box, count) in enumerate(zip(boxes, multiprocessors, strict=True)):
        here = tuple((bar & box).shift(tuple(-lo for lo in box.lo)) for bar in excluded if bar.overlaps(box))
        found.setdefault((box.shape, count, at == 0, at == last, here), (box, count))
    return found.values()


def _cost_of(kernel: PersistentKernel, box: Box, blocks: int) -> float:
    """The same of one device with so many blocks; block `b` takes units `b`, `b + blocks` and so on, edges first."""
    made, tiles = kernel.made, kernel.tiles(box, blocks)
    beside = overhead(made.problem, made.steps)
    interior_cost = beside + max(map(rows_of, tiles.interior), default=0)
    boundary_cost = _boundary_row(made.problem) * (kernel.rows + beside)
    boundaries, units = len(tiles.boundary), kernel.units(tiles.interior, tiles.boundary)
    busiest = max(
        _units_of(boundaries, b, blocks) * (boundary_cost - interior_cost) + _units_of(units, b, blocks) * interior_cost
        for b in range(min(blocks, units))
    )
    return busiest + TOGETHER * (boundaries * boundary_cost + (units - boundaries) * interior_cost) / blocks


def _boundary_row(problem: Problem) -> float:
    return ABSORBING_ROW if any(len(stage.updates) > 1 for stage in problem.stages) else BOUNDARY_ROW


def _units_of(units: int, block: int, blocks: int) -> int:
    """The number of units of a block, of so many."""
    return -(-max(0, units - block) // blocks)


def resident(kernel: PersistentKernel) -> int:
    """For how many blocks a multiprocessor has room, as compilers are used to leave registers."""
    made = kernel.made
    taken = registers(made.problem, made.steps, made.shape.columns) + BESIDE
    taken = min(taken, TWICE) if taken <= SQUEEZED else taken
    within = kernel.gpu.blocks_by_shared(kernel.shared_bytes)
    return max(1, min(within, kernel.gpu.registers // (kernel.threads * -(-taken // 8) * 8)))


def _count(box: Box, rows: int, columns: int) -> int:
    """The number of tiles that cover a box."""
    return -(-box.shape[0] // rows) * -(-box.shape[1] // columns)

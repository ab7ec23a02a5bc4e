"""A pass of several steps as what an executor needs to launch it: texts, entries, tiles, threads, shared memory.

A pass is up to three launches over complementary tiles, in any order and at the same time if there is room: the
interior tiles (`stream`), those of the strips along the grid's sides (`strips`) and the boundary tiles (`boundary`).
Each takes `Arguments` with `regions` and `count` of its own; `lo` and `hi` are the box of the pass. The cell (i, j)
with j a multiple of 4 has to lie at a multiple of 16 bytes (`pitch` too).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from peergrid.codegen.cuda.blocked.kernel import HELPERS, program
from peergrid.codegen.cuda.blocked.reach import overhead
from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked2d.boundary.kernel import Boundary2D
from peergrid.codegen.cuda.blocked2d.boundary.rings import MOST_ROWS
from peergrid.codegen.cuda.blocked2d.shape import Shape, margin
from peergrid.codegen.cuda.blocked2d.stream import StreamPlan2D
from peergrid.codegen.cuda.blocked2d.strips.kernel import (
    USUAL,
    StripKernel2D,
    displaced,
    layers,
    left,
    tiles_in_block,
)
from peergrid.codegen.cuda.blocked2d.tiles import Cut, Strip, rows_of, tiles
from peergrid.codegen.cuda.common.arguments import Arguments, prelude
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.skeletons import include
from peergrid.codegen.norm import NORM_COLUMNS, NORM_LEAVES, NORM_ROWS
from peergrid.codegen.regions import FAR
from peergrid.grid import Box
from peergrid.stencil import Problem

ROWS = (8, 16, 32, 64)  # of tiles that are made shorter
SHORT = 4  # rows of a boundary tile in passes of one step, where there is room
STRIP_ROW = 0.4  # of the time of an interior tile's row, that of a strip's


@dataclass(frozen=True)
class PassKernel(TiledKernel):
    """The kernels by which `shape.steps` steps of a 2D problem are made in one pass.

    norm: a field the norm of whose change is summed up for every step (see `common.norm`); then all kernels take
    `Norms` after `Arguments`, and so does `norm_sum`, which is launched after them on (bands, steps) blocks.
    boundary_rows, layer_rows, least_rows, most_rows: most rows of a boundary tile and of one in a strip, fewest and
    most of an interior one; short tiles cost more and are done sooner; boundary_ahead: rows that a boundary tile loads
    ahead; has_strips: whether strips have their kernel; beside: registers of a thread that interior tiles leave to it
    (see `strips.kernel.left`); tiles_per_block: its tiles in a block; displaced: interior tiles whose room such a block
    takes.
    """

    problem: Problem
    shape: Shape
    boundary_width: int = 64
    norm: str | None = None
    boundary_rows: int = 64
    least_rows: int = 32
    boundary_ahead: int = 3
    layer_rows: int = 64
    has_strips: bool = True
    most_rows: int = FAR
    beside: int = USUAL
    tiles_per_block: int = 1
    displaced: int = 0

    pointers = True  # of interior tiles

    @property
    def steps(self) -> int:
        return self.shape.steps

    def around(self, registers: int) -> PassKernel:
        """The kernel where interior tiles take so many registers: those of strips as these leave room for them."""
        room = displaced(registers, self.shape.warps)
        return replace(self, beside=left(registers), tiles_per_block=tiles_in_block(registers), displaced=room)

    @cached_property
    def stream(self) -> StreamPlan2D:
        """The plan of interior tiles.

        A bound makes compilers spill pointers, even one above what they take without it. A value that comes back from
        memory waits for the rows that are being copied, in every iteration.
        """
        shape = replace(self.shape, registers=0) if self.pointers else self.shape
        return StreamPlan2D(self.problem, shape, norm=self.norm, pointers=self.pointers)

    @cached_property
    def boundary_tile(self) -> Boundary2D:
        """The plan of boundary tiles."""
        return Boundary2D(self.problem, self.steps, self.boundary_width, self.boundary_ahead, self.norm)

    @cached_property
    def layers(self) -> StripKernel2D | None:
        """The plans of boundary strips, if they have a kernel."""
        if not self.has_strips:
            return None
        return layers(self.problem, self.steps, self.grid_cut, self.beside, self.norm, self.tiles_per_block)

    @property
    def tables(self) -> str:
        """The tables of an exchange that the kernels deal with: none."""
        return ""

    @cached_property
    def interior(self) -> Program:
        return program(self.problem, self.stream.kernel, self.tables)

    @cached_property
    def boundary(self) -> Program:
        return program(self.problem, self.boundary_tile.kernel, self.tables)

    @cached_property
    def layer(self) -> Program | None:
        return None if self.layers is None else program(self.problem, self.layers.kernel, self.tables)

    @cached_property
    def sums(self) -> Program:
        """The kernel that adds up the partial sums of the norms."""
        source = "\n".join((prelude(Arguments(self.problem), *HELPERS, "norms.cuh"), include("norm_sum.cuh")))
        return Program(source, "norm_sum", NORM_LEAVES, 8 * NORM_LEAVES)

    @property
    def grid_cut(self) -> Cut:
        """The cut that says where strips lie, whatever the rows of tiles."""
        return replace(self.cut, boundary_rows=64, least_rows=32)

    @cached_property
    def cut(self) -> Cut:
        beside, useful = margin(self.problem, self.shape), self.boundary_width - sum(self.boundary_tile.beside)
        if self.norm:
            useful = useful // NORM_COLUMNS * NORM_COLUMNS
        align = (NORM_ROWS, NORM_COLUMNS) if self.norm else (1, 8)
        columns, boundary_rows = self.shape.width - 2 * beside, min(self.boundary_rows, MOST_ROWS)
        return Cut(columns, beside, useful, boundary_rows, align, self.least_rows, self.most_rows)

    def tiles(self, box: Box, slots: int, recorded: tuple[int, ...]) -> Tiles:
        """The tiles of a box: interior ones fill the device in as few waves as can be, boundary tiles are for what
        these leave of it, and tiles of strips find room beside both.

        Where strips come first and take the room of interior tiles, which begin when they have ended, interior tiles
        are higher and all run at once, if that takes less time by the rows that a slot makes.
        """

        def cut(count: int) -> Tiles:
            return tiles(self.problem, self.shape.steps, box, self.cut, count, recorded, self.strips)

        def rows(boxes: Sequence[Box]) -> int:
            return max(map(rows_of, boxes), default=0) + overhead(self.problem, self.steps)

        found = cut(slots)
        room = slots - self.displaced * -(-len(found.layer) // self.tiles_per_block)
        if not room < len(found.interior) <= slots or room <= 0:
            return found
        higher, strips = cut(room), [tile for _, tile in found.layer]
        gained = rows(found.interior) + STRIP_ROW * rows(strips) - rows(higher.interior)
        return higher if gained > 0 and len(higher.interior) <= room else found

    def shorter(self, box: Box, boundary_slots: int, interior_slots: int) -> Self:
        """The kernel with shorter tiles where `box` leaves a device room for more of them: a pass is over when its
        longest tile is. Norms fix the rows of their blocks.

        boundary_slots, interior_slots: tiles of each kind that run at once; half of the interior ones keep a device
        busy.
        """
        if self.norm:
            return self
        strips = -(-box.shape[1] // self.cut.columns)
        coarse = replace(self, most_rows=box.shape[0])
        tiles = len(coarse.tiles(box, 1, ()).boundary)
        one = self.steps == 1  # then hardly a row is redundant
        few = self.layers is not None  # boundary tiles beside strips: fewer find room sooner
        rows = (SHORT, *ROWS) if one else ROWS[2 * few :]
        boundary = next((r for r in rows if tiles * self.boundary_rows <= boundary_slots * r), self.boundary_rows)
        interior = next((r for r in ROWS if 2 * strips * box.shape[0] <= interior_slots * r), self.least_rows)
        layer = next((r for r in ROWS if one or strips * box.shape[0] <= 2 * interior_slots * r), self.layer_rows)
        return replace(
            self,
            boundary_rows=min(boundary, self.boundary_rows),
            layer_rows=min(layer, self.layer_rows),
            least_rows=min(interior, self.least_rows),
        )

    @cached_property
    def strips(self) -> tuple[Strip, ...]:
        """The places that the kernel of the strips serves."""
        parts = self.layers.parts if self.layers else ()
        rows = (FAR, self.layer_rows)  # along axis 0 a strip is thin
        return tuple(
            Strip(part.strip.axis, part.strip.box, part.strip.excluded, part.useful, rows[part.strip.axis])
            for part in parts
        )

"""A pass of several steps over a 3D box as what an executor needs to launch it; see `blocked2d.pass_kernel` for 2D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from peergrid.codegen.cuda.blocked.program import Launch, Program, regions_of
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.common.arguments import RECEIVER
from peergrid.codegen.cuda.stream3d.core import core, unmirrored
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.text import program
from peergrid.codegen.cuda.stream3d.tiles import LEAST_PLANES, across, tiles_and_rest
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.grid import Box
from peergrid.stencil import Problem


@dataclass(frozen=True)
class PassKernel3D:
    """How `steps` steps of a 3D problem are made in one pass: tiles, and a remainder made step by step.

    least_planes: fewest of a tile.
    """

    problem: Problem
    steps: int
    shape: StreamShape
    least_planes: int = LEAST_PLANES

    norm = edge = layer = sums = None  # norms of changes are those of 2D grids

    @cached_property
    def leaves_remainder(self) -> bool:
        """Whether tiles leave cells to kernels of one step."""
        inside, barred = core(self.problem, self.steps)
        inside &= unmirrored(self.problem, self.steps)
        return not inside.covers(self.problem.grid.box) or bool(barred) or bool(self.problem.receivers)

    @cached_property
    def rings(self) -> Rings:
        return Rings(self.problem, self.steps, self.shape, tuple(range(len(self.problem.stages))))

    @cached_property
    def plain(self) -> Program:
        return program(self.rings)

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The tiles that advance `box`; slots: those that run at once on the device."""
        found = self._parted(box, slots, recorded).plain
        return (Launch(self.plain, regions_of(found), np.zeros(0, RECEIVER)),) if found else ()

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """What tiles leave of `box` to kernels of one step; arguments as for `launches`."""
        return self._parted(box, slots, recorded).edge

    def _parted(self, box: Box, slots: int, recorded: Sequence[int]) -> Tiles:
        cells = (self.problem.receivers[number].cell for number in recorded)
        return tiles_and_rest(
            self.rings, box, slots, (Box.cell(cell) for cell in cells if cell in box), self.least_planes
        )

    def shorter(self, box: Box, edge_slots: int, plain_slots: int) -> PassKernel3D:
        """The kernel with tiles as short as the device has room for (see `blocked2d.pass_kernel`)."""
        rows, columns = across(self.rings, box)
        planes = ceil(box.shape[0] * len(rows) * len(columns) / plain_slots)
        return replace(self, least_planes=min(self.least_planes, max(4, planes)))

    def around(self, registers: int) -> PassKernel3D:
        """The kernel itself, which has no boundary strips."""
        return self

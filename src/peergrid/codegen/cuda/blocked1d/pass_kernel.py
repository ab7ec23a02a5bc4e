"""A pass of several steps over a 1D box as a value: which problem, in which shape; what is compiled and launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peergrid.codegen.cuda.blocked.program import Launch, Program, regions_of, serving
from peergrid.codegen.cuda.blocked1d.shape import Shape1D, Tile1D
from peergrid.codegen.cuda.blocked1d.text import BOUNDARY, INTERIOR, THREADS, Text1D
from peergrid.codegen.cuda.blocked1d.tiles import tiles
from peergrid.codegen.cuda.common.arguments import RECEIVER
from peergrid.grid import Box
from peergrid.stencil import Problem


@dataclass(frozen=True)
class PassKernel1D:
    """The kernels that make `shape.steps` steps of a 1D problem in one pass."""

    problem: Problem
    shape: Shape1D

    norm = layer = sums = None  # norms of changes are those of 2D grids
    leaves_remainder = False

    @property
    def steps(self) -> int:
        return self.shape.steps

    @cached_property
    def tile(self) -> Tile1D:
        return Tile1D(self.problem, self.shape)

    @cached_property
    def plain(self) -> Program:
        """The kernel of interior tiles."""
        warps = self.shape.warps
        return Program(Text1D(self.tile).interior, INTERIOR, 32 * warps, 0, warps, whole=False)

    @cached_property
    def edge(self) -> Program:
        """The kernel of boundary tiles."""
        return Program(Text1D(self.tile).boundary, BOUNDARY, THREADS, self.tile.shared_bytes, 1, whole=False)

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The launches that advance `box`, at the same time; slots: warps of interior tiles that run at once."""
        here = [number for number in recorded if self.problem.receivers[number].cell in box]
        found = tiles(self.tile, box, slots, here)
        launches = (
            Launch(self.plain, regions_of(found.plain), np.zeros(0, RECEIVER)),
            Launch(self.edge, *serving(self.problem, found.edge, here)),
        )
        return tuple(launch for launch in launches if len(launch.regions))

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """The remainder of a box without tiles: nothing."""
        return ()

    def shorter(self, box: Box, edge_slots: int, plain_slots: int) -> PassKernel1D:
        """The kernel itself: its tiles are of one length."""
        return self

    def around(self, registers: int) -> PassKernel1D:
        """The kernel itself, which has no boundary strips."""
        return self

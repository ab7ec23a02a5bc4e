"""A pass of several steps over a 1D box as a value: which problem, in which shape; what is compiled and launched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.program import Program
from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked1d.shape import Shape1D, Tile1D
from peergrid.codegen.cuda.blocked1d.text import BOUNDARY, INTERIOR, THREADS, Text1D
from peergrid.codegen.cuda.blocked1d.tiles import tiles
from peergrid.grid import Box
from peergrid.stencil import Problem


@dataclass(frozen=True)
class PassKernel1D(TiledKernel):
    """The kernels that make `shape.steps` steps of a 1D problem in one pass."""

    problem: Problem
    shape: Shape1D

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

    def tiles(self, box: Box, slots: int, recorded: tuple[int, ...]) -> Tiles:
        return tiles(self.tile, box, slots, recorded)

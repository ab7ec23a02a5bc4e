"""A pass of several steps over a 1D box as a value: which problem, in which shape; what is compiled and launched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.kernel import program
from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked1d.shape import Shape1D, Tile1D
from peergrid.codegen.cuda.blocked1d.text import Boundary1D, Interior1D
from peergrid.codegen.cuda.blocked1d.tiles import tiles
from peergrid.codegen.cuda.common.program import Program
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
    def interior(self) -> Program:
        """The kernel of interior tiles."""
        return program(self.problem, Interior1D(self.tile).kernel)

    @cached_property
    def boundary(self) -> Program:
        """The kernel of boundary tiles."""
        return program(self.problem, Boundary1D(self.tile).kernel)

    def tiles(self, box: Box, slots: int, recorded: tuple[int, ...]) -> Tiles:
        return tiles(self.tile, box, slots, recorded)

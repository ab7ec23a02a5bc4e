"""A pass of several steps over a 3D box as what an executor needs to launch it; see `blocked2d.pass_kernel` for 2D."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.stream3d.core import core, unmirrored_by
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.tensors import Encode, Stored, tensors
from peergrid.codegen.cuda.stream3d.text import program
from peergrid.codegen.cuda.stream3d.tiles import LEAST_PLANES, least_planes, tiles_and_rest
from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.grid import Box
from peergrid.stencil import Problem


@dataclass(frozen=True)
class PassKernel3D(TiledKernel):
    """`steps` steps of a 3D problem in one pass: tiles, and a remainder made step by step.

    least_planes: fewest of a tile.
    """

    problem: Problem
    steps: int
    shape: StreamShape
    least_planes: int = LEAST_PLANES

    @cached_property
    def leaves_remainder(self) -> bool:
        """True if tiles leave cells to kernels of one step."""
        inside, excluded = core(self.problem, self.steps)
        inside &= unmirrored_by(self.problem, self.steps)
        return not inside.covers(self.problem.grid.box) or bool(excluded) or bool(self.problem.receivers)

    @cached_property
    def rings(self) -> Rings:
        return Rings(self.problem, self.steps, self.shape, tuple(range(len(self.problem.stages))))

    @cached_property
    def interior(self) -> Program:
        return program(self.rings, given=False)

    def tensors(self, given: Any, stored: Callable[[str], Stored], encode: Encode) -> tuple[NDArray[Any], ...]:
        return tensors(self.rings, given, stored, encode)

    def tiles(self, box: Box, slots: int, recorded: tuple[int, ...]) -> Tiles:
        cells = self.problem.receiver_boxes(recorded)
        return tiles_and_rest(self.rings, box, slots, cells, self.least_planes)

    def shorter(self, box: Box, boundary_slots: int, interior_slots: int) -> PassKernel3D:
        """The kernel with tiles as short as the device has room for (see `blocked2d.pass_kernel`)."""
        return replace(self, least_planes=min(self.least_planes, least_planes(self.rings, box, interior_slots)))

"""A pass of several steps over a 3D box as what an executor needs to launch it; see `blocked2d.pass_kernel` for 2D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from peergrid.codegen.cuda.blocked.program import Launch, Program, regions_of, serving
from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.blocked3d.edge.kernel import Edge3D
from peergrid.codegen.cuda.blocked3d.edge.rings import EdgeShape3D
from peergrid.codegen.cuda.blocked3d.shape import Shape3D
from peergrid.codegen.cuda.blocked3d.stream.kernel import Stream3D
from peergrid.codegen.cuda.blocked3d.tiles import across, tiles3d
from peergrid.codegen.cuda.blocked3d.walls import core
from peergrid.codegen.cuda.common.arguments import RECEIVER
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.grid import Box
from peergrid.stencil import Problem


@dataclass(frozen=True)
class PassKernel3D:
    """How `shape.steps` steps of a 3D problem are made in one pass: plain tiles and, beside them, edge tiles.

    least_planes: fewest of a plain tile; edge_planes: most of an edge tile; shelled: instead of edge tiles there is a
    shell, made step by step (see `shell`); gpu: what it is fitted to.
    """

    problem: Problem
    shape: Shape3D
    edge_shape: EdgeShape3D | None = None
    least_planes: int = 16
    edge_planes: int = 64
    shelled: bool = False
    gpu: GpuModel = H200

    norm = layer = sums = None  # norms of changes are those of 2D grids

    @property
    def leaves_remainder(self) -> bool:
        """Whether tiles leave cells to kernels of one step."""
        return self.shelled

    @property
    def steps(self) -> int:
        return self.shape.steps

    @cached_property
    def edged(self) -> bool:
        """Whether edge tiles work beside the plain ones."""
        return self.parted and not self.shelled

    @property
    def parted(self) -> bool:
        """Whether plain tiles leave anything."""
        inside, barred = core(self.problem, self.steps)
        return not inside.covers(self.problem.grid.box) or bool(barred) or bool(self.problem.receivers)

    @cached_property
    def stream(self) -> Stream3D:
        return Stream3D(self.problem, self.shape, near=not self.edged)

    @cached_property
    def edges(self) -> Edge3D:
        return Edge3D(self.problem, self.edge_shape or EdgeShape3D(self.shape.steps))

    @cached_property
    def plain(self) -> Program:
        kernel = self.stream
        return Program(kernel.source, kernel.entry, self.shape.threads, kernel.shared_bytes, 1, whole=self.edged)

    @cached_property
    def edge(self) -> Program | None:
        if self.shelled:
            return None
        kernel = self.edges
        return Program(kernel.source, kernel.entry, kernel.threads, kernel.shared_bytes, 1)

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The launches that advance `box`; slots: plain tiles that run at once on the device."""
        here = [k for k in recorded if self.problem.receivers[k].cell in box]
        found = self._tiles(box, slots, here)
        if self.edge is None:
            plain = Launch(self.plain, regions_of(found.plain), np.zeros(0, RECEIVER))
            return (plain,) if found.plain else ()
        both = (
            Launch(self.edge, *serving(self.problem, found.edge, here)),
            Launch(self.plain, regions_of(found.plain), np.zeros(0, RECEIVER)),
        )
        return tuple(launch for launch in both if len(launch.regions))

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """What tiles leave of `box` to kernels of one step; arguments as for `launches`."""
        if not self.shelled:
            return ()
        return self._tiles(box, slots, [k for k in recorded if self.problem.receivers[k].cell in box]).edge

    def _tiles(self, box: Box, slots: int, here: Sequence[int]) -> Tiles:
        most = None if self.shelled else (self.edge_planes, *self.edges.useful)
        return tiles3d(self.problem, self.shape, box, slots, here, most, self.least_planes)

    def useful(self, box: Box) -> float:
        """The share of the cells of plain tiles over a box that is not redundant along rows and columns."""
        rows, columns = across(self.problem, self.shape, box)
        return box.shape[1] * box.shape[2] / (len(rows) * self.shape.height * len(columns) * self.shape.width)

    def shorter(self, box: Box, edge_slots: int, plain_slots: int) -> PassKernel3D:
        """The kernel with tiles as short as the device has room for (see `blocked2d.pass_kernel`)."""
        rows, columns = across(self.problem, self.shape, box)
        planes = ceil(box.shape[0] * len(rows) * len(columns) / plain_slots)
        least = min(self.least_planes, max(4, planes))
        if self.shelled:
            return replace(self, least_planes=least)
        rim = sum(len(launch.regions) for launch in self.launches(box, 1) if launch.program is self.edge)
        edge = next((n for n in (8, 16, 32) if rim * self.edge_planes <= edge_slots * n), self.edge_planes)
        return replace(self, least_planes=least, edge_planes=edge)

    def around(self, registers: int) -> PassKernel3D:
        """The kernel itself, which has no boundary strips."""
        return self

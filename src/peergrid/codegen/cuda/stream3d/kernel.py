"""A pass over a 3D box as a value: which problem, how many steps, in which shape; what is compiled and launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peergrid.codegen.cuda.blocked.plain import core_of
from peergrid.codegen.cuda.blocked.program import Launch, Program, regions_of
from peergrid.codegen.cuda.blocked3d.walls import core
from peergrid.codegen.cuda.common.arguments import RECEIVER
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.shape import StreamShape
from peergrid.codegen.cuda.stream3d.text import ENTRY, Text
from peergrid.codegen.cuda.stream3d.tiles import tiles
from peergrid.grid import Box
from peergrid.stencil import Problem, footprint

PACE = np.dtype([("counters", "<u8"), ("lead", "<i4"), ("clocks", "<i4")])
"""What a kernel is given to keep its blocks in step, see `Pace` in the skeleton."""


@dataclass(frozen=True)
class Parts:
    """What makes the cells of a box: `plain`, the kernel; `beside`, kernels of one step, at the same time; `after`,
    kernels of one step, once the others are done, on cells that `plain` holds, too.
    """

    plain: Box
    beside: tuple[Box, ...]
    after: tuple[Box, ...]


@dataclass(frozen=True)
class StreamKernel:
    """How `steps` steps of a 3D problem are made in one pass."""

    problem: Problem
    steps: int
    shape: StreamShape

    @cached_property
    def rings(self) -> Rings:
        return Rings(self.problem, self.steps, self.shape)

    @cached_property
    def program(self) -> Program:
        """The kernel."""
        threads = self.shape.threads(self.problem.itemsize)
        return Program(Text(self.rings).source, ENTRY, threads, self.rings.shared_bytes, 1)

    def launches(self, box: Box, slots: int) -> tuple[Launch, ...]:
        """The launch over the tiles of a plain box; slots: how many blocks run at once on the device."""
        if box.empty:
            return ()
        return (Launch(self.program, regions_of(tiles(self.rings, box, slots)), np.zeros(0, RECEIVER)),)

    def clocks(self, launch: Launch) -> int:
        """The most clocks of a block."""
        return int((launch.regions["hi"] - launch.regions["lo"])[:, 0].max()) + self.rings.early

    def parts(self, box: Box, recorded: Sequence[int] = ()) -> Parts:
        """What of a box is made how; recorded: the receivers to serve (see `onestep`)."""
        allowed, barred = core(self.problem, self.steps)
        allowed = allowed & _unmirrored(self.problem, self.steps)
        plain, points = core_of(box & allowed, list(barred))
        heard = (Box.cell(self.problem.receivers[number].cell) for number in recorded)
        after: list[Box] = []
        for point in (*points, *heard):
            fresh = [point & plain]
            for known in after:
                fresh = [piece for part in fresh for piece in part - known]
            after += [piece for piece in fresh if not piece.empty]
        return Parts(plain, box - plain, tuple(after))


def _unmirrored(problem: Problem, steps: int) -> Box:
    """The cells that nothing beyond a reflecting edge is read for."""
    growth = footprint(problem, steps).inputs.values()
    box = Box((-(1 << 30),) * 3, (1 << 30,) * 3)
    for axis, kind in enumerate(problem.grid.boundary):
        if kind == "reflecting":
            lo, hi = max(g.below[axis] for g in growth), max(g.above[axis] for g in growth)
            box = box.with_axis(axis, lo, problem.grid.shape[axis] - hi)
    return box

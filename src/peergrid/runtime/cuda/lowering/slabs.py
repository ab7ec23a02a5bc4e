"""Passes of one step over slabs whose updates differ: those of each slab by kernels of its own, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from peergrid.grid import Box
from peergrid.grid.box import intersect
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.plan import Boxes, KernelPlan, Served, Works
from peergrid.runtime.cuda.lowering.programs import Needed


@dataclass(frozen=True)
class SlabsPlan(KernelPlan):
    """Slabs of the grid, each with the plan of its cells."""

    parts: tuple[tuple[Box, KernelPlan], ...]

    streams: ClassVar[bool] = True

    def needed(self) -> Needed:
        return Needed.together(plan.needed() for _, plan in self.parts)

    def served(self) -> Served:
        for _, plan in self.parts:
            yield from plan.served()

    def launches(self, execution: ExecutionContext, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        for plan, cells in self.shares(boxes):
            yield from plan.launches(execution, device, cells)

    def shares(self, boxes: Boxes) -> Iterator[tuple[KernelPlan, Boxes]]:
        """The plans, each with its part of some boxes."""
        for slab, plan in self.parts:
            if cells := intersect(boxes, slab):
                yield plan, cells


def works_in(slab: Box, works: Works) -> Works:
    """The works of devices in a slab."""
    found = ((device, intersect(boxes, slab)) for device, boxes in works)
    return tuple((device, cells) for device, cells in found if cells)

"""Passes that sum up the norms of what a device owns; what they advance beyond it counts on another device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch, chained
from peergrid.runtime.cuda.lowering.plan import Boxes, KernelPlan, Served
from peergrid.runtime.cuda.lowering.programs import Needed, together
from peergrid.runtime.cuda.lowering.tiled import TiledPlan


@dataclass(frozen=True)
class SummedPlan(KernelPlan):
    """`owned` with norms for what devices own, `beyond` without for the rest, if there is any."""

    partition: Partition
    owned: TiledPlan
    beyond: KernelPlan | None

    def needed(self) -> Needed:
        return together(plan.needed() for plan in self._plans)

    def served(self) -> Served:
        for plan in self._plans:
            yield from plan.served()

    def launches(self, execution: ExecutionContext, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        inside, outside = split_by_owner(self.partition, device, boxes)
        if outside and self.beyond is not None:
            yield from chained(self.beyond.launches(execution, device, outside))
        yield from self.owned.launches(execution, device, inside)

    def sums(self, execution: ExecutionContext, device: int) -> KernelLaunch | None:
        return self.owned.sums(execution, device)

    @property
    def _plans(self) -> tuple[KernelPlan, ...]:
        return (self.owned,) if self.beyond is None else (self.owned, self.beyond)


def split_by_owner(partition: Partition, device: int, boxes: Boxes) -> tuple[Boxes, Boxes]:
    """The parts of boxes that a device owns, and the others."""
    owned = partition.owned(device)
    inside = tuple(box & owned for box in boxes if box.overlaps(owned))
    return inside, tuple(piece for box in boxes for piece in box - owned)

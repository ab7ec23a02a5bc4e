"""Passes of one step by a kernel that makes no stencil's update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.own_kernel import OwnKernel
from peergrid.runtime.cuda.lowering.plan import Boxes, KernelPlan, Served, Works
from peergrid.runtime.cuda.lowering.programs import Needed


@dataclass(frozen=True, eq=False)
class OwnPlan(KernelPlan):
    """A launch for each box, all of which may run at the same time."""

    kernel: OwnKernel
    works: Works

    def needed(self) -> Needed:
        return Needed.of([self.kernel.program])

    def served(self) -> Served:
        for _, boxes in self.works:
            for box in boxes:
                yield self.kernel.program.entry, f"cells {box.lo} to {box.hi}"

    def launches(self, execution: ExecutionContext, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        kernel, owned = self.kernel, execution.layout.partition.owned(device)
        tables = execution.once(("tables", device), lambda: kernel.tables(execution.devices, device, owned))
        for box in boxes:
            values, count = execution.arguments(device, box), kernel.blocks(box)
            launch = KernelLaunch.of(execution, device, kernel.program, count, values, (tables,))
            yield replace(launch, concurrent=box != boxes[-1])

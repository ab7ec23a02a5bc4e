"""Passes of one step over boxes cut into regions (see `codegen.cuda.onestep`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat

from peergrid.codegen.cuda.common.program import Program, receiver_table
from peergrid.codegen.cuda.onestep import OneStepKernels
from peergrid.codegen.cuda.onestep.regions import Later
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.plan import Boxes, KernelPlan, Served, Setting, Works
from peergrid.runtime.cuda.lowering.programs import Needed


@dataclass(frozen=True)
class OneStepPlan(KernelPlan):
    """A kernel for each large region and stage, and one for the small ones together.

    later: of steps made from and to memory between the slots, what follows each of the works. Slots of 3D fields have
    what no update writes from the start (`FieldMemory.load`), so that passes from slot to slot need not carry it.
    """

    setting: Setting
    works: Works
    later: tuple[Later, ...] = ()

    def needed(self) -> Needed:
        return Needed(dict.fromkeys(self._kernels.needed, 0))

    def served(self) -> Served:
        for (device, boxes), later in zip(self.works, self.later or repeat(None), strict=False):
            for launch in self._kernels.launches(boxes, self.setting.recorded[device], later):
                if launch.receivers:
                    yield launch.kernel, "receivers"
                elif launch.regions:
                    yield launch.kernel, f"{len(launch.regions)} small regions"
                else:
                    yield launch.kernel, f"cells {launch.box.lo} to {launch.box.hi}"

    def launches(
        self, execution: ExecutionContext, device: int, boxes: Boxes, later: Later | None = None
    ) -> Iterator[KernelLaunch]:
        for launch in self._kernels.launches(boxes, self.setting.recorded[device], later):
            program = Program(self._kernels.units[launch.unit], launch.kernel, launch.threads, 0)
            heard = receiver_table(self.setting.problem, launch.receivers)
            given = self._kernels.arguments
            values = execution.arguments(device, launch.box, given, regions=launch.table(), receivers=heard)
            made = KernelLaunch.of(execution, device, program, launch.blocks, values)
            yield replace(made, concurrent=launch.concurrent)

    @cached_property
    def _kernels(self) -> OneStepKernels:
        problem, works = self.setting.problem, [boxes for _, boxes in self.works]
        carries = bool(self.later) or problem.grid.ndim < 3
        given = self.setting
        return OneStepKernels.of(problem, works, given.gpu, carries=carries, later=self.later, pitched=given.pitched)

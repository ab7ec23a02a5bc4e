"""The executor that defines correct results: every operation runs at once, in the order of the list."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.executor import refuse_norms
from peergrid.runtime.kernel import Kernel, Pass
from peergrid.runtime.memory import allocate, collect, copy, fill, first_nonfinite, owned_receivers
from peergrid.runtime.norms import Norms
from peergrid.runtime.reductions import Reductions
from peergrid.runtime.reference import ReferenceKernel
from peergrid.runtime.reference_norm import reference_sums
from peergrid.runtime.reference_reduction import reference_reductions
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Compute, Copy, Reduce
from peergrid.stencil.reduction import Series


class InOrderExecutor:
    """Virtual devices without any concurrency; queues, events, flags and barriers have no effect.

    norm: a field, the norm of whose change is computed in every step.
    """

    def __init__(self, layout: Layout, total_steps: int, kernel: Kernel | None = None, norm: str | None = None) -> None:
        self.layout = layout
        self._norms = None if norm is None else Norms(layout, norm, total_steps, reference_sums)
        self._reductions = Reductions(layout, total_steps, *reference_reductions(layout.problem))
        self.kernel = kernel or ReferenceKernel(layout.problem)
        self.memories = [allocate(layout, device) for device in range(layout.devices)]
        self.recorded = [owned_receivers(layout, device) for device in range(layout.devices)]
        self._traces = np.full((len(layout.problem.receivers), total_steps), np.nan, layout.problem.grid.dtype)

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        for memory in self.memories:
            fill(self.layout, memory, name, values, slot)

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        for iteration in range(times):
            for op in schedule.ops:
                if isinstance(op, Compute):
                    self._compute(op, step + iteration * schedule.steps)
                elif isinstance(op, Copy):
                    copy(self.memories, op)
                elif isinstance(op, Reduce):
                    self._reductions.add(self.memories[op.device], op, step + iteration * schedule.steps + op.level)

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        return collect(self.layout, self.memories, name, slot, box)

    def traces(self) -> Array:
        return self._traces

    def norms(self, steps: int) -> Array:
        if self._norms is None:
            refuse_norms()
        return self._norms.norms(steps)

    def reductions(self, steps: int) -> Mapping[str, Series]:
        return self._reductions.series(steps)

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        return first_nonfinite(self.layout, self.memories, name, slot)

    def busy_seconds(self) -> None:
        return None

    def close(self) -> None:
        self.memories = []

    def _compute(self, op: Compute, base: int) -> None:
        memory, recorded = self.memories[op.device], self.recorded[op.device]
        part = Pass(op.box, op.source, op.target, base + op.level, op.steps, self._traces, recorded)
        self.kernel(memory, part)
        if self._norms is not None:
            self._norms.add(memory, op, base + op.level)

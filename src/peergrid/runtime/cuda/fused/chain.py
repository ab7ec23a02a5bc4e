"""Devices in a chain, or in a ring where the grid wraps: who is whose neighbour, and the `Links` of their kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda import service
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import neighbour
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Compute, Flag

PASSED = Flag(0, "passes of linked kernels")
Said = Callable[[int, int | None], int]
"""The schedule's operation that a device waits for, given the device and the one it comes from (None: itself)."""


@dataclass(frozen=True)
class Chain:
    """Kernels whose `Links` have a dtype; boundary_tiles: how many at the low and at the high end of each box."""

    execution: ExecutionContext
    dtype: np.dtype[Any]
    boundary_tiles: Sequence[tuple[int, int]]

    def links(self, device: int, said: Said) -> NDArray[Any]:
        """`Links` of a device, shape (1,), without the passes so far."""
        execution, links = self.execution, np.zeros(1, self.dtype)
        links["budget"], links["board"] = execution.timeout_ns, execution.fault_log_address
        links["report"], links["op"] = service.REPORT * (device + 1), said(device, None)
        for side in (0, 1):
            found = neighbour(execution.layout, device, side)
            if found is None:
                continue
            other, shift = found
            link = links["side"][0, side]
            link["mine"], link["theirs"] = self._counter(device, side), self._counter(other, 1 - side)
            link["each"], link["op"] = self.boundary_tiles[other][1 - side], said(device, other)
            theirs = execution.template(other)["fields"][0]
            link["fields"]["pitch"] = theirs["pitch"]
            rows = theirs["pitch"][:, :1] * execution.layout.problem.itemsize * shift
            link["fields"]["slot"] = (theirs["slot"].astype(np.int64) + rows).astype(np.uint64)
        return links

    def _counter(self, device: int, side: int) -> int:
        """The address of the pair of words that the neighbour on a side of a device counts up."""
        return self.execution.flag(Flag(device, f"{PASSED.name} {side}"))


def passes(schedule: Schedule) -> list[Compute]:
    """One computation of each pass, in order."""
    found = {op.level: op for op in schedule.ops if isinstance(op, Compute)}
    return [found[level] for level in sorted(found)]


def offset(table: NDArray[Any], name: str) -> int:
    """Where a member of a struct lies, in bytes."""
    return int(table.dtype.fields[name][1])  # type: ignore[index]

"""Devices in a chain, or in a ring where the grid wraps: `Exchange` of their kernels, from a schedule's operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda import service
from peergrid.codegen.cuda.fused.exchange import ExchangeTables
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Flag, SignalOp, SignalWait, hosts_of, queues_of
from peergrid.schedule.passes.fused import NAMES, neighbour
from peergrid.schedule.strategies import StrategyName

Ends = dict[tuple[int, int], list[int]]
"""The numbers of operations, pass by pass, by the device and the end of its slab."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Kernels that exchange by the same tables: what launches for each pass and one for many have in common.

    regions: the tables of each device's tiles; notes: the address of a recorded run's list (0: none).
    """

    execution: ExecutionContext
    schedule: Schedule
    tables: ExchangeTables
    regions: Sequence[Sequence[NDArray[Any]]]
    notes: int

    @cached_property
    def boundary_tiles(self) -> tuple[tuple[int, int], ...]:
        """The number of tiles at the low and at the high end of each device's box: what neighbours count in a pass."""
        owned = self.execution.layout.partition.owned
        return tuple(self.tables.counts(owned(device), found) for device, found in enumerate(self.regions))

    def links(self, device: int, number: int, op: int) -> NDArray[Any]:
        """`Exchange` of a device in a pass, shape (1,), without the passes so far; op: what its own blocks wait at."""
        execution, links = self.execution, np.zeros(1, self.tables.dtype())
        links["timeout"], links["fault_log"] = execution.timeout_ns, execution.fault_log_address
        links["record"], links["op"] = service.REPORT * (device + 1), op
        if self.notes:
            links["notes"] = self.notes
        for side in (0, 1):
            if (device, side) not in self._waits:
                continue
            waits, signals = self._waits[device, side][number], self._signals[device, side][number]
            mine, theirs = self._flag(waits), self._flag(signals)
            link = links["side"][0, side]
            link["local"], link["remote"] = execution.flag(mine), execution.flag(theirs)
            link["expected"], link["op"] = self.boundary_tiles[theirs.device][1 - side], waits
            self._address(link, device, side, theirs.device)
        return links

    def awaits(self, device: int, number: int) -> int:
        """The operation by which a device waits in a pass: the first, if it has two neighbours."""
        return next(found[number] for (here, _), found in sorted(self._waits.items()) if here == device)

    def _address(self, link: NDArray[Any], device: int, side: int, other: int) -> None:
        """Addresses of the neighbour's fields, in this device's coordinates."""
        found = neighbour(self.execution.layout, device, side)
        assert found is not None, "only ends with a neighbour exchange"
        theirs = self.execution.memory.placed(other)
        link["fields"]["pitch"] = theirs["pitch"]
        rows = theirs["pitch"][:, :1] * self.execution.layout.problem.itemsize * found[1]
        link["fields"]["slot"] = (theirs["slot"].astype(np.int64) + rows).astype(np.uint64)

    def _flag(self, number: int) -> Flag:
        op = self.schedule.ops[number]
        assert isinstance(op, SignalOp | SignalWait)
        return op.flag

    @cached_property
    def _waits(self) -> Ends:
        return self._ends(SignalWait)

    @cached_property
    def _signals(self) -> Ends:
        return self._ends(SignalOp)

    def _ends(self, kind: type[SignalOp] | type[SignalWait]) -> Ends:
        found: Ends = {}
        for number, op in enumerate(self.schedule.ops):
            if isinstance(op, kind):
                side = NAMES.index(op.queue.name.split()[0])
                found.setdefault((op.queue.device, side), []).append(number)
        return found


def passed(strategy: StrategyName) -> Flag:
    """The passes that a strategy's kernels have made; an executor may carry out several, each with flags of its own."""
    return Flag(0, f"passes of '{strategy}' kernels")


def hosts_of_devices(schedule: Schedule) -> dict[int, int]:
    """The host that issues for each device."""
    return {queue.device: hosts_of(op)[0] for op in schedule.ops for queue in queues_of(op)}

"""Semaphores as commands: words that queues write and await by stream memory operations, all of a place in one call.

A wait for an event of another context costs the host a call, under locks of the driver that threads for other GPUs
need, too; a word concerns one context alone. The words lie in host memory, so that a wait can be ended without any call
into a driver that may itself wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peergrid.runtime.cuda.commands.buffer import CommandWriter, Relocation
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Flag, Semaphore, SignalOp, SignalWait

WAIT, WRITE = 4, 5  # CU_STREAM_MEM_OP_WAIT_VALUE_64, of which "at least" is the usual kind, and WRITE_VALUE_64
WORDS, ADDRESS, VALUE = 6, 1, 2  # of a CUstreamBatchMemOpParams: how many, and which
Edge = tuple[SignalOp, SignalWait]


def words(
    execution: ExecutionContext, commands: CommandWriter, number: int, ops: Sequence[SignalOp | SignalWait]
) -> None:
    """The call for semaphores that follow one another in a queue; their values are set anew for each iteration."""
    devices, queue = execution.devices, ops[0].queue
    rows = np.zeros((len(ops), WORDS), np.int64)
    for row, op in zip(rows, ops, strict=True):
        row[0], row[ADDRESS] = WRITE if isinstance(op, SignalOp) else WAIT, execution.semaphores.address(op.flag)
    entry, stream = execution.entry("cuStreamBatchMemOp"), devices.stream(queue)
    address = commands.words(number, devices.context(queue.device), entry, stream, rows)
    for n, op in enumerate(ops):
        commands.relocations.append(Relocation(address + 8 * (WORDS * n + VALUE), op.value, op.flag))


def edges(schedule: Schedule) -> dict[Flag, Edge]:
    """The operations that each semaphore ties."""
    signals = {op.flag: op for op in schedule.ops if isinstance(op, SignalOp) and isinstance(op.flag, Semaphore)}
    waits = {op.flag: op for op in schedule.ops if isinstance(op, SignalWait) and op.flag in signals}
    return {flag: (signals[flag], wait) for flag, wait in waits.items()}

"""Semaphores as commands: words that queues write and await by stream memory operations, all of a place in one call.

A wait for an event of another context costs the host a call, under locks of the driver that threads for other GPUs
need, too; a word concerns one context alone. The words lie in host memory, so that a wait can be ended without any call
into a driver that may itself wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.runtime.cuda.commands.buffer import Relocation
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Flag, Queue, Semaphore, SignalOp, SignalWait

WAIT, WRITE = 4, 5  # CU_STREAM_MEM_OP_WAIT_VALUE_64, of which "at least" is the usual kind, and WRITE_VALUE_64
WORDS, ADDRESS, VALUE = 6, 1, 2  # of a CUstreamBatchMemOpParams: how many, and which
Edge = tuple[SignalOp, SignalWait]


def words(
    execution: ExecutionContext, commands: CommandWriter, number: int, ops: Sequence[SignalOp | SignalWait]
) -> None:
    """The call for semaphores that follow one another in a queue; their values are set anew for each iteration."""
    places = [
        Word(WRITE if isinstance(op, SignalOp) else WAIT, execution.semaphores.address(op.flag), op.value, op.flag)
        for op in ops
    ]
    in_stream(commands, number, ops[0].queue, places)


@dataclass(frozen=True)
class Word:
    """A word that a queue writes or awaits (kind); value: counted from that of a flag."""

    kind: int
    address: int
    value: int
    flag: Flag


def in_stream(commands: CommandWriter, number: int, queue: Queue, places: Sequence[Word]) -> None:
    """One call that writes and awaits words."""
    rows = np.zeros((len(places), WORDS), np.int64)
    for row, place in zip(rows, places, strict=True):
        row[0], row[ADDRESS] = place.kind, place.address
    address = commands.words(number, queue, rows)
    for n, place in enumerate(places):
        commands.relocations.append(Relocation(address + 8 * (WORDS * n + VALUE), place.value, place.flag))


def edges(schedule: Schedule) -> dict[Flag, Edge]:
    """The operations that each semaphore ties."""
    signals = {op.flag: op for op in schedule.ops if isinstance(op, SignalOp) and isinstance(op.flag, Semaphore)}
    waits = {op.flag: op for op in schedule.ops if isinstance(op, SignalWait) and op.flag in signals}
    return {flag: (signals[flag], wait) for flag, wait in waits.items()}

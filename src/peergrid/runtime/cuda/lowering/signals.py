"""The commands that order the queues: barriers by events, flags set and awaited by utility kernels, semaphores by words
that queues write and await by stream memory operations, all of a place in one call.

A wait for an event of another context costs the host a call, under locks of the driver that threads for other GPUs
need, too; a word concerns one context alone. Words of semaphores lie in host memory, so that a wait can be ended
without any call into a driver that may itself wait.

Every function writes the driver calls of operation `number`; -1 stands for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Event, Flag, Queue, Semaphore, SignalOp, SignalWait

WAIT, WRITE = 4, 5  # CU_STREAM_MEM_OP_WAIT_VALUE_64, of which "at least" is the usual kind, and WRITE_VALUE_64
WORDS, ADDRESS, VALUE = 6, 1, 2  # of a CUstreamBatchMemOpParams: how many, and which
Edge = tuple[SignalOp, SignalWait]


def barrier(commands: CommandWriter, number: int, queues: Sequence[Queue]) -> None:
    """Each of a device's queues waits for what all others hold so far, without a hop in between."""
    for queue in queues:
        commands.record(number, queue, _barrier_event(queue))
    for queue in queues:
        after(commands, number, queue, [other for other in queues if other != queue])


def after(commands: CommandWriter, number: int, queue: Queue, others: Sequence[Queue]) -> None:
    """A queue waits for what other queues had at their last barrier."""
    for other in others:
        commands.wait(number, queue, _barrier_event(other))


def _barrier_event(queue: Queue) -> Event:
    return Event(queue.device, f"barrier of {queue}")


def signal(execution: ExecutionContext, commands: CommandWriter, number: int, op: SignalOp | SignalWait) -> None:
    """Set a flag, or await it with a timeout; its value is set anew for each iteration."""
    kernel = "raise_flag" if isinstance(op, SignalOp) else "await_flag"
    flag_kernel(execution, commands, number, op.queue, kernel, op.flag, op.value)


def flag_kernel(
    execution: ExecutionContext,
    commands: CommandWriter,
    number: int,
    queue: Queue,
    kernel: str,
    flag: Flag,
    value: int,
    counted: Flag | None = None,
) -> None:
    """The utility kernel that sets or awaits a flag; the value grows per iteration as that of `counted` does."""
    values = np.zeros(1, service.SIGNAL)
    values["flag"], values["fault_log"] = execution.flag(flag), execution.fault_log_address
    values["timeout"], values["op"] = execution.timeout_ns, number
    values["record"] = service.REPORT * (queue.device + 1)
    commands.launch(number, queue, execution.utility_kernel(queue.device, kernel), 1, 1, values)
    commands.relocate(values["value"], value, counted or flag)


def advance_step_counter(
    execution: ExecutionContext, commands: CommandWriter, number: int, queue: Queue, steps: int
) -> None:
    """Advance the step counter of a queue, behind an operation."""
    values = np.zeros(1, service.TICK)
    values["clock"], values["steps"] = execution.step_counter(queue), steps
    commands.launch(number, queue, execution.utility_kernel(queue.device, "tick"), 1, 1, values)


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
        commands.relocate(row[VALUE:], place.value, place.flag)
    commands.words(number, queue, rows)


def await_set(commands: CommandWriter, number: int, queue: Queue, address: int) -> None:
    """One call that awaits a word which a kernel of the same device sets, and sets it back."""
    rows = np.zeros((2, WORDS), np.int64)
    rows[:, 0], rows[:, ADDRESS], rows[:, VALUE] = (WAIT, WRITE), address, (1, 0)
    commands.words(number, queue, rows)


def edges(schedule: Schedule) -> dict[Flag, Edge]:
    """The operations that each semaphore ties."""
    signals = {op.flag: op for op in schedule.ops if isinstance(op, SignalOp) and isinstance(op.flag, Semaphore)}
    waits = {op.flag: op for op in schedule.ops if isinstance(op, SignalWait) and op.flag in signals}
    return {flag: (signals[flag], wait) for flag, wait in waits.items()}

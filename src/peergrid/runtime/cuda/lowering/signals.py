"""The commands that order the queues: barriers by events, flags set and awaited by utility kernels.

Every function writes the driver calls of operation `number`; -1 stands for none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.runtime.cuda.commands.buffer import Relocation
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule.ops import Event, Flag, Queue, SignalOp, SignalWait


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
    address = commands.launch(number, queue, execution.utility_kernel(queue.device, kernel), 1, 1, values)
    place = int(service.SIGNAL.fields["value"][1])  # type: ignore[index]
    commands.relocations.append(Relocation(address + place, value, counted or flag))


def advance_step_counter(execution: ExecutionContext, commands: CommandWriter, queue: Queue, steps: int) -> None:
    """Advance the step counter of a queue."""
    values = np.zeros(1, service.TICK)
    values["clock"], values["steps"] = execution.step_counter(queue), steps
    commands.launch(-1, queue, execution.utility_kernel(queue.device, "tick"), 1, 1, values)

"""The commands that order the queues: events of one GPU, flags set and awaited by utility kernels, barriers.

Every function writes the driver calls of operation `number`; -1 stands for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.runtime.cuda.commands.buffer import CommandWriter, Relocation
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.schedule.ops import Event, Flag, Queue, SignalOp, SignalWait


def record(execution: ExecutionContext, commands: CommandWriter, number: int, queue: Queue, event: Event) -> None:
    """The event stands for what the queue holds so far."""
    devices = execution.devices
    context, entry = devices.context(queue.device), execution.entry("cuEventRecord")
    commands.call(number, context, entry, devices.event(event), devices.stream(queue))


def wait(execution: ExecutionContext, commands: CommandWriter, number: int, queue: Queue, event: Event) -> None:
    """The following work of the queue waits for the event."""
    devices = execution.devices
    context, entry = devices.context(queue.device), execution.entry("cuStreamWaitEvent")
    commands.call(number, context, entry, devices.stream(queue), devices.event(event), 0)


def tie(execution: ExecutionContext, commands: CommandWriter, number: int, before: Queue, after: Queue) -> None:
    """One queue of a device waits for what the other holds so far."""
    event = Event(before.device, f"from {before} to {after}")
    record(execution, commands, number, before, event)
    wait(execution, commands, number, after, event)


def barrier(execution: ExecutionContext, commands: CommandWriter, number: int, queues: Sequence[Queue]) -> None:
    """Each of a device's queues waits for what all others hold so far, without a hop in between."""
    for queue in queues:
        record(execution, commands, number, queue, _barrier_event(queue))
    for queue in queues:
        after(execution, commands, number, queue, [other for other in queues if other != queue])


def after(
    execution: ExecutionContext, commands: CommandWriter, number: int, queue: Queue, others: Sequence[Queue]
) -> None:
    """A queue waits for what other queues had at their last barrier."""
    for other in others:
        wait(execution, commands, number, queue, _barrier_event(other))


def _barrier_event(queue: Queue) -> Event:
    return Event(queue.device, f"barrier of {queue}")


def signal(execution: ExecutionContext, commands: CommandWriter, number: int, op: SignalOp | SignalWait) -> None:
    """Set a flag, or await it with a timeout; its value is set anew for each iteration."""
    flag_kernel(
        execution,
        commands,
        number,
        op.queue,
        "raise_flag" if isinstance(op, SignalOp) else "await_flag",
        op.flag,
        op.value,
    )


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
    address = launch(execution, commands, number, queue, execution.utility_kernel(queue.device, kernel), 1, 1, values)
    place = int(service.SIGNAL.fields["value"][1])  # type: ignore[index]
    commands.relocations.append(Relocation(address + place, value, counted or flag))


def advance_step_counter(execution: ExecutionContext, commands: CommandWriter, queue: Queue, steps: int) -> None:
    """Advance the step counter of a queue."""
    values = np.zeros(1, service.TICK)
    values["clock"], values["steps"] = execution.step_counter(queue), steps
    launch(execution, commands, -1, queue, execution.utility_kernel(queue.device, "tick"), 1, 1, values)


def launch(
    execution: ExecutionContext,
    commands: CommandWriter,
    number: int,
    queue: Queue,
    kernel: int,
    blocks: int,
    threads: int,
    values: np.ndarray[Any, Any],
) -> int:
    """A kernel with one struct of arguments; where the command buffer keeps them."""
    context, stream = execution.devices.context(queue.device), execution.devices.stream(queue)
    return commands.launch(number, context, execution.entry("cuLaunchKernel"), kernel, stream, blocks, threads, values)

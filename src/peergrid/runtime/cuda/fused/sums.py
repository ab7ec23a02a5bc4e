"""The sums of norms beside the fused passes that follow: in a queue of their own on each device, delayed by events.

What a pass leaves to be summed up is kept once for each slot of the state. So the next pass, which writes the other
slot, begins at once; the one after it waits for the sums.
"""

from __future__ import annotations

from peergrid.runtime.cuda.commands.buffer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.signals import record, wait
from peergrid.schedule.ops import Event, Queue


def sums_queue(device: int) -> Queue:
    """The queue in which a device sums up: of the lowest priority, since a pass has time to spare at its end."""
    return Queue(device, "sums")


def await_sums(execution: ExecutionContext, commands: CommandWriter, number: int, queue: Queue, slot: int) -> None:
    """Later operations of the queue wait until the newest sums of a pass that wrote this slot are made, if any."""
    wait(execution, commands, number, queue, _summed(queue.device, slot))


def mark_sums(execution: ExecutionContext, commands: CommandWriter, number: int, device: int, slot: int) -> None:
    """The event that `await_sums` waits for: the device's sums so far, the last of a pass that wrote this slot."""
    record(execution, commands, number, sums_queue(device), _summed(device, slot))


def _summed(device: int, slot: int) -> Event:
    return Event(device, f"sums of slot {slot}")

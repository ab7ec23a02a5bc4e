"""What orders the queues, onto a tape: events of one GPU, flags raised and awaited by small kernels, barriers.

Every function writes the driver calls of operation `number`; -1 stands for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peergrid.codegen.cuda import service
from peergrid.runtime.cuda.lowering.station import Station
from peergrid.runtime.cuda.tapes.tape import Patch, TapeWriter
from peergrid.schedule.ops import Await, Event, Flag, Queue, Raise


def record(station: Station, tape: TapeWriter, number: int, queue: Queue, event: Event) -> None:
    """The event stands for what the queue holds so far."""
    devices = station.devices
    context, entry = devices.context(queue.device), station.entry("cuEventRecord")
    tape.call(number, context, entry, devices.event(event), devices.stream(queue))


def wait(station: Station, tape: TapeWriter, number: int, queue: Queue, event: Event) -> None:
    """What the queue gets from now on waits for the event."""
    devices = station.devices
    context, entry = devices.context(queue.device), station.entry("cuStreamWaitEvent")
    tape.call(number, context, entry, devices.stream(queue), devices.event(event), 0)


def tie(station: Station, tape: TapeWriter, number: int, before: Queue, after: Queue) -> None:
    """One queue of a device waits for what the other holds so far."""
    event = Event(before.device, f"from {before} to {after}")
    record(station, tape, number, before, event)
    wait(station, tape, number, after, event)


def meet(station: Station, tape: TapeWriter, number: int, queues: Sequence[Queue]) -> None:
    """Each of a device's queues waits for what all others hold so far, without a hop in between."""
    for queue in queues:
        record(station, tape, number, queue, _met(queue))
    for queue in queues:
        after(station, tape, number, queue, [other for other in queues if other != queue])


def after(station: Station, tape: TapeWriter, number: int, queue: Queue, met: Sequence[Queue]) -> None:
    """A queue waits for what queues held that have just met."""
    for other in met:
        wait(station, tape, number, queue, _met(other))


def _met(queue: Queue) -> Event:
    return Event(queue.device, f"barrier of {queue}")


def signal(station: Station, tape: TapeWriter, number: int, op: Raise | Await) -> None:
    """A flag is raised, or awaited with a budget; its value is patched turn by turn."""
    notice(station, tape, number, op.queue, "raise_flag" if isinstance(op, Raise) else "await_flag", op.flag, op.value)


def notice(
    station: Station, tape: TapeWriter, number: int, queue: Queue, kernel: str, flag: Flag, value: int,
    counted: Flag | None = None,
) -> None:  # fmt: skip
    """The kernel that raises or awaits a flag's value, which grows from turn to turn as that of `counted` does."""
    values = np.zeros(1, service.NOTICE)
    values["flag"], values["board"] = station.flag(flag), station.board_address
    values["budget"], values["op"] = station.budget, number
    values["report"] = service.REPORT * (queue.device + 1)
    address = launch(station, tape, number, queue, station.service(queue.device, kernel), 1, 1, values)
    place = int(service.NOTICE.fields["value"][1])  # type: ignore[index]
    tape.patches.append(Patch(address + place, value, counted or flag))


def tick(station: Station, tape: TapeWriter, queue: Queue, steps: int) -> None:
    """The clock of a queue goes on by so many steps."""
    values = np.zeros(1, service.TICK)
    values["clock"], values["steps"] = station.clock(queue), steps
    launch(station, tape, -1, queue, station.service(queue.device, "tick"), 1, 1, values)


def launch(
    station: Station,
    tape: TapeWriter,
    number: int,
    queue: Queue,
    kernel: int,
    blocks: int,
    threads: int,
    values: np.ndarray[Any, Any],
) -> int:
    """A kernel with one struct of arguments; where the tape keeps them."""
    context, stream = station.devices.context(queue.device), station.devices.stream(queue)
    return tape.launch(number, context, station.entry("cuLaunchKernel"), kernel, stream, blocks, threads, values)

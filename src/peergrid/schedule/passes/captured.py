"""A device's work between two operations that order its GPU with others, as a CUDA graph.

A graph is launched into one queue, the *origin*: the one ordered with other GPUs. All queues of the GPU begin and end
with it. Operations within do not wait for earlier records, as graphs of one GPU follow one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from peergrid.schedule.build import Schedule
from peergrid.schedule.layout import Layout
from peergrid.schedule.ops import Event, Op, Queue, Record, Semaphore, SignalOp, SignalWait, Wait, queues_of

Origins = dict[int, Queue]
"""The queue of each GPU that is tied to others."""


@dataclass(frozen=True)
class CaptureGraphs:
    """The pass for devices on these GPUs; without such stretches (see `origins`) the schedule stays as it is."""

    ordinals: tuple[int, ...]

    def __call__(self, layout: Layout, schedule: Schedule) -> Schedule:
        found = origins(schedule, self.ordinals)
        return replace(schedule, ops=tuple(self._captured(schedule, found))) if found else schedule

    def _captured(self, schedule: Schedule, found: Origins) -> Iterator[Op]:
        stay, waiting, queues = ties(schedule, self.ordinals), dict[int, list[Op]](), self._queues(schedule)
        for number, op in enumerate(schedule.ops):
            gpu = _gpu(op, self.ordinals)
            if number in stay:
                yield from _graph(queues[gpu], found[gpu], waiting.pop(gpu, []))
                yield op
            else:
                waiting.setdefault(gpu, []).append(op)
        for gpu, left in waiting.items():
            yield from _graph(queues[gpu], found[gpu], left)

    def _queues(self, schedule: Schedule) -> dict[int, list[Queue]]:
        """The queues of each GPU."""
        found: dict[int, list[Queue]] = {}
        for queue in sorted({queue for op in schedule.ops for queue in queues_of(op)}):
            found.setdefault(self.ordinals[queue.device], []).append(queue)
        return found


def _graph(queues: list[Queue], origin: Queue, ops: list[Op]) -> Iterator[Op]:
    """A stretch between a fork and a join of a GPU's queues."""
    if not ops:
        return
    others = [queue for queue in queues if queue != origin]
    start, recorded = Event(origin.device, "graph start"), set[Event]()
    if others:
        yield Record(0, origin.device, origin, start)
    yield from (Wait(0, queue, start) for queue in others)
    for op in ops:
        if isinstance(op, Record):
            recorded.add(op.event)
        if not isinstance(op, Wait) or op.event in recorded:
            yield op
    for queue in others:
        end = Event(queue.device, f"graph end of {queue}")
        yield Record(0, queue.device, queue, end)
        yield Wait(0, origin, end)


def origins(schedule: Schedule, ordinals: tuple[int, ...]) -> Origins:
    """The origins of the graphs; empty for a single GPU, or if several queues of a GPU are ordered with others."""
    gpus = sorted({_gpu(op, ordinals) for op in schedule.ops if queues_of(op)})
    tied: dict[int, set[Queue]] = {gpu: set() for gpu in gpus}
    for number in ties(schedule, ordinals):
        (queue,) = queues_of(schedule.ops[number])
        tied[ordinals[queue.device]].add(queue)
    if any(len(queues) != 1 for queues in tied.values()):
        return {}
    return {gpu: next(iter(queues)) for gpu, queues in tied.items()}


def ties(schedule: Schedule, ordinals: tuple[int, ...]) -> set[int]:
    """The operations, by number, that order GPUs: semaphores, and uses of an event that several GPUs use."""
    users: dict[Event, set[int]] = {}
    for op in schedule.ops:
        if isinstance(op, Record | Wait):
            users.setdefault(op.event, set()).add(ordinals[op.queue.device])
    return {
        number
        for number, op in enumerate(schedule.ops)
        if (isinstance(op, SignalOp | SignalWait) and isinstance(op.flag, Semaphore))
        or (isinstance(op, Record | Wait) and len(users[op.event]) > 1)
    }


def _gpu(op: Op, ordinals: tuple[int, ...]) -> int:
    """The GPU of an operation's queue, -1 for what hosts do."""
    return next((ordinals[queue.device] for queue in queues_of(op)), -1)

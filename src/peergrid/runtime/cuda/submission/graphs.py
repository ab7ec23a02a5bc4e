"""A schedule as CUDA graphs, captured once and launched again and again.

Where several GPUs exchange, every stretch of a device's work between two events that tie it to others is a graph: a
launch is one call for the host, and no graph spans devices, which costs the devices more than events do. Elsewhere
many iterations are one graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.errors import PeergridError
from peergrid.runtime.cuda.commands.buffer import CommandBuffer, CommandWriter, Words
from peergrid.runtime.cuda.commands.parts import Events
from peergrid.runtime.cuda.commands.replay import CONTEXT, DONE, FIRST, FUNCTION
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.lowering.duration import IN_FLIGHT_SECONDS
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.runtime.cuda.submission.submitter import End, Submission, SubmissionPlan, Submitter, contexts_of
from peergrid.schedule.ops import Event, Queue, describe

BUNDLE = 16  # iterations of a schedule in one graph, where a graph can hold several


@dataclass(frozen=True)
class Stretch:
    """Rows of one context that become a graph, launched into `stream`."""

    context: int
    stream: int
    rows: tuple[int, ...]


class Graphs:
    """The graphs of one executor."""

    def __init__(self, execution: ExecutionContext, submitter: Submitter) -> None:
        self._execution, self._submitter = execution, submitter
        self._cuts: dict[int, list[Stretch | int]] = {}  # by identity of what the executor keeps
        self._buffers: dict[tuple[int, int], CommandBuffer] = {}

    def works(self, lowered: Lowered, times: int, step: int) -> Iterator[tuple[SubmissionPlan, int]]:
        """What to carry out, and how often, for so many iterations."""
        set_step_counters(self._execution, lowered, step)
        if id(lowered) not in self._cuts:
            self._cuts[id(lowered)] = stretches(lowered.buffers[0], self._execution.events)
        cut = self._cuts[id(lowered)]
        bundle = max(1, min(BUNDLE, int(IN_FLIGHT_SECONDS / (self._execution.step_seconds * lowered.schedule.steps))))
        bundles, rest = (0, times) if cut else divmod(times, bundle)
        for iterations, count in ((bundle, bundles), (1, rest)):
            if count:
                key = (id(lowered), iterations)
                if key not in self._buffers:
                    self._buffers[key] = self._several(lowered, cut) if cut else self._one(lowered, iterations)
                yield self._submitter.work(lowered, count, {0: self._buffers[key]}, iterations), count

    def _one(self, lowered: Lowered, iterations: int) -> CommandBuffer:
        """A command buffer that launches one graph of so many iterations."""
        origin, made = lowered.queues[0], CommandWriter()
        self._launch(made, lowered, origin, lowered.queues, lowered.buffers[0], iterations)
        return made.finish()

    def _several(self, lowered: Lowered, cut: Sequence[Stretch | int]) -> CommandBuffer:
        """A command buffer that launches a graph for every stretch, and makes the other calls as they are."""
        commands, devices = lowered.buffers[0], self._execution.devices
        made = CommandWriter(keep=[*commands.keep])
        for part in cut:
            if isinstance(part, int):
                made.same(commands, part)
                continue
            queues = [queue for queue in lowered.queues if devices.context(queue.device) == part.context]
            origin = next(queue for queue in queues if devices.stream(queue) == part.stream)
            rows = list(part.rows)
            piece = CommandBuffer(commands.table[rows], tuple(commands.ops[row] for row in rows), (), commands.keep)
            self._launch(made, lowered, origin, queues, piece, 1)
        return made.finish()

    def _launch(
        self,
        made: CommandWriter,
        lowered: Lowered,
        origin: Queue,
        queues: Sequence[Queue],
        commands: CommandBuffer,
        iterations: int,
    ) -> None:
        """Capture a command buffer, and write the launch of its graph into the origin's queue."""
        execution, stream = self._execution, self._execution.devices.stream(origin)
        executable = self._capture(lowered, origin, queues, commands, iterations)
        made.keep.append(commands)
        made.call(
            commands.ops[0],
            execution.devices.context(origin.device),
            execution.entry("cuGraphLaunch"),
            executable,
            stream,
        )

    def _capture(
        self, lowered: Lowered, origin: Queue, queues: Sequence[Queue], commands: CommandBuffer, iterations: int
    ) -> int:
        """The executable graph of some iterations of a command buffer; its queues begin and end with the origin's."""
        devices, stream = self._execution.devices, self._execution.devices.stream(origin)
        fork, join = rows_between(self._execution, origin, queues)
        devices.enter(origin.device)
        devices.driver.begin_capture(stream)
        try:
            for piece, count in ((fork, 1), (commands, iterations), (join, 1)):
                end = End()
                self._submitter.carry_out(Submission(piece, every=count + 1), end, count)
                if end.state != DONE:
                    raise _failure(lowered, piece, end)
        except BaseException:
            devices.give_up_capture(origin.device, stream)
            raise
        return devices.graph(origin.device, stream)


def stretches(commands: CommandBuffer, events: Events) -> list[Stretch | int]:
    """A command buffer cut where GPUs are ordered: rows that stay, and stretches in the place of their last row.

    A row stays if it is a stream memory operation, or uses an event that rows of several contexts use. No
    stretch depends on another context's, so it may be issued anywhere between the rows that stay. Empty for one
    context, or where the rows that stay are in several queues of a device.
    """
    contexts = {
        event: {commands.table[row, CONTEXT] for row in rows} for event, rows in _users(commands, events).items()
    }
    stays = {row for event, rows in _users(commands, events).items() if len(contexts[event]) > 1 for row in rows}
    stays |= {number for number, row in enumerate(commands.table) if row[FUNCTION] == events.semaphore}
    streams: dict[int, set[int]] = {context: set() for context in contexts_of(commands)}
    for row in stays:
        streams[int(commands.table[row, CONTEXT])].add(_stream(commands.table[row], events))
    if len(streams) < 2 or any(len(found) != 1 for found in streams.values()):
        return []
    origin = {context: next(iter(found)) for context, found in streams.items()}
    return list(_cut(commands, stays, origin, events))


def _cut(
    commands: CommandBuffer, stays: set[int], origin: Mapping[int, int], events: Events
) -> Iterator[Stretch | int]:
    rows: dict[int, list[int]] = {context: [] for context in origin}
    for number, row in enumerate(commands.table):
        context = int(row[CONTEXT])
        if number not in stays:
            rows[context].append(number)
            continue
        if rows[context]:
            yield _stretch(commands, context, origin[context], rows[context], events)
            rows[context] = []
        yield number
    for context, left in rows.items():
        if left:
            yield _stretch(commands, context, origin[context], left, events)


def _stretch(commands: CommandBuffer, context: int, stream: int, rows: Sequence[int], events: Events) -> Stretch:
    """A stretch without waits for what was recorded before it: graphs of a device follow one another anyhow."""
    recorded: set[int] = set()
    kept: list[int] = []
    for row in rows:
        use = events.use(commands.table[row])
        if use is not None and use[1]:
            recorded.add(use[0])
        if use is None or use[0] in recorded:
            kept.append(row)
    return Stretch(context, stream, tuple(kept))


def _users(commands: CommandBuffer, events: Events) -> dict[int, list[int]]:
    """The rows that use each event."""
    users: dict[int, list[int]] = {}
    for number, row in enumerate(commands.table):
        use = events.use(row)
        if use is not None:
            users.setdefault(use[0], []).append(number)
    return users


def _stream(row: Words, events: Events) -> int:
    """The stream of a record, a wait or a stream memory operation."""
    use = events.use(row)
    return int(row[FIRST + 1] if use is not None and use[1] else row[FIRST])


def rows_between(
    execution: ExecutionContext, origin: Queue, queues: Sequence[Queue]
) -> tuple[CommandBuffer, CommandBuffer]:
    """What ties all queues to the origin at the capture's start, and back to it at its end."""
    others = [queue for queue in queues if queue != origin]
    fork, join = CommandWriter(), CommandWriter()
    entry, devices = execution.entry, execution.devices
    start = Event(origin.device, "graph start")
    context = devices.context(origin.device)
    if others:
        fork.call(-1, context, entry("cuEventRecord"), devices.event(start), devices.stream(origin))
    for queue in others:
        fork.call(-1, 0, entry("cuStreamWaitEvent"), devices.stream(queue), devices.event(start), 0)
        done = Event(queue.device, f"graph end of {queue}")
        there = devices.context(queue.device)
        join.call(-1, there, entry("cuEventRecord"), devices.event(done), devices.stream(queue))
        join.call(-1, context, entry("cuStreamWaitEvent"), devices.stream(origin), devices.event(done), 0)
    return fork.finish(), join.finish()


def set_step_counters(execution: ExecutionContext, lowered: Lowered, step: int) -> None:
    """Set the step counters of all queues to a time step."""
    for queue in lowered.queues:
        execution.devices.enter(queue.device)
        execution.devices.driver.upload(execution.step_counter(queue), np.array([step], np.int64))


def _failure(lowered: Lowered, commands: CommandBuffer, end: End) -> PeergridError:
    number = commands.ops[end.row]
    what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "the graph's ends"
    return error(end.code, f"Capturing {what}")
